"""What a job may still call and spend: asked before each call, by its driver and all its tasks.

::

    slots of a rate     |    |    |    |    |    |      1/rate apart, each for one call
                        └ a worker is given the next few, and when each of them may be used
    budget              spent ▓▓▓▓▓▓▓▓▓ reserved ░░░░ free ........ amount
                        a call's money is reserved before it; what was not spent is given back

A call begins in its slot or soon after, or not at all: a slot unused for `GRACE_S` is lost. So in
any T seconds no more than 1 + rate × (T + GRACE_S + the time of a message) calls begin, however
many workers there are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from querymesh.errors import BudgetError
from querymesh.query.costly.account.price import Budget, as_money

GRACE_S = 0.2
"""How late a call may begin after its slot."""

AHEAD_S = 0.5
"""Slots of so many seconds at most are given to one worker at once."""

AGAIN_S = 0.02
"""When to ask again, where calls under way may give back the money that is lacking."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A worker's question: may a function be called at these prices, one for each call?

    It also tells what became of money that was reserved before: so many calls were made for `spent`
    of it, and `back` of it is free again.
    """

    name: str
    prices: tuple[int, ...] = ()
    calls: int = 0
    spent: int = 0
    back: int = 0


@dataclass(frozen=True, slots=True)
class Granted:
    """The first so many of the calls may be made, each after some seconds from now; their money is
    reserved. `expire` says that they may not be made much later either."""

    delays_s: tuple[float, ...]
    expire: bool = False


@dataclass(frozen=True, slots=True)
class Later:
    """Not now: to be asked again after some seconds."""

    seconds: float = AGAIN_S


@dataclass(frozen=True, slots=True)
class Spent:
    """What one function has cost so far."""

    calls: int = 0
    money: int = 0


@dataclass(frozen=True, slots=True)
class AtEnd:
    """The budget cannot pay for the next call, whatever is given back; `spent` by function."""

    left: int
    amount: int
    spent: Mapping[str, Spent]

    def error(self, name: str, remembered: str) -> BudgetError:
        """What to raise where a job is to stop; `remembered` says what became of the answers."""
        parts = [
            f"{as_money(each.money)} on {each.calls:,} calls of {function}"
            for function, each in sorted(self.spent.items())
        ]
        return BudgetError(
            f"the budget of {as_money(self.amount)} cannot pay for the next call of {name}: "
            f"{as_money(self.amount - self.left)} is spent"
            + (f" ({', '.join(parts)}). " if parts else ". ")
            + f"{remembered} Give a larger budget=, or say what becomes of the rows that it cannot "
            'pay for: qm.Budget(amount, then="keep") lets them through, then="drop" leaves them out'
        )


Answer = Granted | Later | AtEnd


class Allowance(Protocol):
    """Whom a worker asks before it calls."""

    def ask(self, question: Ask) -> Answer:
        """Whether calls may be made; at once, without waiting for anything but a message."""
        ...


@dataclass
class Slots:
    """The moments at which one function may be called, `rate` of them a second."""

    rate: float
    next_at: float = float("-inf")

    def take(self, now: float, most: int) -> tuple[float, ...]:
        """The next few, as seconds from now.

        >>> slots = Slots(rate=10.0)
        >>> slots.take(now=5.0, most=2), slots.take(now=5.1, most=9)
        ((0.0, 0.1), (0.1, 0.2, 0.3, 0.4, 0.5))
        """
        count = max(1, min(most, int(self.rate * AHEAD_S)))
        first = max(now, self.next_at)
        self.next_at = first + count / self.rate
        return tuple(round(first - now + at / self.rate, 9) for at in range(count))


@dataclass
class JobAllowance:
    """The one account of a job: its budget, if any, and the rates (calls a second) of functions."""

    budget: Budget | None = None
    rates: Mapping[str, float] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._slots = {name: Slots(rate) for name, rate in self.rates.items()}
        self._spent: dict[str, Spent] = {}
        self._money_spent = 0
        self._reserved = 0

    def session(self) -> Session:
        """The account as one worker has it, who may vanish."""
        return Session(self)

    def spent(self) -> dict[str, Spent]:
        """What was spent so far, by function."""
        with self._lock:
            return dict(self._spent)

    def settle(self, name: str, calls: int, spent: int, back: int) -> None:
        """Of what was reserved, take some as spent, and some as free again."""
        with self._lock:
            self._reserved -= spent + back
            self._money_spent += spent
            before = self._spent.get(name, Spent())
            if calls or spent:
                self._spent[name] = Spent(before.calls + calls, before.money + spent)

    def reserve(self, name: str, prices: tuple[int, ...]) -> Answer:
        """The money of the first few calls, as many as there is money and a slot for."""
        with self._lock:
            affordable = self._affordable(prices)
            if affordable == 0:
                assert self.budget is not None
                left = self.budget.parts - self._money_spent
                if prices[0] <= left:
                    return Later()
                return AtEnd(left, self.budget.parts, dict(self._spent))
            slots = self._slots.get(name)
            delays = (0.0,) * affordable if slots is None else slots.take(self.clock(), affordable)
            self._reserved += sum(prices[: len(delays)])
            return Granted(delays, expire=slots is not None)

    def _affordable(self, prices: tuple[int, ...]) -> int:
        if self.budget is None:
            return len(prices)
        free = self.budget.parts - self._money_spent - self._reserved
        for count, price in enumerate(prices):
            free -= price
            if free < 0:
                return count
        return len(prices)


class Session:
    """A job's account as one worker asks it; what it reserved counts as spent when it is gone."""

    def __init__(self, account: JobAllowance) -> None:
        self._account = account
        self._reserved: dict[str, int] = {}
        self._lock = threading.Lock()

    def ask(self, question: Ask) -> Answer:
        """Settle what is told, then reserve what is asked for."""
        with self._lock:
            return self._answer(question)

    def close(self) -> None:
        """The worker is gone: nobody knows whether its calls were made, so they count as made."""
        with self._lock:
            for name, held in self._reserved.items():
                self._account.settle(name, 0, held, 0)
            self._reserved.clear()

    def _answer(self, question: Ask) -> Answer:
        name = question.name
        held = self._reserved.get(name, 0)
        spent = min(question.spent, held)
        back = min(question.back, held - spent)
        if question.calls or spent or back:
            self._account.settle(name, question.calls, spent, back)
        self._reserved[name] = held - spent - back
        if not question.prices:
            return Granted(())
        answer = self._account.reserve(name, question.prices)
        if isinstance(answer, Granted):
            self._reserved[name] += sum(question.prices[: len(answer.delays_s)])
        return answer
