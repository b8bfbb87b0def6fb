"""Which rows a function is really asked about: none twice, where that costs less than to ask.

::

    first rows ──> what a call costs, how many inputs repeat ──> remember across batches │ within
                                                                 one batch │ nothing

What a call costs is measured as it goes, and so is how often inputs repeat: on cheap functions, and
where every input is new, nothing is looked up, and it is tried again much later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import pyarrow as pa

from querymesh.query.costly.distinct import Distinct, distinct_rows, keys_of
from querymesh.query.costly.memo import Memo
from querymesh.query.costly.memory import Memory, memories
from querymesh.query.costly.pieces import Piece
from querymesh.query.predicate.failing_rows import Raised
from querymesh.worker_cache import WorkerCache

Ask = Callable[[Sequence[pa.Array], int], list[Piece]]
"""Asks a function about rows: arrays of checked answers, or `Raised`, piece by piece."""

FIRST_ROWS = 64
"""A function is asked about so many rows first, and judged by them."""

KEY_US = 4.0
"""What it costs to look one input up, or to remember its answer."""

ENCODE_US = 0.2
"""What it costs to tell one value of a column apart from the others of its batch."""

ALWAYS_US = 1000.0
"""A call that costs more is remembered even where inputs do not seem to repeat."""

LONG = 1 << 16
"""Rows after which it is looked again whether remembering pays; twice as many each further time."""


@dataclass
class Tally:
    """What became of the rows of one function in this process.

    `rows` were to be answered; `distinct` is how many of them differed, batch by batch, as far as
    anybody looked; the function was `asked` about so many, in so many `calls`.
    """

    rows: int = 0
    distinct: int = 0
    asked: int = 0
    calls: int = 0

    def minus(self, other: Tally) -> Tally:
        """What came after another."""
        return Tally(
            self.rows - other.rows, self.distinct - other.distinct,
            self.asked - other.asked, self.calls - other.calls,
        )  # fmt: skip


@dataclass
class Asking:
    """One function in this process: what is remembered of it, and whether that pays.

    `memo` is None where it is ours to say.
    """

    memo: Memo | None
    memory: Memory
    tally: Tally = field(default_factory=Tally)
    call_us: float | None = None
    """What a row costs that the function is asked about; None before it was asked."""
    remembers: bool = True
    """Whether answers are looked up and remembered across batches."""
    groups: bool = True
    """Whether equal rows of one batch are asked about once."""
    _until_next_look: int = 0
    _pause: int = LONG

    def answers(self, ask: Ask, args: Sequence[pa.Array], n: int) -> list[Piece]:
        """The answers of n rows, asking no more than is needed."""
        if self.memo is None and self.call_us is None and n > FIRST_ROWS:
            head = self._answers(ask, [arg.slice(0, FIRST_ROWS) for arg in args], FIRST_ROWS)
            rest = n - FIRST_ROWS
            tail = self._answers(ask, [arg.slice(FIRST_ROWS, rest) for arg in args], rest)
            later = (Piece(each.start + FIRST_ROWS, each.rows, each.result) for each in tail)
            return [*head, *later]
        return self._answers(ask, args, n)

    def _answers(self, ask: Ask, args: Sequence[pa.Array], n: int) -> list[Piece]:
        self.tally.rows += n
        if not self.groups:
            self._until_next_look -= n
            if self._until_next_look > 0:
                self.tally.distinct += n
                return self._asked(ask, args, n)
            self.groups = self.remembers = True
        kinds = distinct_rows(args)
        self.tally.distinct += len(kinds)
        found = self._of_kinds(ask, kinds.take(args), len(kinds))
        if self.memo is None:
            self._judge(n, len(kinds), len(args))
        return _spread(found, kinds)

    def _of_kinds(self, ask: Ask, args: Sequence[pa.Array], n: int) -> list[Piece]:
        """The answers of rows that differ: remembered ones, and those of the function."""
        if not self.remembers:
            return self._asked(ask, args, n)
        keys = keys_of(args)
        known = self.memory.find(keys)
        if not known:
            return self._remembered(keys, self._asked(ask, args, n))
        unknown = [at for at, key in enumerate(keys) if key not in known]
        if unknown:
            new_args = [arg.take(pa.array(unknown)) for arg in args]
            new_keys = [keys[at] for at in unknown]
            pieces = self._remembered(new_keys, self._asked(ask, new_args, len(unknown)))
            failed: dict[bytes, Raised] = {}
            for piece in pieces:
                of_piece = new_keys[piece.start : piece.start + piece.rows]
                if isinstance(piece.result, Raised):
                    failed |= dict.fromkeys(of_piece, piece.result)
                else:
                    known |= dict(zip(of_piece, piece.result.to_pylist(), strict=True))
            if failed:
                values = [failed[key] if key in failed else known[key] for key in keys]
                return [Piece(at, 1, value) for at, value in enumerate(values)]
        return [Piece(0, n, [known[key] for key in keys])]

    def _remembered(self, keys: Sequence[bytes], pieces: list[Piece]) -> list[Piece]:
        good = [piece for piece in pieces if not isinstance(piece.result, Raised)]
        of_pieces = [keys[piece.start : piece.start + piece.rows] for piece in good]
        values = [value for piece in good for value in piece.result.to_pylist()]
        self.memory.put([key for each in of_pieces for key in each], values)
        return pieces

    def _asked(self, ask: Ask, args: Sequence[pa.Array], n: int) -> list[Piece]:
        started = perf_counter()
        pieces = ask(args, n)
        self.call_us = 1e6 * (perf_counter() - started) / n
        self.tally.asked += n
        self.tally.calls += len(pieces)
        return pieces

    def _judge(self, rows: int, kinds: int, columns: int) -> None:
        """Whether to go on, by what was seen of this batch."""
        if self.call_us is None:  # all was known
            return
        new = self.tally.asked / self.tally.rows
        saved_us = self.call_us * (1.0 - new)
        self.remembers = self.call_us > ALWAYS_US or saved_us > KEY_US * kinds / rows
        saved_us = self.call_us * (1.0 - kinds / rows)
        self.groups = self.remembers or saved_us > ENCODE_US * columns
        if not self.groups:
            self._until_next_look = self._pause
            self._pause *= 2


def _spread(pieces: list[Piece], kinds: Distinct) -> list[Piece]:
    """The answers of kinds, for all rows; where some failed, row by row."""
    rows = len(kinds.kind_of)
    if len(pieces) == 1 and pieces[0].rows == rows:
        return pieces
    if not any(isinstance(piece.result, Raised) for piece in pieces):
        values = [value for piece in pieces for value in _listed(piece.result)]
        return [Piece(0, rows, [values[kind] for kind in kinds.kind_of])]
    by_kind: list[Any] = []
    for piece in pieces:
        failed = isinstance(piece.result, Raised)
        by_kind += [piece.result] * piece.rows if failed else _listed(piece.result)
    return [Piece(row, 1, by_kind[kind]) for row, kind in enumerate(kinds.kind_of)]


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else values.to_pylist()


_askings: WorkerCache[str, Asking] = WorkerCache(64)
"""By the identity of a function in a run."""


def asking_of(identity: str, name: str, memo: Memo | None) -> Asking:
    """What this process remembers of a function in a run."""

    def make() -> Asking:
        return Asking(memo, memory_of(identity, name, memo))

    return _askings.get_or_make(identity, make)


def memory_of(identity: str, name: str, memo: Memo | None) -> Memory:
    """The answers that this process remembers of a function in a run."""
    return memories.get_or_make(identity, lambda: Memory(memo or Memo(), name))
