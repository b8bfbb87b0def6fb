"""What a Python worker keeps from one task to the next, of several kinds, each within bounds.

A worker serves many tasks, batches and runs: look-up tables, routers and mapped states are made
once and found again. The longest unused are forgotten. A driver keeps what it decided likewise.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class WorkerCache(Generic[K, V]):
    """Values by key, `most` of them at most.

    >>> cache: WorkerCache[str, int] = WorkerCache(2)
    >>> [cache.get_or_make(name, lambda: len(name)) for name in ("a", "bb", "ccc")]
    [1, 2, 3]
    >>> list(cache)
    ['bb', 'ccc']
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value of a key, None if it is not there."""
        return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """Keep a value as the one used last."""
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made at its first use."""
        value = self._values[key] if key in self._values else make()
        self.put(key, value)
        return value

    def clear(self) -> None:
        """Forget all values, as a new worker would."""
        self._values.clear()
