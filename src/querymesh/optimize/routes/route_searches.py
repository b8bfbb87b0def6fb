"""The searches for the route of a subset, by name; a new one is one new file and one new line here.

The paper leaves this search open (QM § 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping

from querymesh.optimize.routes.dynamic_programming import EXACT_LIMIT, dynamic_programming
from querymesh.optimize.routes.greedy import greedy
from querymesh.optimize.routes.rank import rank
from querymesh.optimize.routes.subset import RouteSearch, Subset
from querymesh.stats.profile import Route


def auto(subset: Subset) -> Route:
    """Exact up to EXACT_LIMIT operators, greedy above."""
    return (dynamic_programming if subset.operators <= EXACT_LIMIT else greedy)(subset)


ROUTE_SEARCHES: Mapping[str, RouteSearch] = {
    "auto": auto,
    "dynamic-programming": dynamic_programming,
    "rank": rank,
    "greedy": greedy,
}
