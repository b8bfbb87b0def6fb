"""Uncertain routes, QM § 5.4: orders of about the same cost as one route with choices left open.

A route `2 > 3 > 1 > 4` whose operators 3 and 1 might as well change places becomes `2, 3|1, 4`.
Adjacent operators are put together as long as *every* order the choices allow costs less than
(1 + tolerance) times the route; the dearest of them is found exactly, by the program of
`dynamic_programming.py` turned around, over the subsets of one choice at a time. So whatever a
lottery draws, it loses less than the tolerance.
"""

from __future__ import annotations

import numpy as np

from querymesh.arrays import Floats
from querymesh.mesh.route import UncertainRoute, certain
from querymesh.optimize.routes.shared_route import order_by_meetings
from querymesh.stats.profile import Profile, Route, meetings

MOST_CHOICES = 6
"""Operators of one choice, at most: the dearest order is a program over 2^k subsets."""


def uncertain_route(
    route: Route, profile: Profile, tolerance: float, single: Route | None = None
) -> UncertainRoute:
    """The route with as many choices left open as the tolerance allows, for these tuples.

    Adjacent choices are joined, each time the two whose dearest order costs least. A tolerance of 0
    leaves the route as it is: no two costs differ by less than nothing. However large it is, no
    order is left open that costs more than the route `single` would, where one is given that does.
    """
    steps = certain(route)
    own = float(profile.realized_us(route).sum())
    limit = (1.0 + tolerance) * own
    if single is not None and single != route:
        limit = min(limit, max(own, float(profile.realized_us(single).sum())))
    while True:
        joined = [
            (*steps[:k], steps[k] + steps[k + 1], *steps[k + 2 :])
            for k in range(len(steps) - 1)
            if len(steps[k]) + len(steps[k + 1]) <= MOST_CHOICES
        ]
        dearest = [dearest_us(candidate, profile) for candidate in joined]
        if not dearest or min(dearest) >= limit:
            return steps
        steps = joined[int(np.argmin(dearest))]


def dearest_us(steps: UncertainRoute, profile: Profile) -> float:
    """What all the tuples cost if every choice is drawn in its dearest allowed order."""
    serves = profile.serves or (1,) * profile.operators
    alive = np.ones((max(serves, default=1).bit_length(), profile.rows))
    total = 0.0
    for choice in steps:
        total += _dearest_choice_us(choice, alive, serves, profile)
        for index in choice:
            mine = [q for q in range(len(alive)) if serves[index - 1] >> q & 1]
            alive[mine] *= profile.outcomes[:, index - 1]
    return total


def _dearest_choice_us(
    choice: tuple[int, ...], alive: Floats, serves: tuple[int, ...], profile: Profile
) -> float:
    """The dearest order of one choice's operators, for what is alive when it begins."""
    own = [index - 1 for index in choice]
    met, passed = meetings(profile.outcomes[:, own], [serves[j] for j in own], alive)
    after = tuple(
        frozenset(k for k, other in enumerate(choice, 1) if other in profile.after[j]) for j in own
    )
    _, saved = order_by_meetings(met, passed, -profile.drop_us[own], -profile.pass_us[own], after)
    return -saved
