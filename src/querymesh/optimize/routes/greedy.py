"""Operators ordered by rank, asked again after each choice, on what is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from querymesh.mesh.route import by_precedence
from querymesh.optimize.routes.rank import rank_of
from querymesh.optimize.routes.subset import Subset
from querymesh.stats.profile import Route


def greedy(subset: Subset) -> Route:
    """The allowed operator that drops most per microsecond of what is left, each time."""
    alive = np.ones(len(subset.outcomes))

    def take(ready: Sequence[int]) -> int:
        nonlocal alive
        chosen = max(ready, key=lambda k: rank_of(subset, k, alive))
        alive = alive * subset.outcomes[:, chosen - 1]
        return chosen

    return by_precedence(subset.after, take)
