"""The answers of one job, wherever they were asked: no two of its workers ask the same.

::

    worker 1  claim(a, b) ──> a, b are yours        asks about them ──> tell(a, b)
    worker 2  claim(b, c) ──> c is yours, b is another's
              asks about c ──> tell(c)
              claim(b)    ──> known: what worker 1 told

Who claims asks before it waits for others, so nobody waits for who waits. A worker that dies, or
whose calls failed, gives its claims back, and the next one that asks has them.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

MOST_ANSWERS = 100_000
"""So many answers of a function a job holds, the ones told last."""


MOST_BYTES = 1 << 18
"""So many bytes of texts at most are told at once."""


@dataclass(frozen=True)
class Claim:
    """Which of some keys are known, with their values in that order, and which are the asker's; the
    rest somebody else is asking about. All are places in what was claimed."""

    known: Sequence[int]
    values: pa.Array | None
    mine: Sequence[int]


class SharedAnswers(Protocol):
    """Where the workers of a job share what they asked of one function, for `ttl` seconds."""

    @property
    def ttl(self) -> float | None:
        """How old an answer may be; None if any."""
        ...

    def claim(self, keys: Sequence[bytes]) -> Claim:
        """What is known of inputs, and what the asker is to ask."""
        ...

    def tell(self, keys: Sequence[bytes], values: pa.Array | None, back: Sequence[bytes]) -> None:
        """What was asked, and keys that are given back, since they were not."""
        ...


_NONE = None, 0.0
"""No value, told never."""


@dataclass
class _Function:
    """What a job knows of one function."""

    answers: OrderedDict[bytes, tuple[Any, float]] = field(default_factory=OrderedDict)
    type: pa.DataType | None = None
    claimed: dict[bytes, JobAnswersSession] = field(default_factory=dict)


class JobAnswers:
    """The answers of a job's functions, held by its driver."""

    def __init__(self, most: int = MOST_ANSWERS) -> None:
        self._most = most
        self._functions: dict[str, _Function] = {}
        self._lock = threading.Lock()

    def session(self) -> JobAnswersSession:
        """As one worker sees them, who may vanish."""
        return JobAnswersSession(self)

    def claim(
        self, name: str, keys: Sequence[bytes], who: JobAnswersSession, ttl: float | None = None
    ) -> Claim:
        """What is known of inputs of a function, for `ttl` seconds at most; what nobody asks about
        is claimed."""
        not_before = float("-inf") if ttl is None else time.time() - ttl
        known: list[int] = []
        mine: list[int] = []
        size = 0
        with self._lock:
            function = self._functions.setdefault(name, _Function())
            for at, key in enumerate(keys):
                value, told_at = function.answers.get(key, _NONE)
                if told_at >= not_before and told_at > 0:
                    size += _size(value)
                    if size <= MOST_BYTES or not known:  # the others when they are asked for again
                        known.append(at)
                elif function.claimed.setdefault(key, who) is who:
                    mine.append(at)
            values = [function.answers[keys[at]][0] for at in known]
            kind = function.type
        return Claim(known, pa.array(values, kind) if known else None, mine)

    def tell(
        self,
        name: str,
        keys: Sequence[bytes],
        values: pa.Array | None,
        back: Sequence[bytes],
        who: JobAnswersSession,
    ) -> None:
        """Take in what was asked, and what was not."""
        with self._lock:
            function = self._functions.setdefault(name, _Function())
            if values is not None:
                function.type = values.type
                now = time.time()
                told = ((value, now) for value in values.to_pylist())
                function.answers.update(zip(keys, told, strict=True))
            for key in (*keys, *back):
                if function.claimed.get(key) is who:
                    del function.claimed[key]
            while len(function.answers) > self._most:
                function.answers.popitem(last=False)

    def release(self, who: JobAnswersSession) -> None:
        """All claims of a worker that is gone are free again."""
        with self._lock:
            for function in self._functions.values():
                for key in [key for key, by in function.claimed.items() if by is who]:
                    del function.claimed[key]


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list) else 8


class JobAnswersSession:
    """A job's answers as one worker has them."""

    def __init__(self, job: JobAnswers) -> None:
        self._job = job

    def claim(self, name: str, keys: Sequence[bytes], ttl: float | None = None) -> Claim:
        """As `JobAnswers` has it."""
        return self._job.claim(name, keys, self, ttl)

    def tell(
        self, name: str, keys: Sequence[bytes], values: pa.Array | None, back: Sequence[bytes]
    ) -> None:
        """As `JobAnswers` has it."""
        self._job.tell(name, keys, values, back, self)

    def close(self) -> None:
        """The worker is gone."""
        self._job.release(self)


@dataclass(frozen=True)
class OneFunction:
    """The answers of one function in a session, or of a job elsewhere."""

    answers: JobAnswersSession | Any
    name: str
    ttl: float | None = None

    def claim(self, keys: Sequence[bytes]) -> Claim:
        """What is known of inputs, and what the asker is to ask."""
        claimed: Claim = self.answers.claim(self.name, keys, self.ttl)
        return claimed

    def tell(self, keys: Sequence[bytes], values: pa.Array | None, back: Sequence[bytes]) -> None:
        """What was asked, and what is given back."""
        self.answers.tell(self.name, keys, values, back)
