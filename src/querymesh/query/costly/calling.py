"""How a function is called: in parts, several at a time, again where it failed, not for ever."""

from __future__ import annotations

from dataclasses import dataclass

from querymesh.errors import OptionError
from querymesh.options import check_integer, check_number

FIRST_PAUSE_S = 0.1
"""Before a call is tried again; twice as long before each further time."""

LONGEST_PAUSE_S = 30.0

TRANSIENT: tuple[type[BaseException], ...] = (OSError, TimeoutError)
"""What is tried again unless told otherwise: what networks raise, and what took too long."""


@dataclass(frozen=True)
class Calling:
    """The options of `querymesh.predicate` that say how a function is called.

    `batch` is how many rows a call takes, `concurrency` how many calls run at once in a task.
    A call that raises one of `retry_on` is tried `retries` times more, after a pause that doubles;
    one that takes longer than `timeout_s` has failed.
    """

    batch: int | None = None
    concurrency: int = 1
    retries: int = 0
    retry_on: tuple[type[BaseException], ...] = TRANSIENT
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        if self.batch is not None:
            check_integer("batch", self.batch, least=1)
        check_integer("concurrency", self.concurrency, least=1)
        check_integer("retries", self.retries, least=0)
        if self.timeout_s is not None:
            check_number("timeout_s", self.timeout_s)
            if not self.timeout_s > 0:
                raise OptionError(f"timeout_s is seconds above 0, not {self.timeout_s}")
        for kind in self.retry_on:
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                raise OptionError(f"retry_on names classes of exceptions, not {kind!r}")

    def pause_s(self, attempt: int, jitter: float) -> float:
        """How long to wait after so many failures, with a random share so that callers part.

        >>> Calling().pause_s(1, jitter=0.5), Calling().pause_s(3, jitter=1.0)
        (0.1, 0.6000000000000001)
        """
        return float(min(FIRST_PAUSE_S * 2 ** (attempt - 1), LONGEST_PAUSE_S) * (0.5 + jitter))


USUAL = Calling()
