"""The answers of a function that this process remembers, the longest unused forgotten first."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

import pyarrow as pa

from querymesh.query.costly.memo import Memo
from querymesh.query.costly.store.answer_store import BYTES_AN_ANSWER, AnswerStore, opened
from querymesh.query.costly.store.kept_answers import FOREVER, Answer

TRAVELLING = 20_000
"""So many answers at most travel with a function to its tasks."""


class Memory:
    """Answers by the key of their input; a store has what others asked, if there is one.

    Several threads may use it at once. `kind` and `code` are for the store (`opened`).
    """

    def __init__(
        self,
        memo: Memo,
        name: str,
        kind: pa.DataType | None = None,
        code: str = "",
    ) -> None:
        self.memo = memo
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()
        self._size = 0
        self._lock = Lock()
        self._store: AnswerStore | None = opened(memo, name, kind, code)

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Any]:
        """The values that are known, by key."""
        found = self._held(keys)
        if self._store is not None and len(found) < len(keys):
            missing = [key for key in keys if key not in found]
            answers = self._store.find(missing)
            self.learn(answers)
            found |= {key: value for key, (value, _) in answers.items()}
        return found

    def put(
        self,
        keys: Sequence[bytes],
        values: Sequence[Any],
        *,
        more: bool = False,
    ) -> None:
        """Remember what was asked just now, and keep it for others.

        It is written when this returns, or, where `more` will follow soon, within half a second or
        with what follows.
        """
        now = time.time()
        answers = {key: (value, now) for key, value in zip(keys, values, strict=True)}
        self.learn(answers)
        if self._store is not None:
            self._store.keep(answers, more=more)

    def flush(self) -> None:
        """Write what waits for more."""
        if self._store is not None:
            self._store.keep({})

    def learn_now(self, keys: Sequence[bytes], values: pa.Array) -> None:
        """Remember what others of the job asked: they keep it."""
        now = time.time()
        self.learn({k: (value, now) for k, value in zip(keys, values.to_pylist(), strict=True)})

    def learn(self, answers: Mapping[bytes, Answer]) -> None:
        """Remember what somebody asked, unless it is too old, or something newer is known."""
        not_before = self._not_before()
        with self._lock:
            for key, answer in answers.items():
                known = self._answers.get(key)
                if answer[1] >= not_before and (known is None or known[1] <= answer[1]):
                    if known is not None:
                        self._size -= _weight(known[0])
                    self._answers[key] = answer
                    self._answers.move_to_end(key)
                    self._size += _weight(answer[0])
            while self._size > self.memo.size:
                _, (value, _) = self._answers.popitem(last=False)
                self._size -= _weight(value)

    def known(self) -> dict[bytes, Answer]:
        """The answers used last, as many as may travel, the one used last at the end."""
        newest, size, not_before = [], 0, self._not_before()
        with self._lock:
            for key, answer in reversed(self._answers.items()):
                size += _weight(answer[0])
                if size > TRAVELLING:
                    break
                if answer[1] >= not_before:
                    newest.append((key, answer))
        return dict(reversed(newest))

    def _held(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        found = {}
        not_before = self._not_before()
        with self._lock:
            for key in keys:
                answer = self._answers.get(key)
                if answer is not None and answer[1] >= not_before:
                    self._answers.move_to_end(key)
                    found[key] = answer[0]
        return found

    def _not_before(self) -> float:
        return FOREVER if self.memo.ttl is None else time.time() - self.memo.ttl


def as_objects(values: pa.Array) -> list[Any] | None:
    """Values as Python has them, as they are remembered; None where it has none for one of them: a
    date after the year 9999, a struct with two fields of one name."""
    try:
        found: list[Any] = values.to_pylist()
    except (ArithmeticError, ValueError):
        return None
    return found


def _weight(value: Any) -> int:
    """For how many answers one counts: those of more than a kilobyte for several."""
    return 1 if type(value) in _SMALL else 1 + _size_bytes(value) // BYTES_AN_ANSWER


_SMALL = frozenset({bool, int, float, type(None)})


def _size_bytes(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(_size_bytes(each) for each in value.values())
    if isinstance(value, list | tuple):
        return sum(_size_bytes(each) for each in value)
    return 32
