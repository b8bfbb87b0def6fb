"""Many continuous queries served in rounds, OM § 5.4: first in, first out, none starved.

    front   Q3  Q4  Q1  Q2   back      Q3 is served for one round and goes to the back

The queue is never sorted. With n queries registered each is served once in every n turns, however
heavy the others are, so it waits for n - 1 turns and for no longer than those take together. One
that registers goes to the back; one that is removed leaves at once.

What serving means is the caller's affair, and so is time: a function that runs one round and says
how long it took, by the clock or in a simulation.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from querymesh.errors import QueryError, QueryMeshError, did_you_mean


class Turn(NamedTuple):
    """One query's round: when it began, how long it had waited and how long it took."""

    query: str
    round: int
    started_s: float
    waited_s: float
    took_s: float


@dataclass
class Served:
    """How often and how long a query was served, and how long it waited.

    - `longest_s`, `longest_turns`: the longest wait, in seconds and in turns of other queries
    - `ready_s`, `ready_turn`: since when it waits for its next turn
    """

    rounds: int = 0
    busy_s: float = 0.0
    waited_s: float = 0.0
    longest_s: float = 0.0
    longest_turns: int = 0
    ready_s: float = 0.0
    ready_turn: int = 0


class FairRounds:
    """The queue of registered queries.

    >>> rounds = FairRounds()
    >>> for name in ("heavy", "light"):
    ...     rounds.register(name)
    >>> [turn.query for turn in rounds.turns(lambda name: 9.0 if name == "heavy" else 0.1, 3)]
    ['heavy', 'light', 'heavy']
    """

    def __init__(self) -> None:
        self._queue: deque[str] = deque()
        self._served: dict[str, Served] = {}
        self._turns = 0
        self.now_s = 0.0

    @property
    def waiting(self) -> tuple[str, ...]:
        """The queries, the next one to be served first."""
        return tuple(self._queue)

    def served(self, query: str) -> Served:
        """How often and how long a registered query was served."""
        self._check(query)
        return self._served[query]

    def register(self, query: str) -> None:
        """Put a query at the back of the queue."""
        if query in self._served:
            raise QueryError(f"query {query} is registered already: remove it, or rename this one")
        self._served[query] = Served(ready_s=self.now_s, ready_turn=self._turns)
        self._queue.append(query)

    def remove(self, query: str) -> Served:
        """Take a query out of the queue; returns how often and how long it was served."""
        self._check(query)
        self._queue.remove(query)
        return self._served.pop(query)

    def turn(self, serve: Callable[[str], float]) -> Turn:
        """Serve the query at the front for one round; `serve` runs it and says the seconds taken.

        If serving fails, the query goes to the back all the same: others need not suffer for it.
        """
        if not self._queue:
            raise QueryError("no query is registered: register one first")
        query = self._queue[0]
        served = self._served[query]
        waited_s, waited_turns = self.now_s - served.ready_s, self._turns - served.ready_turn
        took_s = 0.0
        try:
            took_s = _checked(query, serve(query))
        finally:
            started_s = self.now_s
            self.now_s += took_s
            self._turns += 1
            if query in self._served:  # it may have been removed by what was served
                self._queue.remove(query)
                self._queue.append(query)
            served.rounds += 1
            served.busy_s += took_s
            served.waited_s += waited_s
            served.longest_s = max(served.longest_s, waited_s)
            served.longest_turns = max(served.longest_turns, waited_turns)
            served.ready_s, served.ready_turn = self.now_s, self._turns
        return Turn(query, served.rounds, started_s, waited_s, took_s)

    def turns(self, serve: Callable[[str], float], count: int) -> Iterator[Turn]:
        """Take `count` turns, or fewer if no query is registered any more."""
        for _ in range(count):
            if not self._queue:
                return
            yield self.turn(serve)

    def _check(self, query: str) -> None:
        if query not in self._served:
            raise QueryError(f"no query {query}: {did_you_mean(query, self._served)}")


def _checked(query: str, took_s: float) -> float:
    if not (math.isfinite(took_s) and took_s >= 0):
        raise QueryMeshError(f"a round of {query} took {took_s} seconds, which is no time")
    return took_s
