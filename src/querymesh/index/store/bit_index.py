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
from querymesh.index.store.columns import NO_BYTES
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.request import Pattern

_TABLE_BITS = 8
"""An attribute with more bits is hashed to its cells without a table: with so many, one full cell
no longer matters to the others."""

_FINE_BITS = 4
"""A table has two to this power as many fine cells as cells."""

_ROWS_FOR_TABLE = 256
"""Fewer rows tell too little of how values are spread."""


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

    @cached_property
    def _openings(self) -> dict[tuple[Pattern, int | None], Opening | None]:
        return {}

    def opening(self, pattern: Pattern, ranged: int | None) -> Opening | None:
        """The buckets that an access pattern leaves open, worked out once for each; None if it
        specifies none of the bits. `ranged` is an attribute found by its order, if one is."""
        known = self._openings
        if (pattern, ranged) not in known:
            known[pattern, ranged] = _opening(self.configuration, pattern, ranged)
        return known[pattern, ranged]

    def ranged(self, compared: Sequence[tuple[str, int]]) -> int | None:
        """The attribute by whose order matches are found: of those compared, the one with most
        bits. What others demand is checked of each match."""
        bits, keys = self.configuration.bits, self.configuration.keys
        with_bits = [j for j in sorted({keys + order for _, order in compared}) if bits[j]]
        return max(with_bits, key=bits.__getitem__, default=None)


class Opening(NamedTuple):
    """The buckets that an access pattern leaves open: those of `floor` bits side by side, from each
    of `open_cells` on."""

    open_cells: Ints
    floor: int


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
    return Opening(np.sort(open_cells), floor)


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
