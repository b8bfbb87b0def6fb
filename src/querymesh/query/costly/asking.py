"""Which rows a function is really asked about: none twice, where that costs less than to ask.

::

    first rows ──> what a call costs, how many inputs repeat ──> remember across batches │ within
                                                                 one batch │ nothing

What a call costs is measured as it goes, and so is how often inputs repeat: on cheap functions, and
where every input is new, nothing is looked up, and it is looked again much later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.errors import SetupError
from querymesh.query.costly.account.permits import Permits
from querymesh.query.costly.account.price import PARTS, SECONDS_A_UNIT
from querymesh.query.costly.answers import Answers, AnswersByRow
from querymesh.query.costly.calls.work import Unanswered
from querymesh.query.costly.distinct import Distinct, distinct_rows, keys_of, taken
from querymesh.query.costly.memory import Memory
from querymesh.query.costly.pieces import Heard, Piece
from querymesh.query.costly.proxy.in_use import ProxyInUse
from querymesh.query.costly.sharing.job_answers import SharedAnswers
from querymesh.query.costly.sharing.telling import Telling
from querymesh.query.costly.tally import Tally

Ask = Callable[[Sequence[pa.Array], int, Heard | None], list[Piece]]
"""Asks a function about rows: arrays of checked answers or `Raised`, piece by piece; those that can
be told one by one are, as they come."""

FIRST_ROWS = 64
"""A function is asked about so many rows first, and judged by them."""

ALWAYS_US = 1000.0
"""The answer of a call that costs more is remembered even where inputs do not seem to repeat."""

LOT = 64
"""So many inputs a worker claims at a time, more where more calls run at once: those it has not
claimed others may ask about meanwhile."""

FIRST_WAIT_S, LONGEST_WAIT_S = 0.005, 0.25
"""After what time it is looked again for answers that another worker is asking for."""

TRIED_INPUTS, TRIED_SHARE = 1 << 16, 0.1
"""Where looking costs at most this share of a call, inputs are remembered for so long without any
having come again: what repeats may lie further apart than a batch."""

PAUSE_ROWS = 1 << 16
"""Rows after which it is looked again whether inputs repeat; twice as many each further time."""


_log = logging.getLogger("querymesh")


@dataclass
class Asking:
    """One function in this process: what is remembered of it, and whether that pays.

    `always` is whether it is remembered in any case, `never` whether nothing is; else that is for
    what is measured to say.
    """

    memory: Memory
    returns: pa.DataType
    permits: Permits
    always: bool = False
    never: bool = False
    proxy: ProxyInUse | None = None
    """What decides clear rows without a call, if the user asked for that."""
    shared: SharedAnswers | None = None
    """What all workers of the job have asked; where it is None, each asks for itself."""
    lot: int = LOT
    """So many inputs are claimed at a time."""
    seconds_a_unit: float = SECONDS_A_UNIT
    """What a unit of money is worth."""
    then: str = "stop"
    """What becomes of rows that the budget cannot pay for."""
    tally: Tally = field(default_factory=Tally)
    call_us: float | None = None
    """What a row costs that the function is asked about; None before it was asked."""
    tell_us: float = 0.0
    """What it costs to tell a row from the others of its batch."""
    find_us: float = 0.0
    """What it costs to find the answer of an input, or to remember it."""
    _remembers: bool = True
    _groups: bool = True
    _looked_up: int = 0
    _found: int = 0
    _until_next_look: int = 0
    _pause: int = PAUSE_ROWS

    @property
    def remembers(self) -> bool:
        """Whether answers are kept across batches."""
        return not self.never and (self.always or self._remembers)

    @property
    def look_us(self) -> float:
        """What a row costs whose answer is known."""
        return self.tell_us + self.find_us

    def answers(self, ask: Ask, args: Sequence[pa.Array], n: int) -> Answers:
        """The answers of n rows, asking no more than is needed."""
        if self.proxy is None:
            return self._exactly(ask, args, n)
        before = self.proxy.audit
        found = self.proxy.answers(lambda args, n: self._exactly(ask, args, n), args, n)
        self.tally.proxied = self.tally.proxied.plus(self.proxy.audit.minus(before))
        return found

    def _exactly(self, ask: Ask, args: Sequence[pa.Array], n: int) -> Answers:
        """The answers of the function itself."""
        if self.never:
            self.tally.rows, self.tally.distinct = self.tally.rows + n, self.tally.distinct + n
            return self._asked(ask, args, n)
        if not self.always and self.call_us is None and n > FIRST_ROWS:
            head, tail = (
                ([arg.slice(start, rows) for arg in args], rows)
                for start, rows in ((0, FIRST_ROWS), (FIRST_ROWS, n - FIRST_ROWS))
            )
            return self._answers(ask, *head).followed_by(self._answers(ask, *tail))
        return self._answers(ask, args, n)

    def _answers(self, ask: Ask, args: Sequence[pa.Array], n: int) -> Answers:
        self.tally.rows += n
        if not self._is_time_to_look(n):
            self.tally.distinct += n
            return self._asked(ask, args, n)
        started = perf_counter()
        kinds = distinct_rows(args)
        self.tell_us = 1e6 * (perf_counter() - started) / n
        self.tally.distinct += len(kinds)
        found = self._of_kinds(ask, kinds, args)
        if not self.always:
            self._judge(1.0 - len(kinds) / n)
        return found

    def _is_time_to_look(self, rows: int) -> bool:
        """Whether equal rows are told from others in this batch."""
        if self.always or self._groups:
            return True
        self._until_next_look -= rows
        return self._until_next_look <= 0

    def _of_kinds(self, ask: Ask, kinds: Distinct, args: Sequence[pa.Array]) -> Answers:
        inputs = kinds.take(args)
        if not self.remembers:
            return self._asked(ask, inputs, len(kinds)).spread(kinds)
        started = perf_counter()
        keys = keys_of(inputs)
        known = self.memory.find(keys)
        self.find_us = 1e6 * (perf_counter() - started) / len(keys)
        self._looked_up, self._found = self._looked_up + len(keys), self._found + len(known)
        return self._of_inputs(ask, inputs, keys, known).spread(kinds)

    def _of_inputs(
        self, ask: Ask, inputs: Sequence[pa.Array], keys: Sequence[bytes], known: dict[bytes, Any]
    ) -> Answers:
        """The answers of inputs that differ, of which some are known."""
        unknown = np.array([at for at, key in enumerate(keys) if key not in known], dtype=np.int64)
        values = pa.array([known[key] for key in keys if key in known], self.returns)
        if not len(unknown):
            return Answers(values)
        new_keys = [keys[at] for at in unknown]
        new_inputs = [taken(arg, unknown) for arg in inputs] if len(known) else inputs
        found = self._of_unknown(ask, new_inputs, new_keys)
        return found.mixed_with(values, unknown, len(keys))

    def _of_unknown(self, ask: Ask, args: Sequence[pa.Array], keys: Sequence[bytes]) -> Answers:
        """The answers of inputs that this worker does not know, those that others have asked or
        are asking about among them."""
        if self.shared is None or not (self.always or (self.call_us or 0.0) > ALWAYS_US):
            return self._asked(ask, args, len(keys), keys)
        try:
            return self._shared(self.shared, ask, args, keys)
        except SetupError as problem:
            _log.warning("workers ask for themselves what others may have asked: %s", problem)
            self.shared = None
        # What was asked until then is remembered.
        return self._of_inputs(ask, args, keys, self.memory.find(keys))

    def _shared(
        self, shared: SharedAnswers, ask: Ask, args: Sequence[pa.Array], keys: Sequence[bytes]
    ) -> Answers:
        """The same, with what all workers of the job have asked."""
        found = AnswersByRow(self.returns, len(keys))
        waiting = list(range(len(keys)))
        begun, size, pause_s = 0, self.lot, FIRST_WAIT_S
        while waiting:
            # Those not looked at yet first: whoever is asking about the others may be done by then.
            lot = waiting[:size]
            claim = shared.claim([keys[at] for at in lot])
            if claim.values is not None:
                found.put([lot[at] for at in claim.known], claim.values.cast(self.returns))
                if shared.ttl is None:  # else nobody here knows how old they are
                    self.memory.learn_now([keys[lot[at]] for at in claim.known], claim.values)
            if claim.mine:
                mine = np.array([lot[at] for at in claim.mine], dtype=np.int64)
                inputs = [taken(arg, mine) for arg in args]
                wanted = [keys[row] for row in mine]
                found.put_all(mine, self._asked(ask, inputs, len(mine), wanted, shared))
            gone = {*claim.known, *claim.mine}
            waiting = waiting[len(lot) :] + [row for at, row in enumerate(lot) if at not in gone]
            begun += len(lot)
            # Calls of a lot wait for its slowest: where nobody else asks about the same, it grows.
            size = 2 * size if len(gone) == len(lot) else self.lot
            if not gone and begun >= len(keys):
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_WAIT_S)
        self.memory.flush()
        return found.answers()

    def _asked(
        self,
        ask: Ask,
        args: Sequence[pa.Array],
        n: int,
        keys: Sequence[bytes] = (),
        shared: SharedAnswers | None = None,
    ) -> Answers:
        """What the function says; under their keys the answers are remembered, and shared."""
        telling = Telling(keys, self.memory, shared) if keys else None
        started = perf_counter()
        try:
            pieces = ask(args, n, None if telling is None else telling.heard)
        except BaseException:
            if telling is not None:
                telling.broken_off()
            raise
        seconds = perf_counter() - started
        self.call_us = 1e6 * seconds / n
        self.tally.seconds += seconds
        for piece in pieces:
            unasked = isinstance(piece.result, Unanswered)
            self.tally.asked += 0 if unasked else piece.rows
            self.tally.unasked += piece.rows if unasked else 0
            self.tally.calls += piece.calls
            self.tally.money += piece.money
        if telling is not None:
            telling.end(pieces)
        return Answers.of(pieces, args, self.returns)

    def _judge(self, repeated: float) -> None:
        """Whether to go on, by the share of a batch's rows that were equal to others of it."""
        if self.call_us is None:  # all was known
            return
        found = self._found / self._looked_up if self._looked_up else 0.0
        saved_us = self.call_us * max(repeated, found)
        is_tried = self._looked_up < TRIED_INPUTS and self.look_us < TRIED_SHARE * self.call_us
        self._remembers = self.call_us > ALWAYS_US or saved_us > self.look_us or is_tried
        self._groups = self._remembers or self.call_us * repeated > self.tell_us
        if not self._groups:
            self._until_next_look = self._pause
            self._pause *= 2

    @property
    def kept_where(self) -> str:
        """What became of the answers that were paid for, for an error."""
        path = self.memory.memo.path
        if path is not None:
            return f"All answers are kept in {path}, and a further run begins with them."
        return "Answers are lost with this job; with memo=qm.Memo(path=...) a further run has them."

    @property
    def money_us(self) -> float:
        """What the money of a row is worth in microseconds that the function was asked about."""
        if not self.tally.asked:
            return 0.0
        return 1e6 * self.seconds_a_unit * self.tally.money / PARTS / self.tally.asked

    def snapshot(self) -> Tally:
        """The counts so far, to be compared with later ones."""
        return replace(self.tally)
