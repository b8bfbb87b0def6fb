"""The best route for a group of tuples, read off their profile.

`exact_route` is the dynamic program over sets of operators (System R's, on filters and look-ups):
what reaches an operator depends on *which* operators came before and not on their order, so

    best(S) = min over j in S that may come last of
              best(S \\ j) + dropped · drop_us(j) + passed · pass_us(j)

with passed = survivors(S) and dropped = survivors(S \\ j) - survivors(S) is exact, correlation
included. It is 2^m, so above EXACT_LIMIT operators `greedy_route` takes the
operator that drops most per microsecond of what is left, each time (rank, as in QM § 4.3's [17]).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from querymesh.stats.profile import Floats, Route

EXACT_LIMIT = 14

After = tuple[frozenset[int], ...]


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
    operators = len(drop_us)
    best = np.full(1 << operators, np.inf)
    best[0] = 0.0
    last = np.zeros(1 << operators, dtype=np.int64)
    for sets, without, operator in _transitions(operators, after):
        passed = survivors[sets]
        cost = best[without] + passed * pass_us[operator]
        cost += (survivors[without] - passed) * drop_us[operator]
        better = cost < best[sets]
        best[sets[better]] = cost[better]
        last[sets[better]] = operator
    route: list[int] = []
    remaining = (1 << operators) - 1
    total = float(best[remaining])
    while remaining:
        route.append(int(last[remaining]) + 1)
        remaining ^= 1 << int(last[remaining])
    return tuple(reversed(route)), total


@lru_cache(maxsize=64)
def _transitions(
    operators: int, after: After
) -> tuple[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int], ...]:
    """Every allowed "j comes last in S", by growing size of S: arrays of S, S without j, and j."""
    every = np.arange(1 << operators)
    size = np.array([int(s).bit_count() for s in every])
    steps = []
    for count in range(1, operators + 1):
        for j in range(operators):
            needed = sum(1 << (k - 1) for k in after[j])
            without = every ^ (1 << j)
            allowed = (size == count) & (every & (1 << j) > 0) & ((without & needed) == needed)
            sets = every[allowed]
            if len(sets):
                steps.append((sets, sets ^ (1 << j), j))
    return tuple(steps)


def greedy_route(outcomes: Floats, drop_us: Floats, pass_us: Floats, after: After) -> Route:
    """Take the allowed operator with the largest dropped share per cost on what is left."""
    alive = np.ones(outcomes.shape[0])
    route: list[int] = []
    waiting = set(range(1, len(drop_us) + 1))
    while waiting:
        ready = [k for k in sorted(waiting) if not (after[k - 1] & waiting)]
        arriving = alive.sum()

        def rank(k: int, alive: Floats = alive, arriving: float = float(arriving)) -> float:
            kept = float((alive * outcomes[:, k - 1]).sum()) / arriving if arriving else 1.0
            cost = drop_us[k - 1] + (pass_us - drop_us)[k - 1] * min(kept, 1.0)
            return (1.0 - kept) / float(cost)

        chosen = max(ready, key=rank)
        alive = alive * outcomes[:, chosen - 1]
        waiting.remove(chosen)
        route.append(chosen)
    return tuple(route)


def written_route(after: Sequence[frozenset[int]]) -> Route:
    """The order as written, moved only as far as precedence asks: the route before any learning."""
    route: list[int] = []
    waiting = list(range(1, len(after) + 1))
    while waiting:
        chosen = next(k for k in waiting if not (after[k - 1] & set(waiting)))
        waiting.remove(chosen)
        route.append(chosen)
    return tuple(route)
