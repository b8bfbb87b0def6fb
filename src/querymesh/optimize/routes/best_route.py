"""The best route for a subset of tuples, read off their profile (QM § 4.3).

The paper leaves the search for a subset's route open; here are three, in `ROUTE_SEARCHES`:

`dynamic-programming` (System R's [26], on filters and look-ups) is exact, correlation included.
What reaches an operator depends on *which* operators came before and not on their order, so

    best(S) = min over j in S that may come last of
              best(S \\ j) + dropped · drop_us(j) + passed · pass_us(j)

with passed = survivors(S) and dropped = survivors(S \\ j) - survivors(S). It is 2^m, so it refuses
more than EXACT_LIMIT operators. `rank` [17] orders once by (dropped share) / cost of each operator
by itself. `greedy` asks for the rank again after each choice, on what is left. `auto`, the default,
is the dynamic program as far as it goes and greedy above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import index

import numpy as np
import numpy.typing as npt

from querymesh.arrays import Floats, Ints
from querymesh.errors import TrainingError
from querymesh.mesh.route import by_precedence, route_fault, written_route
from querymesh.optimize.strategy import name_of
from querymesh.stats.profile import Route, survivors

EXACT_LIMIT = 14

After = tuple[frozenset[int], ...]


@dataclass(frozen=True)
class Subset:
    """Tuples that are to share a route: their outcomes, and the operators' costs and precedence.

    `table` makes what `survivors` gives for them, where there is a quicker way to it.
    """

    outcomes: Floats
    drop_us: Floats
    pass_us: Floats
    after: After
    table: Callable[[], Floats] | None = None

    @property
    def operators(self) -> int:
        """How many operators a route has."""
        return len(self.drop_us)

    @cached_property
    def survivors(self) -> Floats:
        """How many rows survive each set of operators, a set being a bit mask."""
        if self.table is not None:
            return self.table()
        everyone = np.zeros(len(self.outcomes), dtype=np.int64)
        return np.asarray(survivors(self.outcomes, everyone, 1)[0])


RouteSearch = Callable[[Subset], Route]
"""A strategy that orders all operators for a subset, those `after` others behind them."""


def dynamic_programming(subset: Subset) -> Route:
    """The exact optimum; refuses more than EXACT_LIMIT operators."""
    if subset.operators > EXACT_LIMIT:
        raise TrainingError(
            f"dynamic programming looks at 2^{subset.operators} sets of {subset.operators} "
            f"operators; it is meant for at most {EXACT_LIMIT}: use 'auto', 'greedy' or 'rank'"
        )
    return exact_route(subset.survivors, subset.drop_us, subset.pass_us, subset.after)[0]


def greedy(subset: Subset) -> Route:
    """The operator that drops most per microsecond of what is left, each time."""
    return greedy_route(subset.outcomes, subset.drop_us, subset.pass_us, subset.after)


def rank(subset: Subset) -> Route:
    """By falling (1 - s) / c, each operator judged on the tuples it may meet first; optimal for
    independent filters without precedence [17]. Of operators that must wait for others, the best
    of those that need not wait comes next."""
    ranks = []
    for k, after in enumerate(subset.after):
        alive = np.prod(subset.outcomes[:, [i - 1 for i in sorted(after)]], axis=1)
        ranks.append(_rank(alive, subset.outcomes[:, k], subset.drop_us[k], subset.pass_us[k]))
    return by_precedence(subset.after, lambda ready: max(ready, key=lambda k: ranks[k - 1]))


def auto(subset: Subset) -> Route:
    """Exact up to EXACT_LIMIT operators, greedy above."""
    return (dynamic_programming if subset.operators <= EXACT_LIMIT else greedy)(subset)


ROUTE_SEARCHES: Mapping[str, RouteSearch] = {
    "auto": auto,
    "dynamic-programming": dynamic_programming,
    "rank": rank,
    "greedy": greedy,
}


def checked_route(search: RouteSearch, subset: Subset) -> Route:
    """The route that a search, perhaps a caller's own, has for a subset; refused if it is none."""
    returned: object = search(subset)
    try:
        route = tuple(index(operator) for operator in returned)  # type: ignore[attr-defined]
    except TypeError:
        fault = "is not a sequence of operator numbers"
    else:
        fault = route_fault(route, subset.after)
    if fault:
        shown = tuple(returned) if isinstance(returned, tuple | list) else returned
        raise TrainingError(
            f"route search {name_of(search)} returned {shown!r}, which {fault}: a route is a "
            f"tuple of the numbers from 1 to {subset.operators}, each once, and each operator "
            "behind those it must come after"
        )
    return route


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
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.bool_] | None,
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


def greedy_route(outcomes: Floats, drop_us: Floats, pass_us: Floats, after: After) -> Route:
    """Take the allowed operator with the largest dropped share per cost on what is left."""
    alive = np.ones(outcomes.shape[0])

    def take(ready: Sequence[int]) -> int:
        nonlocal alive
        ranks = [_rank(alive, outcomes[:, k - 1], drop_us[k - 1], pass_us[k - 1]) for k in ready]
        chosen = ready[int(np.argmax(ranks))]
        alive = alive * outcomes[:, chosen - 1]
        return chosen

    return by_precedence(after, take)


def _rank(alive: Floats, outcome: Floats, drop_us: float, pass_us: float) -> float:
    """(1 - s) / c on the rows that are alive."""
    arriving = float(alive.sum())
    kept = float((alive * outcome).sum()) / arriving if arriving else 1.0
    cost = float(drop_us + (pass_us - drop_us) * min(kept, 1.0))
    return (1.0 - kept) / max(cost, 1e-12)
