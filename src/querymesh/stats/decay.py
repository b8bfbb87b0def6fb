"""A mean that forgets: exponentially decayed, with its effective sample size and standard error.

What a stream did long ago says little about what it does now. Every observation's weight is
multiplied by `keep` < 1 whenever a later one arrives, so with keep = 2^(-rows / half life) an
observation counts half after so many rows. The weights w_i that are left give

    mean       Σ w x / Σ w
    effective  (Σ w)² / Σ w²            how many equal observations would be as sure (Kish)
    error²     Σ w² v / (Σ w)²  +  between / effective

where v_i is the known noise of an observation (p(1-p)/n for a share of n rows) and `between` what
observations differ by beyond it. Batches of a stream do differ more than the drawing of rows
explains; an error without that term would call every other batch a change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class DecayedMean:
    """A decayed mean of weighted observations; constant memory, constant time.

    >>> load = DecayedMean()
    >>> for value in (4.0, 4.0, 1.0):
    ...     load.add(value, keep=0.5)
    >>> load.mean, round(load.effective, 2)
    (2.2857142857142856, 2.33)
    """

    weight: float = 0.0
    _squares: float = 0.0
    _sum: float = 0.0
    _sum_of_squares: float = 0.0
    _noise: float = 0.0
    _noise_of_mean: float = 0.0
    observations: int = 0

    def add(self, value: float, weight: float = 1.0, noise: float = 0.0, keep: float = 1.0) -> None:
        """Take in an observation whose own variance is `noise`; older ones keep this share."""
        self.weight = keep * self.weight + weight
        self._squares = keep * keep * self._squares + weight * weight
        self._sum = keep * self._sum + weight * value
        self._sum_of_squares = keep * self._sum_of_squares + weight * value * value
        self._noise = keep * self._noise + weight * noise
        self._noise_of_mean = keep * keep * self._noise_of_mean + weight * weight * noise
        self.observations += 1

    @property
    def mean(self) -> float:
        """The decayed mean; NaN before the first observation."""
        return self._sum / self.weight if self.weight else math.nan

    @property
    def effective(self) -> float:
        """How many equally weighted observations this is worth."""
        return self.weight * self.weight / self._squares if self._squares else 0.0

    @property
    def between(self) -> float:
        """The variance of observations beyond their own noise."""
        if self.effective <= 1.0 + 1e-9:
            return 0.0
        spread = self._sum_of_squares / self.weight - self.mean * self.mean
        unbiased = spread / (1.0 - 1.0 / self.effective)
        return max(0.0, unbiased - self._noise / self.weight)

    @property
    def error(self) -> float:
        """The standard error of the mean; infinite before the first observation."""
        return math.sqrt(self.variance(self.between))

    def variance(self, between: float) -> float:
        """The variance of the mean, if observations differ by so much beyond their noise."""
        if not self.weight:
            return math.inf
        return self._noise_of_mean / (self.weight * self.weight) + between / self.effective


def share_noise(passed: float, rows: float) -> float:
    """The variance of a share seen on so many rows; of a fan-out, where more leave than arrive.

    The share is drawn a little towards the middle, so that none of ten is not taken for never.
    """
    share = (passed + 0.5) / (rows + 1.0)
    return (share * (1.0 - share) if share < 1.0 else share) / max(rows, 1.0)
