"""Content-Learns over a chunk that goes by a table: which tuples are of one class, and what their
counts say about content.

Plain tuples are of one class if all classifier attributes in use put them into the same partitions.
A tuple that profiles an operator is a class of its own, so that what came of it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from querymesh.arrays import Bools, Floats, Ints
from querymesh.fabric.routers.eddy_table import Classes, Table
from querymesh.fabric.routers.estimates import Pair
from querymesh.fabric.routers.visit_context import VisitContext
from querymesh.index.probe.program import Counts

SPARSE = 4
"""Numbers of classes that are larger than so many times the tuples are made dense again."""


class VisitedContent(NamedTuple):
    """Tuples that were in an operator in one context, and what passed, by partition."""

    context: VisitContext
    arrived: Ints
    passed: Ints


def classes_by_content(
    plain: Bools, leaves: Ints, pairs: Iterable[Pair], codes: Callable[[Pair], Ints]
) -> Classes:
    """The classes of a chunk, by the partitions of the pairs in use."""
    rows = np.flatnonzero(plain)
    number, count = np.zeros(len(rows), np.int64), min(1, len(rows))
    for each in {(pair.attributes, pair.count): pair for pair in pairs}.values():
        number = number * len(each.selectivity) + codes(each)[rows]
        count *= len(each.selectivity)
        if count > SPARSE * len(rows):
            found, number = np.unique(number, return_inverse=True)
            count = len(found)
    first = np.full(count, -1)
    first[number[::-1]] = rows[::-1]
    there = np.flatnonzero(first >= 0)
    dense = np.zeros(count, np.int64)
    dense[there] = np.arange(len(there))
    others = np.flatnonzero(~plain)
    of_tuple = np.empty(len(leaves), np.int64)
    of_tuple[rows] = dense[number]
    of_tuple[others] = len(there) + np.arange(len(others))
    standing = np.concatenate([first[there], others])
    return Classes(of_tuple, standing, leaves[standing])


def content_visited(
    table: Table, counts: Counts, index: int, codes: Ints, size: int
) -> Iterator[VisitedContent]:
    """What an operator did, by context and partition; `codes` are the partitions of the tuples."""
    states = np.flatnonzero(table.operator_of_state == index)
    visits = table.visit_of_state[states]
    partition = codes[table.classes.rows[table.class_of_state[states]]]
    for number in np.unique(visits).tolist():
        here = visits == number
        arrived, passed = (
            np.bincount(partition[here], each[states[here]], size).astype(np.int64)
            for each in (counts.evaluated, counts.passed)
        )
        if arrived.any():
            yield VisitedContent(table.visits[number][0], arrived, passed)


def outcomes_of(table: Table, counts: Counts, index: int, leaf: int) -> tuple[Ints, Floats]:
    """The tuples of a leaf that reached an operator, in their order, and how many came out for each
    that went in."""
    leaves = table.classes.leaves[table.class_of_state]
    reached = (table.operator_of_state == index) & (leaves == leaf) & (counts.evaluated > 0)
    rows = table.classes.rows[table.class_of_state[reached]]
    order = np.argsort(rows)
    outcome = counts.passed[reached] / counts.evaluated[reached]
    return rows[order], outcome[order]
