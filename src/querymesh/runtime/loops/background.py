"""Work that Spark's accumulator thread asks for and must not wait for.

A thread does it, and ends when nothing is left to do. What is asked for while it works is done once
afterwards, however often it was asked. A round that failed or took long is told in `problems`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger("querymesh")

REST = 3.0
"""After it is done, it is not done again for so many times as long as it took."""


SLOW_SECONDS = 5.0
"""A round that takes longer is told."""


class Background:
    """Some work, done when it is asked for. `failing` is what to say if files cannot be written."""

    def __init__(self, name: str, work: Callable[[], None], failing: str) -> None:
        self._name = name
        self._work = work
        self._failing = failing
        self._lock = threading.Lock()
        self._asked = False
        self._said = False
        self._failed = self._slow = ""
        self._slowest = 0.0
        self._done = threading.Event()
        self._done.set()

    def ask(self) -> None:
        """Have the work done; returns at once."""
        with self._lock:
            self._asked = True
            start = self._done.is_set()
            self._done.clear()
        if start:
            threading.Thread(target=self._run, name=self._name).start()

    def wait(self, seconds: float) -> bool:
        """Wait until all that was asked for is done; False if it took longer."""
        return self._done.wait(seconds)

    @property
    def problems(self) -> list[str]:
        """The last round that failed, and the slowest of those that took long."""
        return [told for told in (self._failed, self._slow) if told]

    def _tell_slow(self, seconds: float) -> None:
        if seconds > max(SLOW_SECONDS, self._slowest):
            self._slowest = seconds
            self._slow = f"{self._name} was busy for {seconds:.1f} s; the query goes on meanwhile"
            log.warning("%s", self._slow)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._asked:
                    self._done.set()
                    return
                self._asked = False
            started = time.monotonic()
            try:
                self._work()
            except OSError as problem:
                level = logging.DEBUG if self._said else logging.WARNING
                self._said = True
                self._failed = f"{self._failing}: {problem}"
                log.log(level, "%s; the query goes on: %s", self._failing, problem)
            except Exception as problem:
                self._failed = f"{self._failing}: {type(problem).__name__}: {problem}"
                log.exception("%s; the query goes on", self._failing)
            self._tell_slow(time.monotonic() - started)
            with self._lock:
                more = self._asked
            if more:
                time.sleep(REST * (time.monotonic() - started))
