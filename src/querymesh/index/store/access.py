"""What a STeM asks of any kind of index.

`access_path.py` says which index a request goes to; `index_plan.py` how partitions come to have it.
"""

from __future__ import annotations

from typing import Protocol

from querymesh.arrays import Array
from querymesh.index.store.request import Cursor, MatchBuffer, Request
from querymesh.index.store.stored import Stored


class Access(Protocol):
    """How the rows of one partition are found: what every index can do."""

    @property
    def nbytes(self) -> int:
        """Memory that the index takes."""

    def arrays(self) -> tuple[Array, ...]:
        """The arrays that the index consists of."""

    def probe(
        self, request: Request, stored: Stored, found: MatchBuffer, cursor: Cursor
    ) -> tuple[Cursor, int]:
        """Add candidates from `cursor` on until `found` is full.

        Returns where to go on, and how many stored rows were looked at. A candidate has the same
        combined code and lies within the bounds of the request; it may still differ in an
        attribute.
        """
