"""What a route search is given, and the check of what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import index

import numpy as np

from querymesh.arrays import Floats
from querymesh.errors import TrainingError
from querymesh.mesh.route import route_fault
from querymesh.optimize.strategy import name_of
from querymesh.stats.profile import Route, survivors

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
