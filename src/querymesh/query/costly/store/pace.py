"""How often something slow is done that can wait: a look into a folder, a file written.

::

    ├─one─┤  at least INTERVAL_S, and SHARE times as long as it took  ├─one─┤
    ├─failed─┤  at least RETRY_S                                              ├─one─┤
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

INTERVAL_S = 0.5
"""From one time to the next."""

RETRY_S = 5.0
"""The same after a failure."""

SHARE = 10.0
"""So many times as long as it took, so that it takes a tenth of the time at most."""


class Pace:
    """When it was done last, and whether it is time to do it again.

    >>> pace = Pace()
    >>> with pace.one() as attempt:
    ...     attempt.succeeded = True
    >>> pace.is_due(), pace.may(soon=True)
    (False, True)
    """

    def __init__(self) -> None:
        self.succeeded = True
        self._next_at = float("-inf")

    def is_due(self) -> bool:
        """Whether it is time to do it again."""
        return monotonic() >= self._next_at

    def may(self, *, soon: bool) -> bool:
        """Whether it may be done: `soon` where only a failure makes it wait."""
        return self.is_due() or (soon and self.succeeded)

    @contextmanager
    def one(self) -> Iterator[Pace]:
        """It is done in this block, which says whether it `succeeded`."""
        started = monotonic()
        self.succeeded = False
        try:
            yield self
        finally:
            ended = monotonic()
            pause_s = INTERVAL_S if self.succeeded else RETRY_S
            self._next_at = ended + max(pause_s, SHARE * (ended - started))
