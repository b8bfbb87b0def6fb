"""The seam for kinds of index: what a STeM asks of one.

`ways.py` says which it asks; `plan.py` how partitions come to have them.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from querymesh.index.store.request import Found, Place, Request
from querymesh.index.store.stored import Stored


class Access(Protocol):
    """An index of one partition."""

    @property
    def nbytes(self) -> int:
        """Memory that the index takes."""

    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """What the index consists of."""

    def probe(
        self, request: Request, stored: Stored, found: Found, place: Place
    ) -> tuple[Place, int]:
        """Add candidates from `place` on until `found` is full; tell where to go on, and how many
        stored rows were looked at. A candidate has the same combined code and lies within the
        bounds of the request; it may still differ in an attribute."""
