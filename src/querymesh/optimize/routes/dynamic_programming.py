"""The best route for a subset of tuples, exact (QM § 4.3).

What reaches an operator depends on *which* operators came before and not on their order, so the
dynamic program of System R [26] holds for filters and look-ups, correlation included:

    best(S) = min over j in S that may come last of
              best(S \\ j) + dropped · drop_us(j) + passed · pass_us(j)

with passed = survivors(S) and dropped = survivors(S \\ j) - survivors(S). It is 2^m, so it refuses
more than EXACT_LIMIT operators.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from querymesh.arrays import Bools, Floats, Ints
from querymesh.errors import TrainingError
from querymesh.mesh.route import written_route
from querymesh.optimize.routes.subset import After, Subset
from querymesh.stats.profile import Route

EXACT_LIMIT = 14


def dynamic_programming(subset: Subset) -> Route:
    """The exact optimum; refuses more than EXACT_LIMIT operators."""
    if subset.operators > EXACT_LIMIT:
        raise TrainingError(
            f"dynamic programming looks at 2^{subset.operators} sets of {subset.operators} "
            f"operators; it is meant for at most {EXACT_LIMIT}: use 'auto', 'greedy' or 'rank'"
        )
    return exact_route(subset.survivors, subset.drop_us, subset.pass_us, subset.after)[0]


def exact_route(
    survivors: Floats, drop_us: Floats, pass_us: Floats, after: After
) -> tuple[Route, float]:
    """The cheapest allowed route and its cost for the group whose survivors per set these are.

    A look-up, which can multiply rows, has one cost for either outcome; then the sum is what
    arrives times that cost.

    >>> after = (frozenset(), frozenset())
    >>> survivors = np.array([10.0, 9.0, 1.0, 0.9])     # of nothing, {1}, {2}, {1, 2}
    >>> exact_route(survivors, np.ones(2), np.ones(2), after)
    ((2, 1), 11.0)
    """

    def step_us(sets: Ints, without: Ints, operator: Ints) -> Floats:
        passed = survivors[sets]
        cost = passed * pass_us[operator] + (survivors[without] - passed) * drop_us[operator]
        return np.asarray(cost)

    return cheapest_order(len(drop_us), after, step_us)


def cheapest_order(
    operators: int, after: After, step_us: Callable[[Ints, Ints, Ints], Floats]
) -> tuple[Route, float]:
    """The allowed order with the least sum of steps, by dynamic programming over sets.

    `step_us(S, S without j, j)` is what operator j costs when the others of the set S came before
    it; it is asked about arrays of them.
    """
    best = np.full(1 << operators, np.inf)
    best[0] = 0.0
    last = np.zeros(1 << operators, dtype=np.int64)
    for sets, without, operator, forbidden in _levels(operators, after):
        cost = best[without] + step_us(sets[:, None], without, operator)
        if forbidden is not None:
            cost[forbidden] = np.inf
        choice = cost.argmin(axis=1)
        every = np.arange(len(sets))
        best[sets] = cost[every, choice]
        last[sets] = operator[every, choice]
    route: list[int] = []
    remaining = (1 << operators) - 1
    total = float(best[remaining])
    if not np.isfinite(total):
        written_route(after)  # says what contradicts what
    while remaining:
        route.append(int(last[remaining]) + 1)
        remaining ^= 1 << int(last[remaining])
    return tuple(reversed(route)), total


_Level = tuple[
    Ints,
    Ints,
    Ints,
    Bools | None,
]


@lru_cache(maxsize=64)
def _levels(operators: int, after: After) -> tuple[_Level, ...]:
    """By growing size: the sets S; for each of their members j, S without j, and j itself; and
    which of these steps precedence forbids, if any."""
    every = np.arange(1 << operators)
    size = np.array([int(s).bit_count() for s in every])
    needed = np.array([sum(1 << (k - 1) for k in before) for before in after])
    levels = []
    for count in range(1, operators + 1):
        sets = every[size == count]
        members = np.nonzero(sets[:, None] >> np.arange(operators) & 1)[1].reshape(-1, count)
        without = sets[:, None] ^ (1 << members)
        forbidden = (without & needed[members]) != needed[members]
        levels.append((sets, without, members, forbidden if forbidden.any() else None))
    return tuple(levels)
