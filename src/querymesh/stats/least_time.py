"""The time that something takes where nothing comes between."""

from __future__ import annotations

from collections.abc import Callable


def least_seconds(action: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    """The least of so many timings by this clock: what else runs only makes them longer."""
    best = float("inf")
    for _ in range(repeats):
        started = clock()
        action()
        best = min(best, clock() - started)
    return best
