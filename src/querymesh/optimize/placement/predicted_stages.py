"""A filter whose Python functions are ordered row by row, by what is foretold of them.

A model is asked in Python, so it cannot decide what Catalyst does: what stands before the Python
stage and after it is the same for all rows, as the best single order has it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from querymesh.optimize.placement.costs import Costs, in_python, parts_of
from querymesh.optimize.placement.engines import StagedRoutes
from querymesh.optimize.placement.place import staged
from querymesh.optimize.train.predicted_mesh import (
    beyond_chance,
    is_worth_foretelling,
    judged_by,
    predicted_mesh,
    saves_for_sure,
)
from querymesh.optimize.train.training import Training
from querymesh.query.model import Query
from querymesh.stats.profile import Profile


def or_predicted(
    found: StagedRoutes,
    single: StagedRoutes,
    query: Query,
    profile: Profile,
    costs: Costs,
    training: Training,
) -> tuple[StagedRoutes, bool]:
    """What was found, or the mesh by what is foretold where that is cheaper beyond chance than it
    and than the single order; and whether it might be, which a larger sample would tell."""
    if not training.predict or training.learner is not None or found.trained is None:
        return found, False
    fixed = _with_python_free(profile, costs, single)
    route = single.single.route
    if len(in_python(single.placement)) < 2 or not is_worth_foretelling(query, fixed, route):
        return found, False
    predicted = predicted_mesh(fixed, single.overheads, route, training.seed)
    if predicted is None:
        return found, False
    trained = replace(found.trained, why=predicted.by).found(judged_by(profile))
    asked = predicted.tree.classifier.columns
    left_out = tuple(each for each in trained.left_out if each.name not in asked)
    several = replace(
        single,
        tree=predicted.told,
        leaf_parts=tuple(parts_of(route, single.placement) for route in predicted.routes),
        trained=replace(trained, left_out=left_out),
        asked=predicted.tree,
    )
    us = several.row_us(profile, costs)
    saved_us = single.row_us(profile, costs) - us
    if not saves_for_sure(saved_us):
        return found, float(saved_us.mean()) > 0
    if len(found.leaf_parts) > 1 and not beyond_chance(found.row_us(profile, costs) - us):
        return found, False
    return several, False


def _with_python_free(profile: Profile, costs: Costs, single: StagedRoutes) -> Profile:
    """The profile as placed, with the order that Catalyst has on either side as precedence."""
    placed = staged(profile, costs, single.placement)
    after = list(placed.after)
    for part in (single.single.before, single.single.after):
        for first, second in pairwise(part):
            after[second - 1] |= {first}
    closed = [_closed(k, after) for k in range(1, len(after) + 1)]
    return replace(placed, after=tuple(closed))


def _closed(operator: int, after: list[frozenset[int]]) -> frozenset[int]:
    """All that must precede an operator, by way of others too."""
    found: frozenset[int] = frozenset()
    waiting = set(after[operator - 1])
    while waiting:
        each = waiting.pop()
        found |= {each}
        waiting |= after[each - 1] - found
    return found
