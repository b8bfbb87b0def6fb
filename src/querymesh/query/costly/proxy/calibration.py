"""Thresholds that hold recall and precision, with a stated confidence, whatever the model is.

::

    score   0 ─────────── lo ═══════════════ hi ─────────── 1
              false          asked              true
              (s < lo)       (or NULL)          (s > hi)

Let π be the share of rows that the function passes, y its answer, s the score. Asked rows count as
right, so that

    recall    = P(s ≥ lo | y)                          falls as lo grows
    precision = A / (A + W),   A = P(y, s ≥ lo),   W = P(not y, s > hi)     grows with hi

**Recall.** `lo` is an order statistic of the scores of the n passing rows held out: the k-th
smallest, k the largest number with P(Bin(n, 1 - r) ≤ k - 1) ≤ α₁. By Wilks' theorem on tolerance
limits ("Determination of sample sizes for setting tolerance limits", 1941), P(recall < r) ≤ α₁.

**Precision.** Where recall holds, A ≥ rπ, so that W / π ≤ c = r (1 - p) / p is enough. Among the n
passing rows and the w others above a fixed `hi`, each is one of the others with the chance
W / (π + W): `hi` is rejected unless P(Bin(n + w, c / (1 + c)) ≤ w) ≤ α₂, an exact test (Clopper and
Pearson, 1934). w grows as `hi` falls, so that going down until the first rejection is a fixed
sequence of tests, which needs no correction for how many there are ("Learn then Test", Angelopoulos
et al., 2021): the first `hi` that is wrong is passed by chance in a share of α₂ at most.

α₁ + α₂ = 1 - confidence: half each, or all for one where the other is to be 1.0, which decides
nothing. No distribution is assumed, and no score must be a probability: only that held-out rows are
drawn as the rows to come are, and took no part in the fit. The guarantee is of that distribution; a
result of few rows scatters around it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Bools, Floats
from querymesh.query.costly.proxy.binomial import errors_allowed, fewest_right
from querymesh.query.costly.proxy.options import Proxy


@dataclass(frozen=True)
class Thresholds:
    """Rows with a score below `lo` are false, with one above `hi` true, the others are asked."""

    lo: float
    hi: float

    def is_false(self, scores: Floats) -> Bools:
        """The rows that are decided to be false."""
        return np.asarray(scores < self.lo)

    def is_true(self, scores: Floats) -> Bools:
        """The rows that are decided to be true."""
        return np.asarray((scores > self.hi) & (scores >= self.lo))


NOTHING = Thresholds(-math.inf, math.inf)
"""Every row is asked."""


def calibrate(options: Proxy, scores: Floats, answers: Bools) -> Thresholds:
    """The thresholds that ask least and hold the guarantee, by rows held out of the fit."""
    risk = risk_of_each(options)
    passing = np.sort(np.where(np.isnan(scores), math.inf, scores)[answers])
    lo, hi = -math.inf, math.inf
    lost = errors_allowed(0, 1.0 - options.recall, risk, of_all=len(passing))
    if options.recall < 1.0 and 0 <= lost < len(passing) and passing[lost] < math.inf:
        lo = float(passing[lost])
    others = np.sort(np.where(np.isnan(scores), -math.inf, scores)[~answers])[::-1]
    wrong = errors_allowed(len(passing), wrong_rate(options), risk)
    if options.precision < 1.0 and wrong >= 0:
        hi = float(others[wrong]) if wrong < len(others) else -math.inf
    if lo > hi:
        lo = min(max(0.5, np.nextafter(hi, math.inf)), lo)
        hi = float(np.nextafter(lo, -math.inf))
    return Thresholds(lo, hi)


def risk_of_each(options: Proxy) -> float:
    """The chance that may be taken with recall, and with precision."""
    return (1.0 - options.confidence) / (1 if 1.0 in (options.recall, options.precision) else 2)


def wrong_rate(options: Proxy) -> float:
    """c / (1 + c): the share of the wrong ones among them and all that the function passes."""
    ratio = options.recall * (1.0 - options.precision) / options.precision
    return ratio / (1.0 + ratio)


def fewest_passing(options: Proxy) -> int:
    """Rows that pass, of those held out, without which nothing can be decided."""
    rates = [1.0 - options.recall] if options.recall < 1.0 else []
    rates += [wrong_rate(options)] if options.precision < 1.0 else []
    return min(fewest_right(rate, risk_of_each(options)) for rate in rates)
