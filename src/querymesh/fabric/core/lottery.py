"""Lotteries: how a ruster on an uncertain route finds its next operator (QM § 5.4).

Each kind of choice has a wheel of its own: by the subset of the data (the leaf), the operators
still to choose from and, of queries that share a pass, those still served. Slices start equal. What
a chosen operator drops of the tuples it got is recorded for that wheel, and its slice grows with
what it drops per microsecond::

    wheel of leaf 2, choosing from 3|1         operator 3 dropped 60 % at 2 us, 1 dropped 10 %
      [======3======|======1======]     ->       [==========3==========|=1=]

No slice falls below a floor, and old draws are forgotten, so a wheel can turn back. The paper looks
at the selectivity alone; dividing by the operator's cost (as trained) prefers what saves time. On
Spark every Python worker has wheels of its own, which last from batch to batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FLOOR = 0.05
"""The least slice of any choice: what looks bad is still tried now and then."""

REMEMBERED_ROWS = 50_000
"""Once a wheel has seen so many tuples of one operator, their weight is halved."""

LEAST_DROPPED = 0.01
"""An operator that drops nothing, or multiplies rows, counts as dropping this share."""


WheelKey = tuple[int, frozenset[int], int]
"""The leaf, the operators of the choice, and the mask of queries the tuples still serve."""

Seed = int | tuple[int, ...]


@dataclass
class _Outcomes:
    arrived: float = 0.0
    passed: float = 0.0


class Lottery:
    """The wheels of one mesh. Seeded: the same rusters in the same order draw the same."""

    def __init__(self, cost_us: Sequence[float], seed: Seed = 0) -> None:
        self._cost_us = [cost if cost > 0 else 1.0 for cost in cost_us]
        self._rng = np.random.default_rng(seed)
        self._wheels: dict[WheelKey, dict[int, _Outcomes]] = {}

    def draw(self, key: WheelKey, choices: Sequence[int]) -> int:
        """Turn a wheel: one of the choices that may come next."""
        return int(self._rng.choice(list(choices), p=self.slices(key, choices)))

    def learn(self, key: WheelKey, index: int, arrived: int, passed: int) -> None:
        """Record what the operator that was drawn did with the tuples it got."""
        seen = self._wheels.setdefault(key, {}).setdefault(index, _Outcomes())
        seen.arrived += arrived
        seen.passed += passed
        if seen.arrived > REMEMBERED_ROWS:
            seen.arrived /= 2
            seen.passed /= 2

    def slices(self, key: WheelKey, choices: Sequence[int]) -> list[float]:
        """Each choice's probability; equal as long as nothing is known."""
        wheel = self._wheels.get(key, {})
        scores = {
            index: max(1.0 - wheel[index].passed / wheel[index].arrived, LEAST_DROPPED)
            / self._cost_us[index - 1]
            for index in choices
            if index in wheel and wheel[index].arrived
        }
        usual = sum(scores.values()) / len(scores) if scores else 1.0
        weights = np.array([scores.get(index, usual) for index in choices])
        floor = min(FLOOR, 1.0 / len(choices))
        shares = floor + (1.0 - floor * len(choices)) * weights / weights.sum()
        return [float(share) for share in shares]
