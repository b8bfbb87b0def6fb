"""A piece of one stream's state: rows, their codes, and the indices that were asked for so far.

    rows     ts  symbol  price     what the stream delivered, as Arrow columns
    keys     [ 3 ][ 8 ]            equality codes, one array for each join attribute
    orders   [ 4 ]                 order codes, one for each attribute of a < <= > >= join
    times    [ . ]                 what the window counts: microseconds, or numbers of arrival
    serials  [ . ] or None         order of arrival among rows of the same step

A partition never changes, and neither do its arrays, which may be mapped from a file. A hash index
is built when first asked for. Rows can be laid out in the order of one index, the one probed most:
then matches of one probe lie side by side, and this index needs no row numbers. Rows in the order
of a bit-address index need no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from querymesh.arrays import Array, Bools, Integers, Ints
from querymesh.errors import StateError
from querymesh.index.kernels import travel as t
from querymesh.index.store.bit_index import BitIndex, build
from querymesh.index.store.codes import combine, ints, microseconds
from querymesh.index.store.columns import Columns
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.hash_index import HashIndex
from querymesh.index.store.order_index import OrderIndex
from querymesh.index.store.request import Asked, Pattern

_Chosen: TypeAlias = slice | Integers
"""Numbers of some rows."""

_NEVER = (2**63 - 1, -(2**63))
"""First and last time of no rows at all: before and after everything."""

_SETTLED = -(2**63)
"""The serial of a row that came in an earlier step, where others have theirs still."""


@dataclass(frozen=True)
class Indexed:
    """How rows of a partition are found: the hash indices there are already, by pattern; `cells`,
    the bit-address index in whose order they lie; and `patterns`, those that may have a hash index,
    None if any may."""

    by_pattern: Mapping[Pattern, HashIndex] = field(default_factory=dict)
    cells: BitIndex | None = None
    patterns: tuple[Pattern, ...] | None = None


class AccessRow(NamedTuple):
    """How rows are found by one kind of request, as the compiled program reads it; and the arrays
    at its addresses that nobody else keeps."""

    row: Ints
    keeps: tuple[Array, ...]


def address(array: Array) -> int:
    """Where an array lies in memory: whoever uses it keeps the array."""
    return int(array.__array_interface__["data"][0])


class Partition:
    """Rows of one stream, immutable. `bounds`, first and last time, are for who knows them."""

    def __init__(
        self,
        rows: pa.RecordBatch,
        keys: Sequence[Ints],
        orders: Sequence[Ints],
        times: Ints,
        serials: Ints | None = None,
        *,
        bounds: tuple[int, int] | None = None,
        indexed: Indexed | None = None,
    ) -> None:
        indexed = indexed or Indexed()
        self.rows = rows
        self.columns = Columns(rows)
        self.keys = tuple(map(ints, keys))
        self.orders = tuple(map(ints, orders))
        self.times = ints(times)
        self.serials = None if serials is None else ints(serials)
        self.cells = indexed.cells
        self.patterns = indexed.patterns
        self._indices: dict[Pattern, HashIndex] = dict(indexed.by_pattern)
        self._order_indices: dict[int, OrderIndex] = {}
        self.access: dict[Asked, AccessRow] = {}
        """The ways to matches that were asked for so far."""
        self._described: dict[tuple[int, int, str | None], AccessRow] = {}
        # The kernels do not look whether an array ends: a short one must not get there.
        if any(len(column) != rows.num_rows for column in self._columns()):
            lengths = [len(column) for column in self._columns()]
            raise StateError(
                f"a partition of {rows.num_rows} rows has codes, times or serials of other "
                f"lengths ({', '.join(map(str, lengths))}): give one number a row"
            )
        if bounds is None:
            bounds = (int(self.times.min()), int(self.times.max())) if len(self) else _NEVER
        self.first, self.last = bounds

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def _columns(self) -> list[Ints]:
        serials = [] if self.serials is None else [self.serials]
        return [*self.keys, *self.orders, self.times, *serials]

    @property
    def nbytes(self) -> int:
        """Memory of rows, codes and the indices built so far; what they share counts once."""
        arrays: list[Array] = [*self._columns()]
        for index in self._indices.values():
            arrays += index.arrays()
        if self.cells is not None:
            arrays += self.cells.arrays()
        for sorted_rows in self._order_indices.values():
            arrays += [sorted_rows.codes, sorted_rows.order]
        shared = [
            (buffer.address, buffer.address + buffer.size)
            for column in self.rows.columns
            for buffer in column.buffers()
            if buffer is not None
        ]
        own = {
            address: array.nbytes
            for address, array in ((array.ctypes.data, array) for array in arrays)
            if not any(begin <= address < end for begin, end in shared)
        }
        return int(self.rows.nbytes) + sum(own.values())

    def index_for(self, pattern: Pattern) -> HashIndex:
        """The index for an access pattern, which must name at least one attribute."""
        found = self._indices.get(pattern)
        if found is None:
            found = HashIndex.build(combine([self.keys[j] for j in pattern]))
            self._indices[pattern] = found
        return found

    def order_index_for(self, order: int) -> OrderIndex:
        """The rows sorted by an order attribute."""
        if order not in self._order_indices:
            self._order_indices[order] = OrderIndex.build(self.orders[order])
        return self._order_indices[order]

    def described(self, keys: int, orders: int, event_time: str | None) -> Ints:
        """The partition as a row of `parts` (`index/kernels/travel.py`), with room for so many key
        and order codes; `event_time` is a column whose times the program needs beside."""
        layout = keys, orders, event_time
        if layout not in self._described:
            row = np.zeros(t.P_CODES + keys + orders, np.int64)
            row[t.P_FIRST], row[t.P_LAST] = self.first, self.last
            row[t.P_TIMES] = address(self.times)
            row[t.P_SERIALS] = 0 if self.serials is None else address(self.serials)
            kept: tuple[Array, ...] = ()
            if event_time is not None:
                events = microseconds(self.rows.column(event_time))
                row[t.P_EVENTS], kept = address(events), (events,)
            for j, codes in enumerate(self.keys):
                row[t.P_CODES + j] = address(codes)
            for j, codes in enumerate(self.orders):
                row[t.P_CODES + keys + j] = address(codes)
            self._described[layout] = AccessRow(row, kept)
        return self._described[layout].row

    def settled(self) -> Partition:
        """The same rows, which all came earlier than any row that will probe them."""
        if self.serials is None:
            return self
        settled = copy(self)
        settled.serials = None
        settled._described = {
            layout: AccessRow(_without_serials(known.row), known.keeps)
            for layout, known in self._described.items()
        }
        return settled

    def in_order_of(self, pattern: Pattern) -> Partition:
        """The same rows, laid out in the order of the hash index for this pattern."""
        index = self.index_for(pattern)
        if index.order is None:
            return self
        there = self.taken(index.order, (self.first, self.last))
        codes = there.keys[pattern[0]] if len(pattern) == 1 else index.codes
        there._indices[pattern] = HashIndex(index.offsets, codes, None, index.marks)
        return there

    def in_hash_order(self) -> tuple[Pattern, HashIndex] | None:
        """The hash index in whose order the rows lie, and its pattern."""
        for pattern, index in self._indices.items():
            if index.order is None:
                return pattern, index
        return None

    def in_cells(self, configuration: Configuration) -> Partition:
        """The same rows, laid out in the order of a bit-address index."""
        cells, order = build(configuration, self.keys, self.orders)
        there = self if order is None else self.taken(order, (self.first, self.last))
        return there.indexed_by(cells)

    def indexed_by(self, cells: BitIndex) -> Partition:
        """The same rows, which lie in the order of this index; others are left behind."""
        return self._with(self.serials, Indexed(cells=cells))

    def with_patterns(self, patterns: tuple[Pattern, ...] | None) -> Partition:
        """The same rows, with hash indices of these access patterns only; None for any."""
        if patterns == self.patterns and self.cells is None:
            return self
        allowed = {
            pattern: index
            for pattern, index in self._indices.items()
            if patterns is None or pattern in patterns
        }
        return self._with(self.serials, Indexed(allowed, patterns=patterns))

    def _with(self, serials: Ints | None, indexed: Indexed) -> Partition:
        """The same rows with other indices, or none."""
        other = Partition(
            self.rows,
            self.keys,
            self.orders,
            self.times,
            serials,
            bounds=(self.first, self.last),
            indexed=indexed,
        )
        other.columns = self.columns
        return other

    @property
    def index_bytes(self) -> int:
        """Memory of the indices alone."""
        hashes = sum(index.nbytes for index in self._indices.values())
        orders = sum(index.nbytes for index in self._order_indices.values())
        return hashes + orders + (0 if self.cells is None else self.cells.nbytes)

    def index_text(self) -> str:
        """How the rows are indexed, in a few characters: bits by attribute, or hashed patterns."""
        if self.cells is not None:
            return "bits " + "/".join(map(str, self.cells.configuration.bits))
        if self.patterns is None:
            return "hash"
        return "hash " + (", ".join("+".join(map(str, each)) for each in self.patterns) or "none")

    def slice(self, start: int, length: int | None = None) -> Partition:
        """Rows from `start` on, without a copy."""
        rows = self.rows.slice(start, length)
        part = slice(start, start + rows.num_rows)
        return self._of_rows(rows, part)

    def filter(self, mask: Bools) -> Partition:
        """The rows where the mask is true, in the order they have."""
        return self if mask.all() else self.taken(np.flatnonzero(mask), None)

    def taken(self, chosen: Integers, bounds: tuple[int, int] | None = None) -> Partition:
        """These rows, in this order; `bounds` if they are known."""
        columns = self.columns
        arrays = [columns.take(name, chosen) for name in self.rows.schema.names]
        # A batch without columns, of a stream of which only keys are read, still has its rows.
        rows = (
            pa.RecordBatch.from_arrays(arrays, schema=self.rows.schema)
            if arrays
            else self.rows.take(pa.array(chosen))
        )
        return self._of_rows(rows, chosen, bounds)

    def _of_rows(
        self,
        rows: pa.RecordBatch,
        chosen: _Chosen,
        bounds: tuple[int, int] | None = None,
    ) -> Partition:
        """Some of the rows, which `chosen` numbers, with their keys, times and serials."""
        return Partition(
            rows,
            [key[chosen] for key in self.keys],
            [order[chosen] for order in self.orders],
            self.times[chosen],
            None if self.serials is None else self.serials[chosen],
            bounds=bounds,
            indexed=Indexed(patterns=self.patterns),
        )


def concat(partitions: Sequence[Partition]) -> Partition:
    """All rows of some partitions, at least one, in one. Where some are settled and some are not,
    the settled come before all others."""
    if len(partitions) == 1:
        return partitions[0]
    serials = None
    if any(partition.serials is not None for partition in partitions):
        serials = np.concatenate([_serials(partition) for partition in partitions])
    table = pa.Table.from_batches([partition.rows for partition in partitions]).combine_chunks()
    batches = table.to_batches() or [partitions[0].rows]
    if len(batches) > 1:
        raise StateError(
            "partitions with more than 2 GB of text in a column cannot be one: keep them apart, "
            "or read the column as large_string"
        )
    return Partition(
        batches[0],
        [np.concatenate(keys) for keys in zip(*(p.keys for p in partitions), strict=True)],
        [np.concatenate(orders) for orders in zip(*(p.orders for p in partitions), strict=True)],
        np.concatenate([partition.times for partition in partitions]),
        serials,
        bounds=(min(p.first for p in partitions), max(p.last for p in partitions)),
    )


def _without_serials(row: Ints) -> Ints:
    """A described partition as it is once its rows are settled."""
    settled = row.copy()
    settled[t.P_SERIALS] = 0
    return settled


def _serials(partition: Partition) -> Ints:
    if partition.serials is None:
        return np.full(len(partition), _SETTLED, np.int64)
    return partition.serials
