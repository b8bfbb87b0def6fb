"""What a probe costs that does nothing but look: a lower bound for any program on such an index.

One hash index over the whole window, one attribute, times in a window, matches counted and not
kept: no routes, no partitions, no combinations, no results. What it grows by from small windows to
large ones is what the caches of the machine take.
"""

from __future__ import annotations

import statistics
from time import process_time

import numpy as np

from querymesh.arrays import Ints, Shorts
from querymesh.index.kernels.compiled import INT, INTS, SHORTS, kernel
from querymesh.index.store.hash_index import HashIndex

AT_ONCE = 16
"""Codes whose buckets are read before the first of them is looked into: their waits overlap."""


@kernel(INTS, SHORTS, INTS, INTS, INT, INT)
def look(asked: Ints, offsets: Shorts, codes: Ints, times: Ints, low: int, high: int) -> int:
    """How many rows have the codes that are asked for, and a time between two."""
    mask = np.uint64(len(offsets) - 2)
    begins = np.empty(AT_ONCE, np.int64)
    ends = np.empty(AT_ONCE, np.int64)
    found = 0
    for first in range(0, len(asked), AT_ONCE):
        count = min(AT_ONCE, len(asked) - first)
        for i in range(count):
            x = np.uint64(asked[first + i])
            x ^= x >> np.uint64(33)
            x *= np.uint64(0xFF51AFD7ED558CCD)
            x ^= x >> np.uint64(33)
            x *= np.uint64(0xC4CEB9FE1A85EC53)
            x ^= x >> np.uint64(33)
            bucket = np.int64(x & mask)
            begins[i] = offsets[bucket]
            ends[i] = offsets[bucket + 1]
        for i in range(count):
            for k in range(begins[i], ends[i]):
                if codes[k] == asked[first + i] and low <= times[k] <= high:
                    found += 1
    return found


class BareProbe:
    """An index of so many rows, asked for codes of which each has so many matches on average."""

    def __init__(self, window_rows: int, matches: float, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._values = max(round(window_rows / matches), 1)
        stored = self._rng.integers(0, self._values, window_rows)
        self.index = HashIndex.build(stored)
        order = self.index.order
        self.times = np.arange(window_rows) if order is None else order.astype(np.int64)

    def found(self, asked: Ints) -> int:
        """How many matches there are."""
        index = self.index
        return look(asked, index.offsets, index.codes, self.times, 0, len(self.times))

    def ns_a_probe(self, batch_rows: int, rounds: int) -> float:
        """Processor time a probe, the median of rounds of as many fresh probes as make a while."""
        took = []
        at_least = max(batch_rows, 200_000)
        for _ in range(rounds):
            asked = self._rng.integers(0, self._values, at_least)
            started = process_time()
            for first in range(0, at_least, batch_rows):
                self.found(asked[first : first + batch_rows])
            took.append((process_time() - started) / at_least)
        return 1e9 * statistics.median(took)
