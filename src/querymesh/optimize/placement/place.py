"""The best placement of all operators, and the best single order that keeps to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from querymesh.mesh.stages import Parts
from querymesh.optimize.placement.costs import Costs, Placement, parts_of, stage_after
from querymesh.optimize.placement.exact import Crossing, exact_placement, is_exact
from querymesh.optimize.placement.local_search import local_placement
from querymesh.optimize.routes.route_searches import auto
from querymesh.optimize.routes.subset import RouteSearch
from querymesh.optimize.train.describe import best_single
from querymesh.stats.profile import Profile, survivors


def best_placement(
    profile: Profile, costs: Costs, crossing_us: Crossing | None = None
) -> Placement | None:
    """Exact up to about twelve operators, a local search above; None where precedence allows no
    order of the form Catalyst, Python, Catalyst.

    `crossing_us` says what a crossing row costs by the operators in Python; that of
    `costs` unless given.
    """
    crossing_us = crossing_us or costs.crossing_us
    if not is_exact(costs):
        local = local_placement(profile, costs, crossing_us)
        return None if local is None else local[0]
    everyone = np.zeros(profile.rows, dtype=np.int64)
    table = survivors(profile.outcomes, everyone, 1)[0]
    exact = exact_placement(table, costs, profile.after, crossing_us)
    return None if exact is None else exact[0]


def staged(profile: Profile, costs: Costs, placement: Placement) -> Profile:
    """The profile with each operator's cost where it is placed, and the stages as precedence."""
    drop_us, pass_us = costs.by_outcome(placement)
    after = stage_after(placement, profile.after)
    return replace(profile, drop_us=drop_us, pass_us=pass_us, after=after)


def best_parts(
    profile: Profile, costs: Costs, placement: Placement, route_search: RouteSearch = auto
) -> Parts:
    """The best single order that keeps to a placement."""
    return parts_of(best_single(staged(profile, costs, placement), route_search), placement)
