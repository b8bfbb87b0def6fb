"""When a search ends (QM § 4.7, "Selecting a stop condition").

After k iterations, on a plateau, or at a bound of time or memory; whichever is reached first. The
defaults do not look at the clock, so that a seed gives the same mesh on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from time import monotonic

from querymesh.errors import TrainingError
from querymesh.optimize.problem import Problem


@dataclass(frozen=True, slots=True)
class Stop:
    """The bounds of a search; None is no bound.

    `iterations` counts walks: local optimizations of II-QM, coolings of SA-QM (Table 1: k = 3).
    `plateau` counts candidates in a row that did not better the best so far, `partitions` all
    candidates. `memory_mb` is what the search remembers (`Problem.memory_mb`), not the process.
    """

    iterations: int | None = 3
    plateau: int | None = None
    seconds: float | None = None
    memory_mb: float | None = None
    partitions: int | None = 600

    def __post_init__(self) -> None:
        bounds = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, bound in bounds.items():
            if bound is not None and not bound > 0:
                raise TrainingError(f"stop.{name} must be greater than 0 or None, not {bound}")
        if all(bound is None for bound in bounds.values()):
            raise TrainingError(
                f"a search needs a stop condition: set at least one of {', '.join(bounds)}"
            )


DEFAULT_STOP = Stop()


class Tally:
    """One search under way: counts its steps and says when, and why, it has to end.

    A search calls `step` for each candidate it costs and `walked` at the end of each walk, asks
    `over` in between, and gives `reason` back with its solution.
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
            self.end(f"{stop.partitions:,} partitions were tried")
        if stop.plateau is not None and self.since_better >= stop.plateau:
            self.end(f"{stop.plateau:,} partitions in a row were no better")
        if stop.seconds is not None and self._clock() - self._started >= stop.seconds:
            self.end(f"{stop.seconds:g} seconds had passed")
        if stop.memory_mb is not None and self._problem.memory_mb >= stop.memory_mb:
            self.end(f"it remembered {stop.memory_mb:g} MB")

    def walked(self) -> None:
        """One more walk has come to its end."""
        self.walks += 1
        bound = self._stop.iterations
        if bound is not None and self.walks >= bound:
            self.end(f"{bound:,} iteration{'s were' if bound > 1 else ' was'} done")

    def end(self, reason: str) -> None:
        """Remember the first reason to end."""
        self.reason = self.reason or reason
