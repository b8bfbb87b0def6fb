"""Uncertain routes, QM § 5.4: orders of about the same cost as one route with choices left open.

A route `2 > 3 > 1 > 4` whose operators 3 and 1 might as well change places becomes `2, 3|1, 4`.
Adjacent operators are put together as long as *every* order the choices allow costs less than
(1 + tolerance) times the route; the dearest of them is found exactly, by the dynamic program of
`best_route.py` turned around, over the subsets of one choice at a time. So whatever a lottery
draws, it loses less than the tolerance.
"""

from __future__ import annotations

import numpy as np

from querymesh.stats.profile import Floats, Profile, Route

MOST_CHOICES = 6
"""So many operators at most are one choice: the dearest order is a program over 2^k subsets."""

UncertainRoute = tuple[tuple[int, ...], ...]
"""A route whose steps are choices: `((2,), (3, 1), (4,))` visits 2, then 3 and 1 in any order."""


def certain(route: Route) -> UncertainRoute:
    """A route that leaves nothing open."""
    return tuple((index,) for index in route)


def uncertain_text(route: UncertainRoute, joiner: str = ", ") -> str:
    """As the paper writes it.

    >>> uncertain_text(((2,), (3, 1), (4,)))
    '2, 3|1, 4'
    """
    return joiner.join("|".join(map(str, choice)) for choice in route)


def uncertain_route(route: Route, profile: Profile, tolerance: float) -> UncertainRoute:
    """The route with as many choices left open as the tolerance allows, for these tuples.

    Adjacent choices are joined, each time the two whose dearest order costs least. A tolerance of 0
    leaves the route as it is: no two costs differ by less than nothing.
    """
    steps = certain(route)
    limit = (1.0 + tolerance) * float(profile.realized_us(route).sum())
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
    total = 0.0
    alive = np.ones(profile.rows)
    for choice in steps:
        total += _dearest_choice_us(choice, alive, profile)
        for index in choice:
            alive = alive * profile.outcomes[:, index - 1]
    return total


def _dearest_choice_us(choice: tuple[int, ...], alive: Floats, profile: Profile) -> float:
    """The dearest order of one choice's operators, for what is alive when it begins."""
    size = len(choice)
    products = np.empty((1 << size, profile.rows))
    products[0] = alive
    for place, index in enumerate(choice):
        bit = 1 << place
        products[bit : 2 * bit] = products[:bit] * profile.outcomes[:, index - 1]
    survive = products.sum(axis=1)
    needed = [
        sum(1 << other for other, before in enumerate(choice) if before in profile.after[index - 1])
        for index in choice
    ]
    worst = np.full(1 << size, -np.inf)
    worst[0] = 0.0
    for done in range(1 << size):
        if worst[done] == -np.inf:
            continue
        for place, index in enumerate(choice):
            bit = 1 << place
            if done & bit or needed[place] & ~done:
                continue
            passed = survive[done | bit]
            cost = passed * profile.pass_us[index - 1]
            cost += (survive[done] - passed) * profile.drop_us[index - 1]
            worst[done | bit] = max(worst[done | bit], worst[done] + cost)
    return float(worst[-1])
