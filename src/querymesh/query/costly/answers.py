"""The answers of a function for some rows, those on which it failed among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.query.costly.calls.work import Unanswered
from querymesh.query.costly.distinct import Distinct, taken
from querymesh.query.costly.pieces import Piece
from querymesh.query.predicate.failing_rows import Raised

T = TypeVar("T")


@dataclass(frozen=True)
class FailedCall:
    """A call that failed for good: the rows it was about, and what it raised."""

    args: Sequence[pa.Array]
    rows: int
    error: Exception


@dataclass(frozen=True)
class Answers:
    """One value a row. It is NULL where the function `failed`, with the call that did, and where it
    was `unasked`, with the reason; both are by row."""

    values: pa.Array
    failed: Mapping[int, FailedCall] = field(default_factory=dict)
    unasked: Mapping[int, Unanswered] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, pieces: Sequence[Piece], args: Sequence[pa.Array], returns: pa.DataType) -> Answers:
        """What the calls of all pieces gave."""
        values: list[pa.Array] = []
        failed: dict[int, FailedCall] = {}
        unasked: dict[int, Unanswered] = {}
        for piece in pieces:
            if isinstance(piece.result, pa.Array):
                values.append(piece.result)
                continue
            values.append(pa.nulls(piece.rows, returns))
            rows = range(piece.start, piece.start + piece.rows)
            if isinstance(piece.result, Raised):
                about = [arg.slice(piece.start, piece.rows) for arg in args]
                call = FailedCall(about, piece.rows, piece.result.error)
                failed |= dict.fromkeys(rows, call)
            else:
                unasked |= dict.fromkeys(rows, piece.result)
        return cls(values[0] if len(values) == 1 else pa.concat_arrays(values), failed, unasked)

    def followed_by(self, other: Answers) -> Answers:
        """These, and those of the rows that come after."""
        rows = range(len(self), len(self) + len(other))
        return Answers(
            pa.concat_arrays([self.values, other.values]),
            {**self.failed, **_moved(other.failed, rows)},
            {**self.unasked, **_moved(other.unasked, rows)},
        )

    def mixed_with(self, known: pa.Array, mine: Ints, rows: int) -> Answers:
        """These are the answers of the rows `mine`; the others, in their order, are known."""
        if not len(known):
            return self
        place = np.empty(rows, dtype=np.int64)
        others = np.ones(rows, dtype=bool)
        others[mine] = False
        place[mine] = np.arange(len(mine))
        place[others] = len(mine) + np.arange(len(known))
        values = taken(pa.concat_arrays([self.values, known]), place)
        return Answers(values, _moved(self.failed, mine), _moved(self.unasked, mine))

    def spread(self, kinds: Distinct) -> Answers:
        """Those of kinds, for all rows."""
        if len(kinds) == len(kinds.kind_of):
            return self
        values = kinds.spread(self.values)
        return Answers(values, _spread(self.failed, kinds), _spread(self.unasked, kinds))


class AnswersByRow:
    """Answers that come in any order of rows."""

    def __init__(self, returns: pa.DataType, rows: int) -> None:
        self._parts: list[pa.Array] = [pa.nulls(0, returns)]
        self._place: Ints = np.empty(rows, dtype=np.int64)
        self._rows = 0
        self._failed: dict[int, FailedCall] = {}
        self._unasked: dict[int, Unanswered] = {}

    def put(self, rows: Sequence[int] | Ints, values: pa.Array) -> None:
        """The values of some rows."""
        self._parts.append(values)
        self._place[rows] = np.arange(self._rows, self._rows + len(rows))
        self._rows += len(rows)

    def put_all(self, rows: Sequence[int] | Ints, answers: Answers) -> None:
        """The answers of some rows, with those that failed."""
        self.put(rows, answers.values)
        self._failed |= _moved(answers.failed, rows)
        self._unasked |= _moved(answers.unasked, rows)

    def answers(self) -> Answers:
        """All of them, by row."""
        values = taken(pa.concat_arrays(self._parts), self._place)
        return Answers(values, self._failed, self._unasked)


def _moved(found: Mapping[int, T], rows: Sequence[int] | Ints) -> dict[int, T]:
    """What was found of rows, by the numbers that these have elsewhere."""
    return {int(rows[row]): each for row, each in found.items()}


def _spread(of_kinds: Mapping[int, T], kinds: Distinct) -> dict[int, T]:
    if not of_kinds:
        return {}
    rows = np.flatnonzero(np.isin(kinds.kind_of, list(of_kinds)))
    return {int(row): of_kinds[int(kinds.kind_of[row])] for row in rows}
