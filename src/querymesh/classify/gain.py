"""Entropy, information gain, gain ratio, and whether a gain could be chance (QM § 4.4; CBR § 3)."""

from __future__ import annotations

import math

import numpy as np

from querymesh.arrays import Floats


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


def gain_ratio(arrived: Floats, passed: Floats) -> float:
    """How much of an operator's verdict an attribute tells, by the bits it takes to say its value.

    CBR eq. 2 to 5, on the tuples that arrived in each partition of the attribute and those that
    passed. An attribute of one value says nothing: 0.

    >>> table_1 = np.array([0.10, 0.20, 0.90])
    >>> round(gain_ratio(np.full(3, 100.0), 100 * table_1), 3)
    0.264
    """
    labels = np.stack([passed, arrived - passed], axis=-1)
    saved = float(entropy_bits(labels.sum(axis=0)) - entropy_bits(labels).sum())
    split = float(entropy_bits(arrived))
    return max(saved, 0.0) / split if split > 0 else 0.0


def explained_variance(arrived: Floats, sums: Floats, squares: float) -> float:
    """The share of the variance of an operator's fan-out that an attribute explains.

    The test of CBR § 4.5 for operators that may give several tuples for one: between-partition over
    total variance, less what chance explains (Kelley's epsilon squared). `sums` is the fan-out by
    partition, `squares` the sum of its squares.

    >>> explained_variance(np.array([50.0, 50.0]), np.array([0.0, 200.0]), 50 * 4.0**2)
    1.0
    >>> explained_variance(np.array([50.0, 50.0]), np.array([100.0, 100.0]), 400.0)
    0.0
    """
    there = arrived > 0
    total, groups = float(arrived.sum()), int(there.sum())
    if total <= groups or groups < 2:
        return 0.0
    mean = float(sums.sum()) / total
    within = squares - float((sums[there] ** 2 / arrived[there]).sum())
    whole = squares - total * mean**2
    if whole <= 1e-12 * max(squares, 1.0):
        return 0.0
    return max(0.0, 1.0 - (within / whole) * (total - 1) / (total - groups))
