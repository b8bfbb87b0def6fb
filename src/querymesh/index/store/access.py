"""What a STeM asks of any kind of index.

`access_path.py` says which index a request goes to; `index_plan.py` how partitions come to have it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from querymesh.index.store.request import Cursor, MatchBuffer, Request
from querymesh.index.store.stored import Stored


class Access(Protocol):
    """An index of one partition."""

    @property
    def nbytes(self) -> int:
        """Memory that the index takes."""

    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """What the index consists of."""

    def probe(
        self, request: Request, stored: Stored, found: MatchBuffer, cursor: Cursor
    ) -> tuple[Cursor, int]:
        """Add candidates from `cursor` on until `found` is full.

        Returns where to go on, and how many stored rows were looked at. A candidate has the same
        combined code and lies within the bounds of the request; it may still differ in an
        attribute.
        """
