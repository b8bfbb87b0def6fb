"""When a search ends (QM § 4.7, "Selecting a stop condition").

After k iterations, on a plateau, or at a bound of time or memory; whichever is reached first. The
default does not look at the clock, so that a seed gives the same mesh on every machine; beyond it
a search ends at the deadline of the training it is part of (`Training.seconds`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import isfinite
from numbers import Integral, Real
from time import monotonic
from typing import Any

from querymesh.errors import OptionError
from querymesh.optimize.search.problem import Problem


@dataclass(frozen=True, slots=True)
class Stop:
    """The bounds of a search, at least one of them; None, the default of each, is no bound.

    Parameters
    ----------
    iterations
        Walks: local optimizations of II-QM, coolings of SA-QM (Table 1: k = 3).
    plateau
        Candidates in a row that were no better than the best so far.
    seconds
        Time by the clock: the mesh that is found then depends on the machine.
    memory_mb
        What the search remembers (`Problem.memory_mb`), not the whole process.
    partitions
        All candidates, starts among them.
    """

    iterations: int | None = None
    plateau: int | None = None
    seconds: float | None = None
    memory_mb: float | None = None
    partitions: int | None = None

    def __post_init__(self) -> None:
        bounds = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, bound in bounds.items():
            if bound is not None:
                _check_bound(name, bound)
        if all(bound is None for bound in bounds.values()):
            raise OptionError(
                f"a search needs a stop condition: set at least one of {', '.join(bounds)}"
            )


def _check_bound(name: str, bound: Any) -> None:
    measured = name in ("seconds", "memory_mb")
    kind = Real if measured else Integral
    if isinstance(bound, bool) or not isinstance(bound, kind) or not isfinite(bound):
        what = "a finite number" if measured else "an integer"
        raise OptionError(f"stop.{name} must be {what} or None, not {bound!r}")
    if not float(bound) > 0:
        raise OptionError(f"stop.{name} must be greater than 0 or None, not {bound}")


DEFAULT_STOP = Stop(iterations=3, partitions=600)
"""Table 1's k, and a bound for large training sets."""


class Tally:
    """One search under way: counts its steps and says when, and why, it has to end.

    A search calls `step` for each partition it costs, starts among them, and `walked` at the end of
    each walk, asks `over` in between, and gives `reason` back with its solution.
    """

    def __init__(self, stop: Stop, problem: Problem, clock: Callable[[], float] = monotonic):
        self._stop = stop
        self._problem = problem
        self._clock = clock
        self._started = clock()
        self.partitions = 0
        self.walks = 0
        self.since_better = 0
        self.reason = ""

    @property
    def over(self) -> bool:
        """Whether a bound has been reached; `reason` then says which."""
        return bool(self.reason)

    def step(self, *, better: bool) -> None:
        """One more candidate was costed, better than the best so far or not."""
        self.partitions += 1
        self.since_better = 0 if better else self.since_better + 1
        stop = self._stop
        if stop.partitions is not None and self.partitions >= stop.partitions:
            self.end(f"{stop.partitions:,} partition{_were(stop.partitions)} tried")
        if stop.plateau is not None and self.since_better >= stop.plateau:
            one = stop.plateau == 1
            some = "the last partition was" if one else f"{stop.plateau:,} partitions in a row were"
            self.end(f"{some} no better")
        if stop.seconds is not None and self._clock() - self._started >= stop.seconds:
            self.end(f"{stop.seconds:g} seconds had passed")
        if stop.memory_mb is not None and self._problem.memory_mb >= stop.memory_mb:
            self.end(f"it remembered {stop.memory_mb:g} MB")
        if self._problem.deadline.over:
            self.end(self._problem.deadline.reason)

    def walked(self) -> None:
        """One more walk has come to its end."""
        self.walks += 1
        bound = self._stop.iterations
        if bound is not None and self.walks >= bound:
            self.end(f"{bound:,} iteration{_were(bound)} done")

    def end(self, reason: str) -> None:
        """Remember the first reason to end."""
        self.reason = self.reason or reason


def _were(count: int) -> str:
    return "s were" if count > 1 else " was"
