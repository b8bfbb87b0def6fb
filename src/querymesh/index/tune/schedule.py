"""When which state is assessed, and when its index is selected anew, AMRI § 7.

Time is counted in search requests over all states. A call of `see` brings those of a while, and
takes them as if they had come at its end: an assessment begins after the call that crosses its
beginning, because nobody counted before, and ends with the first call after which it has lasted
`window` requests. Of several periods that end in one call only the last counts; what came since
the last comparison of λ_r is compared as one period.

λ_r of a state is its share of all requests, so that a stream that is faster as a whole changes
nothing. Its change is relative to the share before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from querymesh.errors import did_you_mean

SIGNIFICANT = 0.1
"""A change of λ_r by more than this part of itself is significant."""


class Schedule(Protocol):
    """Decides which states are assessed."""

    @property
    def assessing(self) -> frozenset[str]:
        """The states whose requests are to be counted from now on."""

    @property
    def reason(self) -> Mapping[str, str]:
        """Why, for each state being assessed; for those just returned, why they were."""

    def see(self, requests: Mapping[str, int]) -> list[str]:
        """Take in how many requests each state served since the last call; return the states whose
        assessment is complete, and whose index is to be selected now, in the order of all."""


class _Windows:
    """Counts requests and ends assessments; a schedule says in `_begin` which begin."""

    def __init__(
        self, states: Sequence[str], window: int, every: int, significant: float = SIGNIFICANT
    ) -> None:
        if window < 1 or every < 1:
            raise ValueError(f"window {window} and every {every}: both must be 1 request or more")
        self._states = list(states)
        self._window = window
        self._every = every
        self._significant = significant
        self._requests = 0
        self._begun: dict[str, int] = {}
        self._why: dict[str, str] = {}
        self._returned: dict[str, str] = {}
        self._begin()

    @property
    def assessing(self) -> frozenset[str]:
        """The states whose requests are to be counted from now on."""
        return frozenset(self._begun)

    @property
    def reason(self) -> Mapping[str, str]:
        """Why, for each state being assessed; for those just returned, why they were."""
        return self._why | self._returned

    def see(self, requests: Mapping[str, int]) -> list[str]:
        """Count requests; return the states whose assessment is complete."""
        for state in requests:
            if state not in self._states:
                raise ValueError(f"unknown state {state}: {did_you_mean(state, self._states)}")
        self._requests += sum(requests.values())
        complete = [
            state
            for state in self._states
            if state in self._begun and self._requests - self._begun[state] >= self._window
        ]
        self._returned = {state: self._why.pop(state) for state in complete}
        for state in complete:
            del self._begun[state]
        self._compare(requests)
        self._begin()
        return complete

    def _compare(self, requests: Mapping[str, int]) -> None:
        """Compare the requests of states with those of the period before."""

    def _begin(self) -> None:
        """Begin the assessments that are due."""

    def _assess(self, state: str, why: str) -> None:
        self._begun[state] = self._requests
        self._why[state] = why


class Never(_Windows):
    """No state is ever assessed."""


class Continuous(_Windows):
    """All states, one window after the other."""

    def _begin(self) -> None:
        if not self._begun:
            for state in self._states:
                self._assess(state, "continuous")


class Periodic(_Windows):
    """All states for one window, at the beginning and after each `every` requests.

    A window that is longer than that is finished first.
    """

    _due = 0

    def _begin(self) -> None:
        if self._requests >= self._due and not self._begun:
            self._due = (self._requests // self._every + 1) * self._every
            for state in self._states:
                self._assess(state, "periodic")


class _Comparing(_Windows):
    """Compares the states' λ_r of each period with those of the one before.

    `_changes` has the states that changed significantly in the last period, the most changed first;
    it is empty while no period ends.
    """

    def __init__(
        self, states: Sequence[str], window: int, every: int, significant: float = SIGNIFICANT
    ) -> None:
        self._counts = dict.fromkeys(states, 0)
        self._before: dict[str, float] = {}
        self._changes: dict[str, str] = {}
        self._due = every
        super().__init__(states, window, every, significant)

    def _compare(self, requests: Mapping[str, int]) -> None:
        self._changes = {}
        for state, count in requests.items():
            self._counts[state] += count
        if self._requests < self._due:
            return
        self._due = (self._requests // self._every + 1) * self._every
        total = sum(self._counts.values())
        shares = {state: count / total for state, count in self._counts.items()}
        if self._before:
            self._changes = self._significant_changes(shares)
        self._before = shares
        self._counts = dict.fromkeys(self._states, 0)

    def _significant_changes(self, shares: Mapping[str, float]) -> dict[str, str]:
        """The states that changed, those that changed most first; of equals the busier one."""
        change = {state: _change(self._before[state], shares[state]) for state in self._states}
        return {
            state: (
                f"λ_r of {state} went from {self._before[state]:.2f} to {shares[state]:.2f} "
                "of all requests"
            )
            for state in sorted(self._states, key=lambda each: (-change[each], -shares[each]))
            if change[state] > self._significant
        }


class Triggered(_Comparing):
    """After each period, the state whose λ_r changed most, if any changed significantly.

    One that is being assessed already goes on. A state whose λ_r never changes is never assessed.
    """

    def _begin(self) -> None:
        for state, why in list(self._changes.items())[:1]:
            if state not in self._begun:
                self._assess(state, why)


class Hybrid(_Comparing):
    """One state at a time, the one that waits longest; before it, one whose λ_r changed.

    A change waits until the running assessment is complete. After a state that came before its turn
    the head of the list is next, so that each state is assessed again within twice as many windows
    as there are states, whatever changes; the paper asks for that, but not how. A change of the
    state being assessed does not count: its assessment sees it.
    """

    def __init__(
        self, states: Sequence[str], window: int, every: int, significant: float = SIGNIFICANT
    ) -> None:
        self._line = list(states)
        self._waiting: dict[str, str] = {}
        self._out_of_turn = False
        super().__init__(states, window, every, significant)

    def _compare(self, requests: Mapping[str, int]) -> None:
        super()._compare(requests)
        # The newest changes first; an older one of another state still waits.
        older = {state: why for state, why in self._waiting.items() if state not in self._changes}
        self._waiting = self._changes | older
        for state in (*self._begun, *self._returned):
            self._waiting.pop(state, None)

    def _begin(self) -> None:
        if self._begun or not self._line:
            return
        changed = None if self._out_of_turn else next(iter(self._waiting), None)
        state = self._line[0] if changed is None else changed
        self._assess(state, self._waiting.pop(state, "waited longest"))
        self._out_of_turn = changed is not None and state != self._line[0]
        self._line.remove(state)
        self._line.append(state)


def _change(before: float, now: float) -> float:
    """The change relative to what was before."""
    if before == 0:
        return 0.0 if now == 0 else math.inf
    return abs(now - before) / before


SCHEDULES: Mapping[str, Callable[[Sequence[str], int, int], Schedule]] = {
    "continuous": Continuous,
    "periodic": Periodic,
    "triggered": Triggered,
    "hybrid": Hybrid,
    "never": Never,
}
"""By name, a schedule made of states, window and every."""


def make_schedule(name: str, states: Sequence[str], window: int, every: int) -> Schedule:
    """A schedule by its name.

    An assessment lasts `window` requests. Every `every` requests a period begins: of "periodic" the
    next assessment, and of "triggered" and "hybrid" the next comparison of λ_r.
    """
    if name not in SCHEDULES:
        raise ValueError(f"unknown schedule {name}: {did_you_mean(name, SCHEDULES)}")
    return SCHEDULES[name](states, window, every)
