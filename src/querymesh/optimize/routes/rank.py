"""Operators ordered once by rank, (dropped share) / cost, each judged by itself [17]."""

from __future__ import annotations

import numpy as np

from querymesh.arrays import Floats
from querymesh.mesh.route import by_precedence
from querymesh.optimize.routes.subset import Subset
from querymesh.stats.profile import Route

LEAST_COST_US = 1e-12
"""A cost of 0 would leave no rank."""


def rank(subset: Subset) -> Route:
    """By falling (1 - s) / c, each operator judged on the tuples it may meet first; optimal for
    independent filters without precedence. Of operators that must wait for others, the best of
    those that need not wait comes next."""
    ranks = []
    for k, after in enumerate(subset.after):
        alive = np.prod(subset.outcomes[:, [i - 1 for i in sorted(after)]], axis=1)
        ranks.append(rank_of(subset, k + 1, alive))
    return by_precedence(subset.after, lambda ready: max(ready, key=lambda k: ranks[k - 1]))


def rank_of(subset: Subset, operator: int, alive: Floats) -> float:
    """(1 - s) / c of an operator on what is alive of each tuple."""
    drop_us, pass_us = subset.drop_us[operator - 1], subset.pass_us[operator - 1]
    arriving = float(alive.sum())
    passed = float((alive * subset.outcomes[:, operator - 1]).sum())
    kept = passed / arriving if arriving else 1.0
    cost_us = float(drop_us + (pass_us - drop_us) * min(kept, 1.0))
    return (1.0 - kept) / max(cost_us, LEAST_COST_US)
