"""Entropy, information gain, and whether a gain could be chance (QM § 4.4; CBR eq. 2 and 3)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def xlog2x(values: Floats) -> Floats:
    """x log2 x, with 0 log 0 = 0."""
    return np.asarray(values * np.log2(np.where(values > 0, values, 1.0)), dtype=np.float64)


def entropy_bits(counts: Floats) -> Floats:
    """The entropy of each row of label counts times the row's weight: W log W - Σ c log c.

    >>> float(entropy_bits(np.array([[2.0, 2.0]]))[0])
    4.0
    """
    return np.asarray(xlog2x(counts.sum(axis=-1)) - xlog2x(counts).sum(axis=-1), dtype=np.float64)


def information_gain(left: Floats, right: Floats) -> Floats:
    """How many bits a split into left and right label counts saves, times the weight."""
    return entropy_bits(left + right) - entropy_bits(left) - entropy_bits(right)


def chance_of_gain(gain_bits: float, degrees: int, trials: int) -> float:
    """An upper bound on the probability of so large a gain if label and attribute were unrelated.

    2 ln 2 times the gain is the G statistic, chi-squared with `degrees` of freedom; the best of
    `trials` candidate splits was taken, hence Bonferroni. The tail is Wilson and Hilferty's cube
    root approximation, exact enough for a yes or no.
    """
    if gain_bits <= 0 or degrees < 1:
        return 1.0
    g = 2.0 * math.log(2.0) * gain_bits
    spread = 2.0 / (9.0 * degrees)
    z = ((g / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return min(1.0, trials * 0.5 * math.erfc(z / math.sqrt(2.0)))
