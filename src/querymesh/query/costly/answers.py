"""The answers of a function for some rows, those on which it failed among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.query.costly.distinct import Distinct
from querymesh.query.costly.pieces import Piece
from querymesh.query.predicate.failing_rows import Raised


@dataclass(frozen=True)
class FailedCall:
    """A call that failed for good: the rows it was about, and what it raised."""

    args: Sequence[pa.Array]
    rows: int
    error: Exception


@dataclass(frozen=True)
class Answers:
    """One value a row, NULL where the function failed; `failed` has the calls that did, by row."""

    values: pa.Array
    failed: Mapping[int, FailedCall] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, pieces: Sequence[Piece], args: Sequence[pa.Array], returns: pa.DataType) -> Answers:
        """What the calls of all pieces gave."""
        values: list[pa.Array] = []
        failed: dict[int, FailedCall] = {}
        for piece in pieces:
            if isinstance(piece.result, Raised):
                about = [arg.slice(piece.start, piece.rows) for arg in args]
                call = FailedCall(about, piece.rows, piece.result.error)
                failed |= dict.fromkeys(range(piece.start, piece.start + piece.rows), call)
                values.append(pa.nulls(piece.rows, returns))
            else:
                values.append(piece.result)
        return cls(values[0] if len(values) == 1 else pa.concat_arrays(values), failed)

    def followed_by(self, other: Answers) -> Answers:
        """These, and those of the rows that come after."""
        later = {len(self) + row: call for row, call in other.failed.items()}
        return Answers(pa.concat_arrays([self.values, other.values]), {**self.failed, **later})

    def mixed_with(self, known: pa.Array, mine: Ints, rows: int) -> Answers:
        """These are the answers of the rows `mine`; the others, in their order, are known."""
        if not len(known):
            return self
        place = np.empty(rows, dtype=np.int64)
        others = np.ones(rows, dtype=bool)
        others[mine] = False
        place[mine] = np.arange(len(mine))
        place[others] = len(mine) + np.arange(len(known))
        values = pa.concat_arrays([self.values, known]).take(pa.array(place))
        return Answers(values, {int(mine[row]): call for row, call in self.failed.items()})

    def spread(self, kinds: Distinct) -> Answers:
        """Those of kinds, for all rows."""
        if len(kinds) == len(kinds.kind_of):
            return self
        failed: dict[int, FailedCall] = {}
        if self.failed:
            for row in np.flatnonzero(np.isin(kinds.kind_of, list(self.failed))):
                failed[int(row)] = self.failed[int(kinds.kind_of[row])]
        return Answers(kinds.spread(self.values), failed)
