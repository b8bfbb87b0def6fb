"""Profiling within a budget: expensive functions are asked about fewer rows, none of them twice.

::

    sample  |first rows|  some more  |   as many as the budget pays for   | not asked at all |
             tell what a row costs
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.profile.profiler import profile_counted
from querymesh.query.expr import user_calls_of
from querymesh.query.model import BoundQuery, Filter
from querymesh.stats.profile import Profile

FIRST_ROWS = 24
"""Rows by which the cost of a row is told. A first call may load a model: its time is not counted
if there are more rows to come."""

TELLING_ROWS = 256
"""With so many the cost of a row is told better: a function over arrays has a price for each call,
which is most of what a few rows seem to cost."""


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
        profile = followed_by(profile, bound, sample.slice(profile.rows, more), tables, on_error)
    return profile


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
