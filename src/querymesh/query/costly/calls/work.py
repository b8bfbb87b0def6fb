"""The pieces of one batch while they are called: which is next, and what became of each.

::

    begin()  0 1 2 3 4 ...      a piece is cut out of its arrays when it begins, not before
    finish() Raised │ Unanswered │ what the function gave
    stop()   nothing begins any more; what is under way is waited for, unless the batch has failed
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from querymesh.errors import PredicateError
from querymesh.query.costly.account.allowance import AtEnd, Later
from querymesh.query.costly.account.permits import Permit, Permits
from querymesh.query.costly.calling import Calling
from querymesh.query.costly.calls.lanes import NoRoomError
from querymesh.query.costly.calls.refusals import chain_of, retry_after_s, was_refused
from querymesh.query.predicate.failing_rows import Raised

Call = Callable[[Sequence[pa.Array], int], Any]
"""Of arrays and the number of their rows, what the function gives: for an `async def` what is to be
awaited."""

TRACEBACKS = 16
"""Of so many errors at least it is kept where they were raised. A traceback holds all arrays of its
call, and where many fail, memory is to be bounded by the calls that run at once."""


Heard = Callable[[int, pa.Array], None]
"""Is told the answers of a piece, and its first row, as they come."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Stands for the result of rows that the function was not asked about.

    `end` is there where the budget is at its end; otherwise another piece had failed for good.
    """

    end: AtEnd | None = None


@dataclass(slots=True)
class Attempt:
    """How one piece is getting on: attempts made, and the leave for the one to come."""

    at: int
    args: list[pa.Array]
    rows: int
    made: int = 0
    money: int = 0
    permit: Permit | None = None
    error: Exception | None = None


class Work:
    """Shared by the threads, or the tasks of an event loop, that call one batch."""

    def __init__(
        self,
        call: Call,
        calling: Calling,
        args: Sequence[pa.Array],
        cuts: Sequence[tuple[int, int]],
        permits: Permits,
        *,
        by_row: bool,
        stop_at_failure: bool,
        heard: Heard | None = None,
    ) -> None:
        self.call = call
        self.calling = calling
        self.cuts = cuts
        self.results: list[Any] = [Unanswered()] * len(cuts)
        self.calls = [0] * len(cuts)
        self.money = [0] * len(cuts)
        self.stopped = threading.Event()
        self.ended = threading.Event()
        """Nobody works any more, or the batch has failed."""
        self.failed: BaseException | None = None
        self._args = args
        self._permits = permits
        self._by_row = by_row
        self._stop_at_failure = stop_at_failure
        self._heard = heard
        self._lock = threading.Lock()
        self._next = 0
        self._failures = 0
        self._at_end = False
        self._workers = 0
        self._running: dict[int, Attempt] = {}
        self._prices: dict[int, int] = {}
        self._not_before = 0.0

    def begin(self) -> Attempt | None:
        """The next piece; None if there is none, or no more is to begin."""
        with self._lock:
            if self.is_all_begun:
                return None
            at = self._next
            self._next += 1
            attempt = self._running[at] = Attempt(at, self._cut(at), self.cuts[at][1])
            return attempt

    @property
    def is_all_begun(self) -> bool:
        """Whether there is nothing to begin any more."""
        return self.stopped.is_set() or self._at_end or self._next == len(self.cuts)

    def wait_s(self, attempt: Attempt, *, at_hand: bool = False) -> float | None:
        """How long to wait before this is asked again; 0 if the call may be made now.

        None: the piece is finished. `at_hand`: do not ask the driver; below 0 if that is needed.
        """
        if self.stopped.is_set():
            self._give_back(attempt)
            self.finish(attempt, Unanswered() if attempt.error is None else Raised(attempt.error))
            return None
        if (pause_s := self._not_before - time.monotonic()) > 0:
            return pause_s
        if attempt.permit is None:
            money = self._price(attempt.at)
            if at_hand:
                attempt.permit = self._permits.take_at_hand(money)
                if attempt.permit is None:
                    return -1.0
            else:
                answer = self._permits.take(money, self._ahead)
                if isinstance(answer, AtEnd):
                    self._at_end = True
                    self.finish(attempt, Unanswered(answer))
                    return None
                if isinstance(answer, Later):
                    return answer.seconds
                attempt.permit = answer
        if attempt.permit.is_over:
            self._give_back(attempt)
            return self.wait_s(attempt, at_hand=at_hand)
        return max(attempt.permit.wait_s, 0.0)

    def succeeded(self, attempt: Attempt, result: Any) -> None:
        """The call gave something."""
        self._count(attempt, is_paid=True)
        self.finish(attempt, result)

    def pause_s(self, attempt: Attempt, error: Exception) -> float | None:
        """How long to wait before a call that raised is tried again; None if it has failed."""
        if isinstance(error, NoRoomError):
            self._give_back(attempt)
            attempt.made += 1
        else:
            self._count(attempt, is_paid=not was_refused(error))
        if isinstance(error, PredicateError):
            self.stopped.set()
            raise error
        attempt.error = error
        pause_s = self.calling.pause_after(error, attempt.made, random.random())
        if pause_s is None or self.stopped.is_set():
            self.finish(attempt, Raised(error))
            return None
        if retry_after_s(error):  # then it wants no other call either
            self._not_before = max(self._not_before, time.monotonic() + pause_s)
        return pause_s

    def finish(self, attempt: Attempt, result: Any) -> None:
        """What became of a piece, once."""
        with self._lock:
            if self._running.pop(attempt.at, None) is None:
                return
            self.results[attempt.at] = result
        if self._heard is not None and isinstance(result, pa.Array):
            self._heard(self.cuts[attempt.at][0], result)
        if not isinstance(result, Raised):
            return
        self._failures += 1
        if self._failures > max(self.calling.concurrency, TRACEBACKS):
            for each in chain_of(result.error):
                each.__traceback__ = None
        if self._stop_at_failure:
            self.stopped.set()

    def give_up_rest(self, error: Exception) -> None:
        """All pieces that have not begun have failed."""
        while (attempt := self.begin()) is not None:
            self.finish(attempt, Raised(error))

    def give_up_running(self, error: Exception) -> None:
        """All pieces under way have failed."""
        for attempt in list(self._running.values()):
            if attempt.permit is not None:
                self._count(attempt, is_paid=True)
            self.finish(attempt, Raised(error))

    def enter(self) -> None:
        """One more works on this."""
        with self._lock:
            self._workers += 1

    def leave(self) -> None:
        """One fewer works on this; the last one ends it."""
        with self._lock:
            self._workers -= 1
            last = self._workers == 0
        if last:
            self.ended.set()

    def fail(self, error: BaseException) -> None:
        """The batch has failed: it is not waited for."""
        if self.failed is None:
            self.failed = error
        self.stopped.set()
        self.ended.set()

    def close(self) -> None:
        """Nothing begins any more. What is still under way counts as paid for."""
        self.stopped.set()
        for attempt in list(self._running.values()):
            if attempt.permit is not None:
                self._count(attempt, is_paid=True)
        self._permits.flush()

    def _count(self, attempt: Attempt, *, is_paid: bool) -> None:
        with self._lock:
            permit, attempt.permit = attempt.permit, None
        if permit is None:
            return  # counted when it was given up
        calls = attempt.rows if self._by_row else 1
        attempt.made += 1
        self.calls[attempt.at] += calls
        self.money[attempt.at] += permit.money if is_paid else 0
        self._permits.made(permit, calls, is_paid=is_paid)

    def _give_back(self, attempt: Attempt) -> None:
        with self._lock:
            permit, attempt.permit = attempt.permit, None
        if permit is not None:
            self._permits.unused(permit)

    def _cut(self, at: int) -> list[pa.Array]:
        start, rows = self.cuts[at]
        return [arg.slice(start, rows) for arg in self._args]

    def _price(self, at: int) -> int:
        if at not in self._prices:
            rows = self.cuts[at][1]
            calls = rows if self._by_row else 1
            self._prices[at] = self._permits.price_of(self._cut(at), rows, calls)
        return self._prices[at]

    def _ahead(self, count: int) -> list[int]:
        """The prices of the next so many pieces, if there are so many."""
        if self.stopped.is_set() or self._at_end:
            return []
        return [
            self._price(at) for at in range(self._next, min(self._next + count, len(self.cuts)))
        ]
