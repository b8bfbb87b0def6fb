"""Content-Learns over a chunk that goes by a table: which tuples are of one class, and what their
counts say about content.

Plain tuples are of one class if all classifier attributes in use put them into the same partitions.
Those that profile an operator go as others of their content do once they have been there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from querymesh.arrays import Ints
from querymesh.fabric.routers.tables.eddy_table import Classes, CutBy, Table
from querymesh.fabric.routers.visit_context import VisitContext
from querymesh.index.probe.program import Counts

MOST_CLASSES = 1024
"""Up to so many, all classes are decided on that there can be: it is done before they come."""

ENOUGH = 4
"""Of so many tuples for each class there could be, those that have none will hardly come."""


class VisitedContent(NamedTuple):
    """Tuples that were in an operator in one context, and what passed, by partition."""

    context: VisitContext
    arrived: Ints
    passed: Ints


def all_classes(sizes: Mapping[CutBy, int], leaves: int) -> Classes:
    """All classes of so many leaves, by leaf and then by content."""
    count = prod(sizes.values())
    numbers = np.tile(np.arange(count), leaves)
    codes = {}
    for cut_by, size in reversed(list(sizes.items())):
        codes[cut_by] = numbers % size
        numbers //= size
    return Classes(np.repeat(np.arange(leaves), count), codes)


def numbers_of(sizes: Mapping[CutBy, int], leaves: Ints, codes: Callable[[CutBy], Ints]) -> Ints:
    """The number of each tuple's class among `all_classes`."""
    numbers = leaves
    for cut_by, size in sizes.items():
        numbers = numbers * size + codes(cut_by)
    return numbers


def classes_there_are(
    sizes: Mapping[CutBy, int], leaves: Ints, codes: Callable[[CutBy], Ints]
) -> tuple[Classes, Ints]:
    """The classes that some tuples are of, and the number of each tuple's."""
    numbers, first = leaves, np.zeros(0, np.int64)
    for cut_by, size in sizes.items():
        _, first, numbers = np.unique(
            numbers * size + codes(cut_by), return_index=True, return_inverse=True
        )
    return Classes(leaves[first], {cut_by: codes(cut_by)[first] for cut_by in sizes}), numbers


def likely_classes(sizes: Mapping[CutBy, int], leaves: int, numbers: Ints) -> tuple[Classes, Ints]:
    """The classes that tuples with these numbers have, or all where there are few tuples; and by
    number among all classes the one among these, -1 for the others."""
    whole = all_classes(sizes, leaves)
    count = len(whole.leaves)
    there = np.arange(count)
    if len(numbers) >= ENOUGH * count:
        there = np.flatnonzero(np.bincount(numbers, minlength=count))
    among = np.full(count, -1)
    among[there] = np.arange(len(there))
    return whole.some(there), among


def content_visited(
    table: Table, counts: Counts, index: int, cut_by: CutBy, size: int
) -> Iterator[VisitedContent]:
    """What an operator did, by context and partition."""
    states = np.flatnonzero((table.operator_of_state == index) & (counts.evaluated > 0))
    visits = table.visit_of_state[states]
    cells = visits * size + table.classes.codes[cut_by][table.class_of_state[states]]
    arrived, passed = (
        np.bincount(cells, each[states], len(table.visits) * size)
        .astype(np.int64)
        .reshape(-1, size)
        for each in (counts.evaluated, counts.passed)
    )
    for number, (context, _) in enumerate(table.visits):
        if arrived[number].any():
            yield VisitedContent(context, arrived[number], passed[number])


def visits_until(table: Table, targets: Sequence[int], first_leaf: int) -> Ints:
    """By class, how many visits its tuples have made once they have been in the operator that their
    leaf profiles; 0 for those that profile none."""
    levels, count = table.visit_of.shape
    operators = table.operator_of_state.reshape(levels, count)
    visits = np.zeros(count, np.int64)
    for leaf, index in enumerate(targets, first_leaf):
        members = np.flatnonzero(table.classes.leaves == leaf)
        there = operators[:, members] == index
        visits[members] = np.where(there.any(axis=0), there.argmax(axis=0) + 1, 0)
    return visits
