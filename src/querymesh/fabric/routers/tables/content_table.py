"""Content-Learns over a chunk that goes by a table: which tuples are of one class, and what their
counts say about content.

Plain tuples are of one class if all classifier attributes in use put them into the same partitions.
Those that profile an operator go as others of their content do once they have been there; each is a
class of its own in the end, so that what came of it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import NamedTuple

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.fabric.routers.tables.eddy_table import Chunk, Classes, CutBy
from querymesh.fabric.routers.visit_context import VisitContext
from querymesh.index.probe.program import Counts

MOST_CLASSES = 1024
"""Up to so many, all classes are decided on that there can be: it is done before they come."""


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


def content_visited(
    chunk: Chunk, counts: Counts, index: int, cut_by: CutBy, size: int
) -> Iterator[VisitedContent]:
    """What an operator did, by context and partition."""
    table = chunk.table
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


def outcomes_of(chunk: Chunk, counts: Counts, index: int, leaf: int) -> tuple[Ints, Floats]:
    """The tuples of a leaf that reached an operator, in their order, and how many came out for each
    that went in."""
    table, alone = chunk.table, len(chunk.alone)
    levels, count = table.visit_of.shape
    evaluated, passed, operators, leaves = (
        each.reshape(levels, count)[:, count - alone :]
        for each in (counts.evaluated, counts.passed, table.operator_of_state, table.leaf_of_state)
    )
    level, place = np.nonzero((operators == index) & (leaves == leaf) & (evaluated > 0))
    order = np.argsort(place)
    level, place = level[order], place[order]
    return chunk.alone[place], passed[level, place] / evaluated[level, place]
