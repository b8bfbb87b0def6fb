"""How the rows of one partition are found by one kind of request, as a row of numbers that the
compiled program reads (`index/kernels/travel.py`).

cells    rows lie by bucket: look into the buckets that the request leaves open
hash     an index of the request's access pattern, or of the largest part of it that has one
sorted   no equality: the range of an attribute that is compared
scan     none of these: look at all rows

What the way does not see to is checked of each row that is found.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from querymesh.arrays import Array, Ints
from querymesh.index.kernels import travel as t
from querymesh.index.store.bit_index import BitIndex
from querymesh.index.store.hash_index import HashIndex
from querymesh.index.store.partition import AccessRow, Partition, address
from querymesh.index.store.request import Asked, Pattern

OPS: Mapping[str, int] = {
    "<": t.LESS,
    "<=": t.LESS_EQUAL,
    ">": t.GREATER,
    ">=": t.GREATER_EQUAL,
}


def access_row(partition: Partition, asked: Asked) -> AccessRow:
    """The way to a request's matches in a partition; an index that it needs is built."""
    known = partition.access
    if asked not in known:
        known[asked] = _made(partition, asked)
    return known[asked]


def _made(partition: Partition, asked: Asked) -> AccessRow:
    if partition.cells is not None:
        return _by_cells(partition, partition.cells, asked)
    if asked.pattern:
        return _by_hash(partition, asked)
    return _by_order(partition, asked) if asked.compared else _scan(partition, asked)


def suitable(pattern: Pattern, patterns: Collection[Pattern]) -> Pattern:
    """The largest of some access patterns that the given one specifies in full (AMRI § 2.2); () if
    there is none.

    >>> suitable((0, 2), [(0,), (0, 1), (1, 2)])
    (0,)
    """
    within = [each for each in patterns if set(each) <= set(pattern)]
    return max(within, key=lambda each: (len(each), each), default=())


def _by_hash(partition: Partition, asked: Asked) -> AccessRow:
    pattern = asked.pattern
    if partition.patterns is not None:
        pattern = suitable(pattern, partition.patterns)
        if not pattern:
            return _scan(partition, asked)
    index = partition.index_for(pattern)
    assert isinstance(index, HashIndex)
    # The code of a single attribute is compared by the index; a combined one may be another's.
    seen_to = pattern if len(pattern) == 1 else ()
    row = _row(t.HASH)
    row[t.A_OFFSETS] = address(index.offsets)
    row[t.A_CODES] = address(index.codes)
    row[t.A_ORDER] = 0 if index.order is None else address(index.order)
    row[t.A_MARKS] = 0 if index.marks is None else address(index.marks)
    row[t.A_BITS] = (len(index.offsets) - 1).bit_length() - 1
    row[t.A_USED] = _bits(asked.pattern, pattern)
    row[t.A_CHECKED] = _bits(asked.pattern, set(asked.pattern) - set(seen_to))
    return AccessRow(row, ())


def _by_order(partition: Partition, asked: Asked) -> AccessRow:
    """By an attribute that is bounded on both sides, or the first."""
    sides = {(order, op[0]) for op, order in asked.compared}
    banded = (order for _, order in asked.compared if {(order, "<"), (order, ">")} <= sides)
    by = next(banded, asked.compared[0][1])
    index = partition.order_index_for(by)
    row = _row(t.SORTED)
    row[t.A_CODES] = address(index.codes)
    row[t.A_ORDER] = address(index.order)
    row[t.A_ROWS] = len(partition)
    row[t.A_BY] = by
    return AccessRow(row, ())


def _scan(partition: Partition, asked: Asked) -> AccessRow:
    row = _row(t.SCAN)
    row[t.A_ROWS] = len(partition)
    row[t.A_CHECKED] = _bits(asked.pattern, asked.pattern)
    return AccessRow(row, ())


def _by_cells(partition: Partition, index: BitIndex, asked: Asked) -> AccessRow:
    """The buckets that a request leaves open; all rows where it would come to more buckets than
    there are rows, or specifies none of the bits."""
    configuration = index.configuration
    ranged = index.ranged(asked.compared)
    opening = index.opening(asked.pattern, ranged)
    if opening is None or len(opening.open_cells) > max(len(partition), 1):
        return _scan(partition, asked)
    cells = [
        _cell(asked.pattern.index(j), configuration.bits[j], configuration.shifts[j], index, j)
        for j in asked.pattern
        if configuration.bits[j]
    ]
    table = np.array(cells, np.int64).ravel()
    row = _row(t.CELLS)
    row[t.A_OFFSETS] = address(index.offsets)
    row[t.A_OPEN] = address(opening.open_cells)
    row[t.A_OPEN_COUNT] = len(opening.open_cells)
    row[t.A_SPAN] = 1 << opening.floor
    row[t.A_FLOOR] = opening.floor
    row[t.A_CELLS] = address(table)
    row[t.A_ROWS] = len(cells)
    row[t.A_CHECKED] = _bits(asked.pattern, asked.pattern)
    if ranged is not None:
        bounds = index.bounds[ranged]
        row[t.A_BY] = ranged - configuration.keys
        row[t.A_BOUNDS] = address(bounds)
        row[t.A_BOUND_COUNT] = len(bounds)
    return AccessRow(row, (table, opening.open_cells))


def _cell(attr: int, bits: int, shift: int, index: BitIndex, j: int) -> tuple[int, ...]:
    table: Array | None = index.tables.get(j)
    if table is None:
        return attr, bits, shift, 0, 0
    return attr, bits, shift, address(table), len(table).bit_length() - 1


def _row(kind: int) -> Ints:
    row = np.zeros(t.A_WIDTH, np.int64)
    row[t.A_KIND], row[t.A_BY] = kind, -1
    return row


def _bits(pattern: Pattern, which: Collection[int]) -> int:
    """Some attributes of a pattern, as bits by their place in it."""
    return sum(1 << place for place, j in enumerate(pattern) if j in which)
