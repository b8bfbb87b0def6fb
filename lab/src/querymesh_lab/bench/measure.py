"""Interleaved timing: the only way a time means something on a shared machine.

Rivals run in rounds, A B C A' A B C A' ..., so that whatever else the machine does hits them all.
Within a round the order rotates, so that nobody always runs first or right after the slowest. A'
is A again: how far its ratio to A is from 1 is how far any other ratio can be trusted.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from querymesh.errors import QueryMeshError

Log = Callable[[str], None]

CONTROL = "A/A control"


def silent(_: str) -> None:
    """A log that nobody reads."""


class RivalsDisagreeError(QueryMeshError):
    """Two ways to answer one query gave different answers: their times must not be compared."""


@dataclass(frozen=True)
class Timing:
    """Seconds of each contender, one entry a round; `control` names the one that ran twice."""

    seconds: Mapping[str, tuple[float, ...]]
    control: str
    answer: Any = None

    @property
    def rounds(self) -> int:
        """How many rounds were counted."""
        return len(self.seconds[self.control])

    def ratios(self, of: str, over: str) -> tuple[float, ...]:
        """One contender's time over another's, round by round."""
        return tuple(
            a / b for a, b in zip(self.seconds[of], self.seconds[over], strict=True) if b > 0
        )

    def ratio(self, of: str, over: str) -> float:
        """The median of the per-round ratios: above 1, `over` is the faster one.

        >>> Timing({"a": (2.0, 9.0, 4.0), "b": (1.0, 3.0, 2.0)}, "a").ratio("a", "b")
        2.0
        """
        return statistics.median(self.ratios(of, over))

    @property
    def a_a(self) -> float:
        """The ratio of the repeated contender to itself: 1 on a quiet machine."""
        return self.ratio(CONTROL, self.control)

    def median_seconds(self) -> dict[str, float]:
        """The median time of each contender, for the reader's sense of size only."""
        return {name: statistics.median(times) for name, times in self.seconds.items()}

    def fastest(self, names: list[str]) -> str:
        """Of these contenders the one with the least median time."""
        medians = self.median_seconds()
        return min(names, key=medians.__getitem__)


def interleave(
    contenders: Mapping[str, Callable[[], Any]],
    rounds: int,
    *,
    control: str | None = None,
    warm_ups: int = 1,
    same_answer: bool = True,
    log: Log = silent,
    clock: Callable[[], float] = perf_counter,
) -> Timing:
    """Time the contenders against each other; what they return must be the same, unless told.

    `control` is the contender that runs twice a round, the first one unless told. Warm-up rounds
    (compilation, worker start) are run and thrown away.
    """
    control = control or next(iter(contenders))
    actions = {**contenders, CONTROL: contenders[control]}
    names = list(actions)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    answers: dict[str, Any] = {}
    gc.collect()
    gc.freeze()  # what is there already need not be looked through before every run
    try:
        for number in range(-warm_ups, rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                gc.collect()  # one contender's garbage is not another's time
                started = clock()
                answers[name] = actions[name]()
                took = clock() - started
                if number >= 0:
                    seconds[name].append(took)
                if same_answer:
                    expected = answers.get(control, answers[name])
                    _check_answer(name, answers[name], control, expected)
            log(f"  round {number + 1} of {rounds}" if number >= 0 else "  warm-up")
    finally:
        gc.unfreeze()
    return Timing({n: tuple(times) for n, times in seconds.items()}, control, answers[control])


def _check_answer(name: str, answer: Any, other: str, expected: Any) -> None:
    if answer != expected:
        raise RivalsDisagreeError(
            f"{name} answered {answer!r}, but {other} answered {expected!r}: "
            "their times cannot be compared"
        )
