"""The best bits for every number of them, by trying all configurations: where there are not many.

Three attributes and eleven bits make 364 configurations. One matrix product has their costs, in
less time than a search takes to begin; `selection.py` searches where there are too many for that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from querymesh.arrays import Floats
from querymesh.cost.index_cost import Prices, Workload, hash_cost
from querymesh.index.tune.selection import TOLERANCE, Selected

MOST_TRIED = 20_000


def are_few(attributes: int, bits: int) -> bool:
    """Whether there are few enough configurations of at most so many bits.

    >>> are_few(3, 11), are_few(10, 20)
    (True, False)
    """
    return math.comb(attributes + bits, attributes) <= MOST_TRIED


def best_by_total(workload: Workload, prices: Prices, attributes: int, bits: int) -> list[Selected]:
    """The best configuration of at most 0, 1, ... `bits` bits, each as `selection.all_bits` has it:
    of equals that of fewest bits, and of these the first in the order of tuples."""
    tried = _configurations(attributes, bits)
    specified = np.zeros((attributes, len(workload.frequencies)))
    for column, pattern in enumerate(workload.frequencies):
        specified[list(pattern), column] = 1.0
    weights = workload.requests * workload.stored * np.array(list(workload.frequencies.values()))
    hashed = np.array([hash_cost(j, workload, prices) for j in range(attributes)])
    compared = np.exp2(-(tried @ specified)) @ weights * prices.compare_us
    costs = compared + (tried > 0) @ hashed
    totals = tried.sum(axis=1)
    best = []
    for most in range(bits + 1):
        within = costs[: np.searchsorted(totals, most, "right")]
        first = int(np.argmax(within <= within.min() * (1 + TOLERANCE)))
        chosen = tuple(int(count) for count in tried[first])
        best.append(Selected(chosen, float(within[first]), len(within)))
    return best


@lru_cache(maxsize=32)
def _configurations(attributes: int, bits: int) -> Floats:
    """All configurations, those of few bits first, then in the order of tuples."""

    def of(total: int, left: int) -> Iterator[tuple[int, ...]]:
        if left == 0:
            if total == 0:
                yield ()
            return
        for count in range(total + 1):
            for rest in of(total - count, left - 1):
                yield (count, *rest)

    rows = [row for total in range(bits + 1) for row in of(total, attributes)]
    return np.array(rows, dtype=np.float64).reshape(len(rows), attributes)
