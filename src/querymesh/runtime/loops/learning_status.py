"""What the learner of a stream is doing, for people: nothing it does is silent.

::

    learning since 21:53:59: 400 of 2,000 rows profiled in 2 batches
    learning since 21:53:59: training since 21:54:07 on 2,012 rows
    mesh 1 learned at 21:54:08 from 2,012 rows: 3 kinds of tuples are worth telling apart
    learning since 21:53:59: nothing learned from 2,012 rows at 21:54:08: <why>
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from time import monotonic

from querymesh.runtime.progress import LearningProgress, TrainingProgress, time_text

SLOW_BATCHES = 10
"""A stream that has learned nothing by then says so under its problems."""

Now = Callable[[], dt.datetime]


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class LearningStatus:
    """How far the learner of one stream has come; `wanted` is how many rows it profiles first."""

    def __init__(self, alias: str, wanted: int, *, learned: bool, now: Now = _now) -> None:
        self.alias = alias
        self.wanted = wanted
        self._learned = learned
        self._now = now
        self._lock = threading.Lock()
        self._since = now()
        self._batches: set[tuple[str | None, int | None]] = set()
        self._profiled = 0
        self._hindrance = ""
        self._training_since: dt.datetime | None = None
        self._started = 0.0
        self._last: TrainingProgress | None = None

    def heard(
        self, batch: tuple[str | None, int | None], profiled: int, problems: list[str]
    ) -> None:
        """A task has reported rows profiled for the first mesh, or why it could profile none."""
        with self._lock:
            if len(self._batches) <= SLOW_BATCHES:
                self._batches.add(batch)
            self._profiled += profiled
            self._hindrance = problems[-1] if problems else self._hindrance

    def began(self) -> None:
        """A search has begun."""
        with self._lock:
            self._training_since, self._started = self._now(), monotonic()

    def ended(self, outcome: str, *, learned: bool) -> None:
        """A search is over: what it found, or why it found nothing."""
        with self._lock:
            took = round(1000 * (monotonic() - self._started))
            self._last = TrainingProgress(
                timestamp=time_text(self._now()), durationMs=took, outcome=outcome
            )
            self._training_since = None
            self._learned = self._learned or learned

    @property
    def learned(self) -> bool:
        """Whether the stream runs on a mesh that was learned."""
        return self._learned

    @property
    def message(self) -> str:
        """What it is doing, in a sentence."""
        with self._lock:
            return self._message()

    def _message(self) -> str:
        last = self._last
        if self._learned:
            searching = self._training_since
            doing = f"searching since {time_text(searching)}; " if searching else ""
            return doing + (f"at {last['timestamp']} {last['outcome']}" if last else "learned")
        since = f"learning since {time_text(self._since)}"
        rows = f"{self._profiled:,} of {self.wanted:,} rows profiled"
        if self._training_since is not None:
            return f"{since}: training since {time_text(self._training_since)}, {rows}"
        if last is not None:
            return f"{since}: at {last['timestamp']} {last['outcome']}"
        if self._hindrance:
            rows += f"; {self._hindrance}"
        return f"{since}: {rows}"

    @property
    def problems(self) -> list[str]:
        """That nothing has been learned for long, or cannot be."""
        with self._lock:
            late = self._last is not None or len(self._batches) > SLOW_BATCHES
            if self._learned or not late:
                return []
            return [f"{self.alias} runs in the order as written, {self._message()}"]

    @property
    def progress(self) -> LearningProgress:
        """The same, field by field."""
        with self._lock:
            training = self._training_since
            return LearningProgress(
                message=self._message(),
                isLearning=not self._learned,
                since=time_text(self._since),
                numProfiledRows=self._profiled,
                numWantedRows=self.wanted,
                trainingSince=None if training is None else time_text(training),
                lastTraining=self._last,
            )
