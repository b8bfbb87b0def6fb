"""Concept drift, read off counts that a run keeps anyway (QM § 5.3).

Every operator counts what it evaluated and what it let through, for each leaf of the mesh. As long
as the data stays as it is, so do these shares; a share that leaves its reference by more than the
uncertainty of both, and by enough to matter, is a shift. Nothing is evaluated to find it.

The reference is the mean since the mesh was installed and forgets nothing, so that a slow drift
adds up until it shows; the recent mean forgets half every `half_life_rows` rows. How much batches
differ anyway is told by one batch and the next (von Neumann's mean square successive difference):
about their mean they differ by the drift as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from querymesh.stats.decay import DecayedMean, share_noise

LeafOperator = tuple[int, int]
"""A leaf of the mesh, from the left, and an operator's index."""

LEAST_BATCHES = 4
"""A reference of fewer batches than this does not know yet how much batches differ."""

LEAST_SHIFT = 0.05
"""A smaller change of a pass rate is no reason to look again."""

SURENESS = 4.5
"""Standard errors: every batch asks about every operator in every leaf."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A pass rate that is no longer what it was."""

    leaf: int
    operator: int
    before: float
    now: float


@dataclass
class _Rate:
    reference: DecayedMean = field(default_factory=DecayedMean)
    recent: DecayedMean = field(default_factory=DecayedMean)
    differences: DecayedMean = field(default_factory=DecayedMean)
    last: tuple[float, float] | None = None

    def add(self, share: float, noise: float, evaluations: int) -> None:
        """Take a batch into the reference."""
        self.reference.add(share, evaluations, noise)
        if self.last is not None:
            before, noise_before = self.last
            self.differences.add(((share - before) ** 2 - noise - noise_before) / 2)
        self.last = share, noise

    @property
    def is_shift(self) -> bool:
        if self.reference.observations < LEAST_BATCHES:
            return False
        between = max(0.0, self.differences.mean)
        error = math.sqrt(self.reference.variance(between) + self.recent.variance(between))
        shift = abs(self.recent.mean - self.reference.mean)
        least = LEAST_SHIFT * max(1.0, self.reference.mean)
        return shift > max(least, SURENESS * error)


class DriftDetector:
    """Compares recent pass rates with those since it was started."""

    def __init__(self, half_life_rows: int) -> None:
        self._half_life_rows = half_life_rows
        self._rates: dict[LeafOperator, _Rate] = {}

    def restart(self) -> None:
        """Forget the reference: the mesh or the data is another now."""
        self._rates = {}

    def observe(self, rows: int, counts: Mapping[LeafOperator, tuple[int, int]]) -> list[Shift]:
        """Take in a batch: of so many rows, what each operator evaluated and let through."""
        keep = 2.0 ** (-rows / self._half_life_rows)
        shifts = []
        for (leaf, operator), (evaluations, passed) in counts.items():
            if evaluations == 0:
                continue
            rate = self._rates.setdefault((leaf, operator), _Rate())
            share, noise = passed / evaluations, share_noise(passed, evaluations)
            rate.recent.add(share, evaluations, noise, keep)
            if rate.is_shift:
                shifts.append(Shift(leaf, operator, rate.reference.mean, rate.recent.mean))
            rate.add(share, noise, evaluations)
        return shifts
