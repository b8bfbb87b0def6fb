"""The rows of a partition sorted by an attribute, so that `stored < x` is a range of them.

codes  [ -4  0  0  7  9 ]     stored >= 0 and stored < 9  is  slots 1 to 4,
order  [  2  0  3  1  4 ]     rows 0, 3 and 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Ints, Shorts
from querymesh.index.kernels import kernels
from querymesh.index.store.request import Cursor, MatchBuffer, OrderComparison, Request
from querymesh.index.store.stored import NO_INTS, NO_SHORTS, Stored


@dataclass(frozen=True, eq=False)
class Ranges:
    """For each probing row the slots in which its matches are; all rows are a range as well."""

    starts: Ints
    stops: Ints
    order: Shorts
    search_steps: int

    @classmethod
    def everything(cls, probing: int, rows: int) -> Ranges:
        """All stored rows for each probing row."""
        return cls(np.zeros(probing, np.int64), np.full(probing, rows), NO_SHORTS, 0)

    def probe(
        self, request: Request, stored: Stored, found: MatchBuffer, cursor: Cursor
    ) -> tuple[Cursor, int]:
        """As `HashIndex.probe`; the search for the ranges counts where it begins."""
        begins = cursor == (0, 0)
        found.filled, row, slot, looked = kernels.probe_range(
            self.starts,
            self.stops,
            request.low,
            request.high,
            NO_INTS if request.before is None else request.before,
            self.order,
            *stored,
            *cursor,
            found.positions,
            found.rows,
            found.filled,
        )
        return Cursor(row, slot), looked + self.search_steps * begins


@dataclass(frozen=True, eq=False)
class OrderIndex:
    """Order codes, rising, and the rows that have them."""

    codes: Ints
    order: Shorts

    @classmethod
    def build(cls, codes: Ints) -> OrderIndex:
        """An index of rows that have these order codes."""
        order = np.argsort(codes, kind="stable").astype(np.int32)
        return cls(codes[order], order)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self.codes.nbytes + self.order.nbytes

    def ranges(self, comparisons: Sequence[OrderComparison]) -> Ranges:
        """Where all of these comparisons hold, each with the attribute of this index."""
        rows, probing = len(self.codes), len(comparisons[0].values)
        starts, stops = np.zeros(probing, np.int64), np.full(probing, rows)
        for comparison in comparisons:
            side = "left" if comparison.op in ("<", ">=") else "right"
            bound = np.searchsorted(self.codes, comparison.values, side)  # type: ignore[call-overload]
            if comparison.op in ("<", "<="):
                stops = np.minimum(stops, bound)
            else:
                starts = np.maximum(starts, bound)
        steps = len(comparisons) * probing * rows.bit_length()
        return Ranges(starts, stops, self.order, steps)
