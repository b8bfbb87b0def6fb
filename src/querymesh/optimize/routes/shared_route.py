"""The best route for queries that share one pass (QM § 5.2).

An operator is asked about a tuple as long as *one* of its queries is left for it. Which queries are
left depends on the set of operators done and not on their order, so the program of
`dynamic_programming.py` stays exact; only what reaches an operator depends on the operator, too:

    best(S + j) = best(S) + met(j, S) · drop_us(j) + passed(j, S) · (pass_us - drop_us)(j)

It is exact for filters. Rows that look-ups multiplied are counted as those of the query that has
most of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.mesh.route import by_precedence
from querymesh.optimize.routes.dynamic_programming import cheapest_order
from querymesh.optimize.routes.subset import After, Subset
from querymesh.stats.profile import Route, meetings

EXACT_LIMIT = 10
"""Operators, at most, of the exact search: its tables have 2^m sets for each query and pattern."""


@dataclass(frozen=True)
class SharedRoutes:
    """A `RouteSearch` for queries in one pass: `serves` has a mask of queries for each operator."""

    serves: tuple[int, ...]

    def __call__(self, subset: Subset) -> Route:
        """The best order up to EXACT_LIMIT operators; above, greedy by queries dropped per cost."""
        patterns, weights = np.unique(subset.outcomes, axis=0, return_counts=True)
        alive = np.ones((max(self.serves, default=0).bit_length(), len(patterns)))
        if subset.operators > EXACT_LIMIT:
            return self._greedy(subset, patterns, weights.astype(np.float64), alive)
        met, passed = meetings(patterns, self.serves, alive, weights.astype(np.float64))
        return order_by_meetings(met, passed, subset.drop_us, subset.pass_us, subset.after)[0]

    def _greedy(self, subset: Subset, patterns: Floats, weights: Floats, alive: Floats) -> Route:
        """Each time the operator that takes most (tuple, query) pairs away per microsecond."""

        def score(k: int) -> float:
            mine = [q for q in range(len(alive)) if self.serves[k - 1] >> q & 1]
            outcome = patterns[:, k - 1]
            dropped = float(((alive[mine] * np.maximum(1.0 - outcome, 0.0)) @ weights).sum())
            met = alive[mine].max(axis=0) * weights
            passed = float(met @ np.minimum(outcome, 1.0))
            cost = (met.sum() - passed) * subset.drop_us[k - 1] + passed * subset.pass_us[k - 1]
            return dropped / cost if cost > 0 else 0.0

        def choose(ready: Sequence[int]) -> int:
            chosen = max(ready, key=score)
            mine = [q for q in range(len(alive)) if self.serves[chosen - 1] >> q & 1]
            alive[mine] *= patterns[:, chosen - 1]
            return chosen

        return by_precedence(subset.after, choose)


def order_by_meetings(
    met: Floats, passed: Floats, drop_us: Floats, pass_us: Floats, after: After
) -> tuple[Route, float]:
    """The order with the least cost, and the cost, for tables as `meetings` makes them."""

    def step_us(_: Ints, without: Ints, j: Ints) -> Floats:
        return np.asarray(
            met[j, without] * drop_us[j] + passed[j, without] * (pass_us - drop_us)[j]
        )

    return cheapest_order(len(drop_us), after, step_us)
