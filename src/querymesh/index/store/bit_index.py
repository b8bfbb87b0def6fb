"""A bit-address index of one partition (AMRI § 4.1): rows lie by bucket, and offsets tell where.

    offsets  [ 0  2  2  5 ... ]      bucket b owns rows offsets[b] to offsets[b + 1]
    rows     [ .. .. .. .. .. ]      in the order of their buckets; no link leads to a row

That is all there is: four bytes a bucket, with no more buckets than rows, and for an attribute of
few bits a table of at most 4 KB. One index serves every access pattern. The attributes that a probe
specifies fix their bits; the bits of the others run through all values, those below the lowest
fixed one as a single range.

How values map to bits is chosen by the rows of the partition, so that buckets hold about as many
of them. For equality, codes are hashed into more cells than there are, and these are dealt to cells
by how full they are: a frequent value gets a cell of its own. For < <= > >= the bounds of the cells
are quantiles, in the order of the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from querymesh.arrays import Array, Bytes, Ints, Shorts
from querymesh.index.kernels import kernels
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.request import Cursor, MatchBuffer, OrderComparison, Pattern, Request
from querymesh.index.store.stored import NO_BYTES, NO_INTS, Stored

_TABLE_BITS = 8
"""An attribute with more bits is hashed to its cells without a table: with so many, one full cell
no longer matters to the others."""

_FINE_BITS = 4
"""A table has two to this power as many fine cells as cells."""

_ROWS_FOR_TABLE = 256
"""Fewer rows tell too little of how values are spread."""


_ONE = np.ones(1, np.int64)


@dataclass(frozen=True)
class BitIndex:
    """The buckets of a partition whose rows lie in their order.

    `tables` are by equality attribute, `bounds` by order attribute, each where it has bits.
    """

    configuration: Configuration
    offsets: Shorts
    tables: Mapping[int, Bytes] = field(default_factory=dict)
    bounds: Mapping[int, Ints] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Memory of offsets, tables and bounds."""
        return sum(array.nbytes for array in self.arrays())

    def arrays(self) -> tuple[Array, ...]:
        """What the index consists of."""
        return (self.offsets, *self.tables.values(), *self.bounds.values())

    def cells(self, j: int, codes: Ints) -> Ints:
        """The cell of each code of an attribute."""
        if j in self.bounds:
            return np.searchsorted(self.bounds[j], codes, "right")
        return kernels.cells(codes, self.tables.get(j, NO_BYTES), self.configuration.bits[j])

    def visit(self, request: Request, keys: Sequence[Ints], rows: int) -> Visit | None:
        """Where the matches of a request are; None if it is better to look at all rows: where the
        probe would come to more buckets than there are rows, or specifies none of the bits."""
        ranged = self._ranged(request.comparisons)
        to = self._opening(request.pattern, ranged)
        if to is None or len(to.open_cells) > max(rows, 1):
            return None
        buckets = np.zeros(len(request), np.int64)
        for n, j in enumerate(request.pattern):
            if self.configuration.bits[j]:
                buckets += self.cells(j, request.codes[n]) << self._shifts[j]
        widths = to.width
        if ranged is not None:
            low, high = self._range(ranged, request.comparisons, len(request))
            buckets += low << to.floor
            widths = np.maximum(high - low + 1, 0) << to.floor
        compared = [(keys[j], request.codes[request.pattern.index(j)]) for j in to.compared]
        compared += [(NO_INTS, NO_INTS)] * (2 - len(compared))
        return Visit(buckets, widths, to.open_cells, compared, self.offsets, to.unchecked)

    @cached_property
    def _shifts(self) -> tuple[int, ...]:
        return self.configuration.shifts

    @cached_property
    def _openings(self) -> dict[tuple[Pattern, int | None], Opening | None]:
        return {}

    def _opening(self, pattern: Pattern, ranged: int | None) -> Opening | None:
        """What of a visit depends on the access pattern alone, worked out once for each."""
        known = self._openings
        if (pattern, ranged) not in known:
            known[pattern, ranged] = _opening(self.configuration, pattern, ranged)
        return known[pattern, ranged]

    def _ranged(self, comparisons: Sequence[OrderComparison]) -> int | None:
        """The attribute by whose order matches are found: of those compared, the one with most
        bits. What others demand is checked of each match."""
        bits, keys = self.configuration.bits, self.configuration.keys
        compared = {keys + comparison.order for comparison in comparisons}
        with_bits = [j for j in sorted(compared) if bits[j]]
        return max(with_bits, key=bits.__getitem__, default=None)

    def _range(
        self, j: int, comparisons: Sequence[OrderComparison], probing: int
    ) -> tuple[Ints, Ints]:
        """First and last cell in which all comparisons with an attribute can hold."""
        low, high = np.zeros(probing, np.int64), np.full(probing, len(self.bounds[j]))
        for comparison in comparisons:
            if self.configuration.keys + comparison.order != j:
                continue
            cells = self.cells(j, comparison.values)
            if comparison.op in ("<", "<="):
                high = np.minimum(high, cells)
            else:
                low = np.maximum(low, cells)
        return low, high


class Opening(NamedTuple):
    """The buckets that an access pattern leaves open: `width` of them side by side, from each of
    `open_cells` on; `floor` bits lie below those that are fixed. `compared` are the attributes that
    are compared on the way, the others are `unchecked`."""

    open_cells: Ints
    width: Ints
    floor: int
    compared: tuple[int, ...]
    unchecked: frozenset[int]


def _opening(config: Configuration, pattern: Pattern, ranged: int | None) -> Opening | None:
    bits, shifts = config.bits, config.shifts
    fixed = [j for j in pattern if bits[j]]
    if not fixed and ranged is None:
        return None
    known = fixed if ranged is None else [*fixed, ranged]
    floor = min(shifts[j] for j in known)
    opened = [j for j in range(len(bits)) if j not in known and bits[j] and shifts[j] > floor]
    open_cells = np.zeros(1, np.int64)
    for j in opened:
        steps = np.arange(1 << bits[j]) << shifts[j]
        open_cells = (open_cells[:, None] + steps[None, :]).ravel()
    # The fewer bits an attribute has, the more of a bucket's rows differ in it.
    by_bits = sorted(pattern, key=bits.__getitem__)
    width = np.array([1 << floor])
    return Opening(np.sort(open_cells), width, floor, tuple(by_bits[:2]), frozenset(by_bits[2:]))


@dataclass(frozen=True, eq=False)
class Visit:
    """For each probing row the buckets it looks into: `widths` of them (one number for all, or one
    a row) from `buckets` on, as often as there are `open_cells`. Two of the attributes specified
    are compared on the way, the others are `unchecked`."""

    buckets: Ints
    widths: Ints
    open_cells: Ints
    compared: Sequence[tuple[Ints, Ints]]
    offsets: Shorts
    unchecked: frozenset[int]

    def probe(
        self, request: Request, stored: Stored, found: MatchBuffer, cursor: Cursor
    ) -> tuple[Cursor, int]:
        """Add matches from `cursor` on, while there is room; as `HashIndex.probe`."""
        (key, codes), (second_key, second_codes) = self.compared
        found.filled, row, slot, looked = kernels.probe_cells(
            self.buckets,
            self.widths,
            self.open_cells,
            key,
            codes,
            second_key,
            second_codes,
            request.low,
            request.high,
            NO_INTS if request.before is None else request.before,
            self.offsets,
            *stored,
            *cursor,
            found.positions,
            found.rows,
            found.filled,
        )
        return Cursor(row, slot), looked


def scan(request: Request, keys: Sequence[Ints], rows: int) -> Visit:
    """All rows as one bucket, for any partition."""
    compared = [(keys[j], codes) for j, codes in zip(request.pattern, request.codes, strict=True)]
    first_two = (compared + [(NO_INTS, NO_INTS)] * 2)[:2]
    nowhere = np.zeros(len(request), np.int64)
    offsets = np.array([0, rows], np.int32)
    return Visit(
        nowhere, _ONE, np.zeros(1, np.int64), first_two, offsets, frozenset(request.pattern[2:])
    )


def build(
    configuration: Configuration, keys: Sequence[Ints], orders: Sequence[Ints]
) -> tuple[BitIndex, Shorts | None]:
    """An index of rows with these codes, and the order they have to lie in; None if they do."""
    rows = len(keys[0]) if keys else len(orders[0]) if orders else 0
    config = configuration.for_rows(rows)
    tables: dict[int, Bytes] = {}
    bounds: dict[int, Ints] = {}
    buckets = np.zeros(rows, np.int64)
    for j, (bits, shift) in enumerate(zip(config.bits, config.shifts, strict=True)):
        if not bits:
            continue
        if j >= config.keys:
            codes = orders[j - config.keys]
            bounds[j] = _quantiles(codes, bits)
            cells = np.searchsorted(bounds[j], codes, "right")
        else:
            codes = keys[j]
            if bits <= _TABLE_BITS and rows >= _ROWS_FOR_TABLE:
                tables[j] = _table(codes, bits)
            cells = kernels.cells(codes, tables.get(j, NO_BYTES), bits)
        buckets += cells << shift
    offsets, order, in_order = kernels.by_number(buckets, config.total)
    return BitIndex(config, offsets, tables, bounds), None if in_order else order


def _table(codes: Ints, bits: int) -> Bytes:
    fine = bits + _FINE_BITS
    counts = np.bincount(kernels.cells(codes, NO_BYTES, fine), minlength=1 << fine)
    return kernels.evened(counts, np.argsort(-counts, kind="stable"), bits)


def _quantiles(codes: Ints, bits: int) -> Ints:
    """Bounds between 2^bits cells of about as many rows each; equal bounds leave cells empty."""
    ordered = np.sort(codes)
    positions = (np.arange(1, 1 << bits) * len(codes)) >> bits
    return np.asarray(ordered[positions])
