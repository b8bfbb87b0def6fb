"""Profiling within a budget: expensive functions are asked about fewer rows, none of them twice.

::

    sample  |first rows|  a few  |  some more  | as many as the budget pays for | not asked |
             load models    └── what a further row costs: the slope between two calls
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.profile.profiler import profile_counted
from querymesh.query.expr import user_calls_of
from querymesh.query.model import BoundQuery, Filter
from querymesh.stats.profile import Profile

FIRST_ROWS = 24
"""Rows by which the cost of a row is told. A first call may load a model: its time is not counted
if there are more rows to come."""

TELLING_ROWS = 256
"""With so many the cost of a row is told better. They are asked in two calls, if there are enough:
a function over arrays has a price for each call, most of what a few rows seem to cost."""

LEAST_SHARE = 0.1
"""At least this share of what a row of a call takes on average is its own."""


Budget = Callable[[float], float]
"""From the seconds that the functions take for a row to those that may be spent on all rows."""


def profile_within(
    bound: BoundQuery,
    sample: pa.Table,
    tables: Mapping[str, LookupTable],
    on_error: str,
    budget_s: Budget,
) -> Profile:
    """The profile of as many rows of the sample as the budget pays for, the first few at least."""
    users = called_by_users(bound)
    if not users or sample.num_rows <= FIRST_ROWS:
        return profile_counted(bound, sample, tables, on_error)[0]
    profile, _ = profile_counted(bound, sample.slice(0, FIRST_ROWS), tables, on_error)
    for rows in (TELLING_ROWS, sample.num_rows):
        row_s = float(np.maximum(profile.drop_us, profile.pass_us)[users].sum()) / 1e6
        allowed_s = budget_s(row_s) - row_s * profile.rows
        more = int(max(allowed_s, 0.0) / row_s) if row_s > 0 else sample.num_rows
        more = min(more, rows - profile.rows, sample.num_rows - profile.rows)
        if more < FIRST_ROWS:
            break
        fewer = more // 4 if more >= 4 * FIRST_ROWS else 0
        if fewer:
            few = sample.slice(profile.rows, fewer)
            profile = followed_by(profile, bound, few, tables, on_error)
        fewer_us, rest = profile.cost_us, sample.slice(profile.rows, more - fewer)
        profile = followed_by(profile, bound, rest, tables, on_error)
        if fewer:
            profile = _sloped(profile, users, (fewer, fewer_us), more - fewer)
    return profile


def _sloped(
    profile: Profile, users: Sequence[int], before: tuple[int, Floats], rows: int
) -> Profile:
    """A profile with what a further row costs a function: by its last call, of so many rows, and
    the one before. One that must come after others is asked about fewer, and keeps its mean."""
    fewer, fewer_us = before
    free = [at for at in users if not profile.after[at]]
    mean_us = profile.cost_us[free]
    slope_us = (mean_us * rows - fewer_us[free] * fewer) / (rows - fewer)
    us = np.clip(slope_us, LEAST_SHARE * mean_us, mean_us)
    drop_us, pass_us = profile.drop_us.copy(), profile.pass_us.copy()
    drop_us[free] = pass_us[free] = us
    return replace(profile, drop_us=drop_us, pass_us=pass_us)


def followed_by(
    profile: Profile,
    bound: BoundQuery,
    sample: pa.Table,
    tables: Mapping[str, LookupTable],
    on_error: str,
) -> Profile:
    """A profile with further rows, whose costs it takes on: the first calls of a function may have
    loaded a model."""
    rest, _ = profile_counted(bound, sample, tables, on_error)
    return replace(
        rest,
        sample=pa.concat_tables([profile.sample, rest.sample]),
        outcomes=np.vstack([profile.outcomes, rest.outcomes]),
    )


def called_by_users(bound: BoundQuery) -> list[int]:
    """The places of the operators that call users' functions."""
    return [
        operator.index - 1
        for operator in bound.operators
        if isinstance(operator, Filter) and user_calls_of(operator.expr)
    ]
