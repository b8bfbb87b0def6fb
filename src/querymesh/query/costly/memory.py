"""The answers of a function that this process remembers, the longest unused forgotten first."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from querymesh.query.costly.memo import Memo
from querymesh.query.costly.store import AnswerStore, opened
from querymesh.worker_cache import WorkerCache

Answer = tuple[Any, float]
"""The value, and when it was asked for (seconds since 1970)."""

TRAVELLING = 20_000
"""So many answers at most travel with a function to its tasks."""

REFRESH_S = 0.5
"""A store is looked into for what others have asked, at most so often."""


class Memory:
    """Answers by the key of their input; `store` has what others asked, if there is one."""

    def __init__(self, memo: Memo, name: str) -> None:
        self.memo = memo
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()
        self._store: AnswerStore | None = opened(memo, name)
        self._looked_at = -REFRESH_S

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Any]:
        """The values that are known, by key."""
        found = self._held(keys)
        if self._store is not None and len(found) < len(keys) and self._is_time_to_look():
            self.learn(self._store.unread())
            found = self._held(keys)
        return found

    def put(self, keys: Sequence[bytes], values: Sequence[Any]) -> None:
        """Remember what was asked just now, and keep it for others."""
        now = time.time()
        answers = {key: (value, now) for key, value in zip(keys, values, strict=True)}
        self.learn(answers)
        if self._store is not None and answers:
            self._store.keep(answers)

    def learn(self, answers: Mapping[bytes, Answer]) -> None:
        """Remember what somebody asked, unless it is too old."""
        for key, (value, at) in answers.items():
            if not self._is_old(at):
                self._answers[key] = value, at
                self._answers.move_to_end(key)
        while len(self._answers) > self.memo.size:
            self._answers.popitem(last=False)

    def known(self) -> dict[bytes, Answer]:
        """The answers used last, as many as may travel."""
        newest = list(self._answers.items())[-TRAVELLING:]
        return dict(newest)

    def _held(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        found = {}
        for key in keys:
            answer = self._answers.get(key)
            if answer is None or self._is_old(answer[1]):
                continue
            self._answers.move_to_end(key)
            found[key] = answer[0]
        return found

    def _is_old(self, at: float) -> bool:
        return self.memo.ttl is not None and time.time() - at > self.memo.ttl

    def _is_time_to_look(self) -> bool:
        now = time.monotonic()
        if now - self._looked_at < REFRESH_S:
            return False
        self._looked_at = now
        return True


memories: WorkerCache[str, Memory] = WorkerCache(64)
"""By the identity of a function in a run, what this process knows of it."""
