"""The seam for kinds of index: what a STeM asks of one, and which there are.

An index is built for one partition from the equality codes of the attributes of an access pattern,
and probed with a request of that pattern. A kind that serves several patterns with one structure
gives the same object for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from querymesh.index.codes import Ints, combine
from querymesh.index.hash_index import HashIndex
from querymesh.index.request import Found, Place, Request
from querymesh.index.stored import Stored


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


def _hash(keys: Sequence[Ints]) -> Access:
    return HashIndex.build(combine(keys))


INDEXES: Mapping[str, Callable[[Sequence[Ints]], Access]] = {"hash": _hash}
"""By name, how an index is built from the codes of its attributes."""
