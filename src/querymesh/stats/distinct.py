"""How many inputs of a whole job differ, by those of a sample.

Heaps' law: of texts, addresses and agents the number that differ grows as a power of how many were
seen, d(n) = K·n^β. What half of the sample would have had is known without drawing it (a value
that is there c times is missed with the chance 2^-c), and so is the exponent, here and now::

    d(n/2) = Σ 1 - 2^-c      β = log₂ d(n) / d(n/2)      D(N) = d(n) · (N/n)^β

Where nothing repeats β is 1, and all rows are taken to differ; where every value is there many
times it is 0, and no further ones are expected. A few values that are rare at n and exhausted soon
afterwards are taken for more than they are: then a function seems dearer than it will be.
"""

from __future__ import annotations

import numpy as np

from querymesh.arrays import Ints


def distinct_of(kind_of: Ints, rows: float) -> float:
    """About how many of so many rows differ, by the kinds of the sampled ones.

    >>> distinct_of(np.array([0, 1, 2, 3]), rows=400)
    400.0
    >>> round(distinct_of(np.repeat(np.arange(5), 100), rows=1_000_000), 6)
    5.0
    """
    sampled = len(kind_of)
    if sampled == 0:
        return 0.0
    counts = np.bincount(kind_of)
    counts = counts[counts > 0]
    seen = float(len(counts))
    of_half = float((1.0 - 0.5**counts).sum())
    grows = min(1.0, max(0.0, float(np.log2(seen / of_half))))
    return float(min(max(rows, seen), seen * max(1.0, rows / sampled) ** grows))
