"""The rows of a partition sorted by an attribute, so that `stored < x` is a range of them.

codes  [ -4  0  0  7  9 ]     stored >= 0 and stored < 9  is  slots 1 to 4,
order  [  2  0  3  1  4 ]     rows 0, 3 and 1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Ints, Shorts


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
