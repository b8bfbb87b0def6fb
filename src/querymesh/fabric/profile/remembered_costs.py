"""What functions cost whose answers are remembered: time and money of a call for each new input.

A sample is a part of the job, and repeats itself less: what its calls took would be too much for a
row of the whole, and what its last rows took too little, since their answers were known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from querymesh.arrays import Floats
from querymesh.fabric.profile.bounded_profile import called_by_users
from querymesh.query.costly.asking import Asking
from querymesh.query.costly.distinct import distinct_rows
from querymesh.query.costly.in_run import known_asking
from querymesh.query.evaluate import evaluate
from querymesh.query.expr import Column, UserCall, walk
from querymesh.query.model import BoundQuery, Filter
from querymesh.stats.distinct import distinct_of
from querymesh.stats.profile import Profile


@dataclass(frozen=True)
class Remembered:
    """A profile with what a row will cost, and what one costs where nothing is remembered."""

    profile: Profile
    called_us: Floats


def with_remembered(profile: Profile, bound: BoundQuery, rows: float) -> Remembered:
    """The profile of a job of so many rows, as it will be with answers remembered."""
    called_us = profile.cost_us.copy()
    drop_us, pass_us = profile.drop_us.copy(), profile.pass_us.copy()
    for at in called_by_users(bound):
        operator = bound.operators[at]
        assert isinstance(operator, Filter)
        calls = [node for node in walk(operator.expr) if isinstance(node, UserCall)]
        askings = [known_asking(bound.query.functions[call.function]) for call in calls]
        if not all(asking is not None and _counts(asking) for asking in askings):
            continue
        each_us, row_us = 0.0, 0.0
        for call, asking in zip(calls, askings, strict=True):
            assert asking is not None
            assert asking.call_us is not None
            asked_us = asking.call_us + asking.money_us
            each_us += asked_us
            row_us += asked_us * _new_share(call, profile.sample, bound, rows)
            row_us += asking.look_us
        called_us[at] = each_us
        drop_us[at] = pass_us[at] = row_us
    return Remembered(replace(profile, drop_us=drop_us, pass_us=pass_us), called_us)


def _counts(asking: Asking) -> bool:
    """Whether answers are remembered, and it is known what one costs."""
    return asking.remembers and asking.call_us is not None


def _new_share(call: UserCall, sample: pa.Table, bound: BoundQuery, rows: float) -> float:
    """The share of the job's rows whose input is a new one."""
    if not call.args or not sample.num_rows:
        return 1.0
    functions = bound.query.functions
    args = [evaluate(arg, _columns(sample), sample.num_rows, functions) for arg in call.args]
    return distinct_of(distinct_rows(args).kind_of, rows) / max(rows, float(sample.num_rows))


def _columns(sample: pa.Table) -> Callable[[Column], pa.Array]:
    made: Mapping[str, pa.Array] = {
        name: sample.column(name).combine_chunks() for name in sample.column_names
    }
    return lambda column: made[column.name]
