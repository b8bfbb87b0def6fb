"""How many inputs of a whole job differ, by those of a sample.

The guaranteed-error estimator of Charikar, Chaudhuri, Motwani and Narasayya (PODS 2000): a value
that is in the sample more than once is frequent, and counted once; those that are in it once stand
for others, as many as lie between 1 and N/n of them each, and the geometric mean of the two errs by
a factor of sqrt(N/n) at most, which no estimator betters::

    D = sqrt(N / n) · f₁ + (d - f₁)      n rows sampled of N, d values, f₁ of them once
"""

from __future__ import annotations

import math

import numpy as np

from querymesh.arrays import Ints


def distinct_of(kind_of: Ints, rows: float) -> float:
    """About how many of so many rows differ, by the kinds of the sampled ones.

    >>> distinct_of(np.array([0, 0, 1, 1]), rows=1_000_000)
    2.0
    >>> distinct_of(np.array([0, 1, 2, 3]), rows=400)
    40.0
    """
    sampled = len(kind_of)
    if sampled == 0:
        return 0.0
    counts = np.bincount(kind_of)
    seen, once = int(np.count_nonzero(counts)), int(np.count_nonzero(counts == 1))
    more = math.sqrt(max(rows, sampled) / sampled)
    return min(max(rows, float(seen)), more * once + (seen - once))
