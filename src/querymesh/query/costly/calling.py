"""How a function is called: in parts, several at a time, again where it failed, not for ever."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from querymesh.errors import OptionError, PredicateError
from querymesh.options import check_integer, check_number
from querymesh.query.costly.calls.refusals import retry_after_s, status_of

FIRST_PAUSE_S = 0.1
"""Before a call is tried again; twice as long before each further time."""

LONGEST_PAUSE_S = 30.0

LONGEST_RETRY_AFTER_S = 600.0
"""An endpoint that wants to be left alone for longer has failed."""

TRANSIENT: tuple[type[Exception], ...] = (OSError, TimeoutError)
"""What is tried again unless told otherwise: what networks raise, and what took too long."""

_TRANSIENT_STATUS = frozenset({408, 425, 429, *range(500, 600)}) - {501, 505}
"""HTTP answers after which the same call may succeed: whoever raises them, it is the answer that
counts. One with another status from 400 on, such as 401, is the same each time."""


@dataclass(frozen=True)
class Calling:
    """The options of `querymesh.predicate` that say how a function is called.

    - `batch`: how many rows a call takes
    - `concurrency`: how many calls run at once in a task
    - `rate_limit`: how many calls begin in a second, in all tasks of the job together
    - `retries`: how often a call is tried again that raises one of `retry_on`, after a pause that
      doubles, or after the seconds that the error asks for (`retry_after`, or a header Retry-After)
    - `timeout_s`: a call that takes longer has failed, with a TimeoutError
    """

    batch: int | None = None
    concurrency: int = 1
    rate_limit: float | None = None
    retries: int = 0
    retry_on: type[Exception] | tuple[type[Exception], ...] = TRANSIENT
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        if self.batch is not None:
            check_integer("batch", self.batch, least=1)
        check_integer("concurrency", self.concurrency, least=1)
        check_integer("retries", self.retries, least=0)
        _check_positive("timeout_s", self.timeout_s, "seconds")
        _check_positive("rate_limit", self.rate_limit, "calls a second")
        object.__setattr__(self, "retry_on", _classes(self.retry_on))

    @property
    def is_usual(self) -> bool:
        """Whether nothing was asked for: one call with all rows, and as it comes."""
        return self == USUAL

    def rows_a_call(self, n: int, *, by_row: bool, is_paid: bool = False) -> int:
        """How many of n rows are called for together.

        A function of the values of one row is called for each of them (`by_row`): where its calls
        are bounded or paid for, one at a time is.
        """
        if by_row and self.rate_limit is not None:
            return 1
        if self.batch is not None:
            return self.batch
        return 1 if by_row and (is_paid or not self.is_usual) else max(n, 1)

    def pause_after(self, error: BaseException, attempt: int, jitter: float) -> float | None:
        """How long to wait after so many failures, the last of them this one; None for ever.

        >>> calling = Calling(retries=2)
        >>> calling.pause_after(ConnectionResetError(), 2, jitter=0.5)
        0.2
        >>> calling.pause_after(ConnectionResetError(), 3, jitter=0.5) is None
        True
        """
        if attempt > self.retries or not self._is_transient(error):
            return None
        asked_s = retry_after_s(error)
        if asked_s is None:
            return self.pause_s(attempt, jitter)
        return asked_s + jitter * FIRST_PAUSE_S if asked_s <= LONGEST_RETRY_AFTER_S else None

    def pause_s(self, attempt: int, jitter: float) -> float:
        """How long to wait after so many failures, with a random share so that callers part.

        >>> Calling().pause_s(1, jitter=0.5), Calling().pause_s(3, jitter=1.0)
        (0.1, 0.6000000000000001)
        """
        doubled = math.ldexp(FIRST_PAUSE_S, min(attempt - 1, 64))
        return float(min(doubled, LONGEST_PAUSE_S) * (0.5 + jitter))

    def _is_transient(self, error: BaseException) -> bool:
        if isinstance(error, PredicateError):
            return False
        if self.retry_on != TRANSIENT:
            return isinstance(error, self.retry_on)
        status = status_of(error)
        if status is None or status < 400:
            return isinstance(error, TRANSIENT)
        return status in _TRANSIENT_STATUS


def _classes(given: Any) -> tuple[type[Exception], ...]:
    kinds = (given,) if isinstance(given, type) else given
    if not isinstance(kinds, tuple | list):
        raise OptionError(f"retry_on names classes of exceptions, not {given!r}")
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise OptionError(f"retry_on names classes of exceptions, not {kind!r}")
    return tuple(kinds)


def _check_positive(name: str, value: float | None, unit: str) -> None:
    if value is None:
        return
    check_number(name, value)
    if not 0 < value < math.inf:
        raise OptionError(f"{name} is {unit}, above 0, not {value}")


USUAL = Calling()
