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
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

MOST_ANSWERS = 1_000_000
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
    """Where the workers of a job share what they asked of one function."""

    def claim(self, keys: Sequence[bytes]) -> Claim:
        """What is known of inputs, and what the asker is to ask."""
        ...

    def tell(self, keys: Sequence[bytes], values: pa.Array | None, back: Sequence[bytes]) -> None:
        """What was asked, and keys that are given back, since they were not."""
        ...


@dataclass
class _Function:
    """What a job knows of one function."""

    answers: OrderedDict[bytes, Any] = field(default_factory=OrderedDict)
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

    def claim(self, name: str, keys: Sequence[bytes], who: JobAnswersSession) -> Claim:
        """What is known of inputs of a function; what nobody asks about is claimed."""
        known: list[int] = []
        mine: list[int] = []
        size = 0
        with self._lock:
            function = self._functions.setdefault(name, _Function())
            for at, key in enumerate(keys):
                if key in function.answers:
                    size += _size(function.answers[key])
                    if size <= MOST_BYTES or not known:  # the others when they are asked for again
                        known.append(at)
                elif function.claimed.setdefault(key, who) is who:
                    mine.append(at)
            values = [function.answers[keys[at]] for at in known]
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
                function.answers.update(zip(keys, values.to_pylist(), strict=True))
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

    def claim(self, name: str, keys: Sequence[bytes]) -> Claim:
        """As `JobAnswers` has it."""
        return self._job.claim(name, keys, self)

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

    def claim(self, keys: Sequence[bytes]) -> Claim:
        """What is known of inputs, and what the asker is to ask."""
        claimed: Claim = self.answers.claim(self.name, keys)
        return claimed

    def tell(self, keys: Sequence[bytes], values: pa.Array | None, back: Sequence[bytes]) -> None:
        """What was asked, and what is given back."""
        self.answers.tell(self.name, keys, values, back)
