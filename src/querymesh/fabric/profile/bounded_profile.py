"""Profiling within a budget: expensive functions are asked about fewer rows, none of them twice.

::

    sample  |first rows|   as many more as the budget pays for   | not asked at all |
             tells what a row costs
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class BoundedProfile:
    """A profile, and what it took: `calls` are rows on which users' functions were called."""

    profile: Profile
    calls: int


def profile_within(
    bound: BoundQuery,
    sample: pa.Table,
    tables: Mapping[str, LookupTable],
    on_error: str,
    budget_s: float,
) -> BoundedProfile:
    """The profile of as many rows of the sample as the budget pays for, the first few at least."""
    users = [
        operator.index - 1
        for operator in bound.operators
        if isinstance(operator, Filter) and user_calls_of(operator.expr)
    ]
    if not users or sample.num_rows <= FIRST_ROWS:
        profile, _ = profile_counted(bound, sample, tables, on_error)
        return BoundedProfile(profile, profile.rows * len(users))
    first, _ = profile_counted(bound, sample.slice(0, FIRST_ROWS), tables, on_error)
    row_s = float(np.maximum(first.drop_us, first.pass_us)[users].sum()) / 1e6
    spent_s = row_s * FIRST_ROWS
    more = int(max(budget_s - spent_s, 0.0) / row_s) if row_s > 0 else sample.num_rows
    more = min(more, sample.num_rows - FIRST_ROWS)
    if more < FIRST_ROWS:
        return BoundedProfile(first, first.rows * len(users))
    rest, _ = profile_counted(bound, sample.slice(FIRST_ROWS, more), tables, on_error)
    together = replace(
        rest,
        sample=sample.slice(0, FIRST_ROWS + more),
        outcomes=np.vstack([first.outcomes, rest.outcomes]),
    )
    return BoundedProfile(together, together.rows * len(users))
