"""How long some work may go on: what is found by then stands, and is told to be unfinished."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import thread_time


class Deadline:
    """So many seconds of work from now on; None is no bound.

    The clock is the processor time of the thread that asks: work that had to wait for others is not
    cut short, so that a busy machine finds the same as an idle one.

    >>> ticks = iter([0.0, 1.0, 2.0, 3.0])
    >>> deadline = Deadline(2.0, clock=lambda: next(ticks))
    >>> deadline.over, deadline.over
    (False, True)
    >>> deadline.reason
    'its 2 seconds had passed'
    >>> Deadline(None).over
    False
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float] = thread_time) -> None:
        self.seconds = seconds
        self._clock = clock
        self._started = clock() if seconds is not None else 0.0

    @property
    def left(self) -> float:
        """Seconds that are left, 0 at the least."""
        if self.seconds is None:
            return math.inf
        return max(0.0, self.seconds - (self._clock() - self._started))

    @property
    def over(self) -> bool:
        """Whether the work has to end now."""
        return self.left <= 0.0

    @property
    def reason(self) -> str:
        """Why the work ended, as the end of a sentence."""
        return f"its {self.seconds:.2g} seconds had passed" if self.seconds is not None else ""

    def part(self, of: int) -> Deadline:
        """A deadline of an equal part of what is left, for the first of so many pieces of work."""
        if self.seconds is None:
            return self
        return Deadline(self.left / of, self._clock)


NEVER = Deadline(None)
"""No bound."""
