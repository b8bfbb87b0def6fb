"""Tuples of a large step in the order of their stream's index, instead of the order of arrival.

Rows of a state lie in the order of its index, by the hash of their key::

    arrivals by time   k: 7 2 9 4 ...   state of another stream  [ . . . . . . . . . . ]
                                        rows found at             9   3       1     7

    by the hash of k   k: 4 9 2 7 ...   rows found at             1   3       7     9

So who probes in that order goes through the states from one end to the other, and the processor has
the memory ready. Results are the same: which of two tuples came first is told by their serials.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.fabric.core.router import Router
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.probe import is_exact
from querymesh.index.store.codes import combine, equality_codes
from querymesh.index.store.hash_index import HashIndex
from querymesh.index.store.index_plan import HashPlan, IndexPlan
from querymesh.index.store.request import Pattern
from querymesh.query.expr import Column
from querymesh.query.join import JoinQuery

LEAST_ROWS = 8192
"""Fewer tuples of a stream are left as they are: sorting 5,000 was as much as it saved."""


def in_index_order(
    join: JoinQuery,
    arrivals: Mapping[str, Arrivals],
    plans: Mapping[str, IndexPlan],
    routers: Mapping[str, Router],
    least_rows: int = LEAST_ROWS,
) -> dict[str, Arrivals]:
    """The arrivals of each stream, those of large ones in the order of the hash index that their
    own state is laid out by. Streams of which a router, by view, goes by the order of arrival stay
    in it."""
    by_arrival = {
        join.of_view(label)[1]
        for label, router in routers.items()
        if router.decides or router.by_neighbours
    }
    ordered = dict(arrivals)
    for alias, arrived in arrivals.items():
        plan = plans.get(alias)
        if len(arrived) < least_rows or alias in by_arrival or not isinstance(plan, HashPlan):
            continue
        codes = _codes(join, alias, arrived.rows, plan.layout)
        order = None if codes is None else HashIndex.build(codes).order
        if order is not None:
            ordered[alias] = Arrivals(
                arrived.rows.take(pa.array(order)),
                arrived.times[order],
                arrived.serials[order],
                arrived.numbers[order],
                {other: counts[order] for other, counts in arrived.before.items()},
            )
    return ordered


def _codes(join: JoinQuery, alias: str, rows: pa.RecordBatch, layout: Pattern) -> Ints | None:
    """The codes of the keys that rows are laid out by, where they are columns and cost nothing."""
    codes = []
    for position in layout:
        each = join.keys_of(alias)[position]
        key = each.members[alias]
        if not isinstance(key, Column) or not is_exact(each.dtype):
            return None
        values = rows.column(key.name)
        if values.null_count:
            return None
        values = values if values.type == each.dtype else values.cast(each.dtype)
        codes.append(equality_codes(values).codes)
    return combine(codes) if codes else None
