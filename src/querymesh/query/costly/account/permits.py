"""One function's leave to be called in this process: asked for ahead, a few calls at a time.

::

    threads ──take──> slots and money at hand ──none left──> Allowance.ask(the next few calls)
            <─Permit─                          <── Granted, Later or AtEnd

Twice as many are asked for each time, as long as all of them are used soon: a function that is
called often costs few messages, and one that is called rarely holds nothing that others could use.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from querymesh.errors import SetupError
from querymesh.query.costly.account.allowance import (
    AGAIN_S,
    GRACE_S,
    Allowance,
    Ask,
    AtEnd,
    Granted,
    Later,
    Spent,
)
from querymesh.query.costly.account.price import Price

MOST_AHEAD = 64
"""So many calls at most are asked for at once."""

SOON_S = 0.25
"""As many are asked for as are made in this time."""

LONGEST_AGAIN_S = 0.5
"""A process that was told to ask again later does so more and more seldom."""

Ahead = Callable[[int], Sequence[int]]
"""The prices of the next so many calls."""


@dataclass(frozen=True, slots=True, eq=False)
class Permit:
    """Leave for one call, to begin between two moments of `time.monotonic`."""

    money: int
    not_before: float
    not_after: float

    @property
    def wait_s(self) -> float:
        """How long it is until the call may begin; below 0 afterwards."""
        return self.not_before - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether it is too late for the call."""
        return time.monotonic() > self.not_after


class Permits:
    """What a function may do here, and what it has cost; without `allowance` it may do all."""

    def __init__(
        self, name: str, price: Price | None = None, allowance: Allowance | None = None
    ) -> None:
        self.name = name
        self.price = price
        self._allowance = allowance
        self._lock = threading.Lock()
        self._slots: deque[tuple[float, float]] = deque()
        self._purse = 0
        self._ahead = 1
        self._asked_at = self._ask_at = 0.0
        self._again_s = AGAIN_S
        self._untold = Spent()
        self._end: AtEnd | None = None
        self.spent = Spent()
        """Calls that this process made, and their money."""

    def price_of(self, args: Sequence[pa.Array], n: int, calls: int) -> int:
        """What it costs to ask about n rows in so many calls."""
        return 0 if self.price is None else self.price.of(args, n, calls)

    def take(self, money: int, ahead: Ahead) -> Permit | Later | AtEnd:
        """Leave for a call of this price, asking for it if none is at hand."""
        if self._allowance is None:
            return Permit(money, 0.0, float("inf"))
        with self._lock:
            if (permit := self._at_hand(money)) is not None:
                return permit
            if self._end is not None and money > self._end.left:
                return self._end  # what is spent never comes back
            if (wait_s := self._ask_at - time.monotonic()) > 0:
                return Later(wait_s)
            answer = self._ask(self._allowance, (money, *ahead(self._ahead - 1)))
            if isinstance(answer, Later):
                later = Later(self._again_s)
                self._ask_at = time.monotonic() + self._again_s
                self._again_s = min(2 * self._again_s, LONGEST_AGAIN_S)
                return later
            self._again_s = AGAIN_S
            if isinstance(answer, Granted):
                permit = self._at_hand(money)
                return Later() if permit is None else permit
            if isinstance(answer, AtEnd):
                self._end = answer
            return answer

    def take_at_hand(self, money: int) -> Permit | None:
        """Leave for a call, if that takes no message and no waiting for those who wait for one."""
        if self._allowance is None:
            return Permit(money, 0.0, float("inf"))
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._at_hand(money)
        finally:
            self._lock.release()

    def made(self, permit: Permit, calls: int, *, is_paid: bool) -> None:
        """The call was made, and cost what was reserved for it, or nothing."""
        with self._lock:
            money = permit.money if is_paid else 0
            self._purse += permit.money - money
            self.spent = _plus(self.spent, calls, money)
            self._untold = _plus(self._untold, calls, money)

    def unused(self, permit: Permit) -> None:
        """The call was not made."""
        with self._lock:
            self._purse += permit.money

    def flush(self) -> None:
        """Give back what is at hand, and tell what was spent.

        A driver that cannot be reached is no reason to lose answers: the next question says so.
        """
        with self._lock:
            if self._allowance is not None and (self._untold != Spent() or self._purse):
                with contextlib.suppress(SetupError):
                    self._ask(self._allowance, ())
            self._slots.clear()

    def _ask(self, allowance: Allowance, prices: tuple[int, ...]) -> Granted | Later | AtEnd:
        told, back = self._untold, self._purse
        answer = allowance.ask(Ask(self.name, prices, told.calls, told.money, back))
        self._untold, self._purse = Spent(), 0
        if isinstance(answer, Granted) and answer.delays_s:
            now = time.monotonic()
            grace_s = GRACE_S if answer.expire else float("inf")
            self._slots.extend((now + s, now + s + grace_s) for s in answer.delays_s)
            self._purse = sum(prices[: len(answer.delays_s)])
            is_soon = now - self._asked_at < SOON_S
            self._ahead = min(2 * self._ahead, MOST_AHEAD) if is_soon else -(-self._ahead // 2)
            self._asked_at = now
        return answer

    def _at_hand(self, money: int) -> Permit | None:
        now = time.monotonic()
        while self._slots and self._slots[0][1] < now:
            self._slots.popleft()
            self._ahead = 1  # more was asked for than could be used
        if not self._slots or self._purse < money:
            return None
        self._purse -= money
        return Permit(money, *self._slots.popleft())


def _plus(spent: Spent, calls: int, money: int) -> Spent:
    return replace(spent, calls=spent.calls + calls, money=spent.money + money)
