"""The router of the AMRI experiments: it knows nothing of indices, so all rivals go the same ways.

A complete join's probe lets through 1 / D of a state after one condition and 1 / (D · D' · D'')
after three. An Eddy's W has one selectivity for an operator, wherever in a route it stands
(CBR § 4.1): here whoever came last would look best and be first the next time. So selectivities are
kept by what is behind a tuple as well, and a stream takes the order that makes fewest tuples.
As in AMRI § 9.1, a few tuples go along suboptimal routes to keep the estimates fresh: the first of
each step, through all orders in turn.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from querymesh.fabric.core.router import Router, VisitListener
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.query.model import BoundQuery, Probe
from querymesh.stats.profile import Route

BEST, TRIED = 0, 1
"""Leaves: tuples on the best order, and the few on others."""

MEMORY = 0.5
"""The weight of what was known when a step's outcome is added."""

Ahead = frozenset[int]


class OrderRouter(Router):
    """Sends a stream's tuples along the order that makes fewest, by what it has seen."""

    decides = True

    def __init__(self, bound: BoundQuery) -> None:
        probes = [op.index for op in bound.operators if isinstance(op, Probe)]
        self._orders = list(permutations(probes))
        self._passed: dict[tuple[Ahead, int], float] = {}
        self._steps = 0

    def rusters(self, window: ClassificationWindow) -> list[Ruster]:
        """All tuples on the best order, but the first one on the order whose turn it is."""
        best, tried = self.routes()[0], self._orders[self._steps % len(self._orders)]
        self._steps += 1
        rows = np.arange(window.rows)
        apart = int(window.rows > 1 and tried != best)
        made = [Ruster(window, rows[apart:], RouteToken(best), BEST)]
        return made + [Ruster(window, rows[:1], RouteToken(tried), TRIED)] * apart

    def routes(self) -> list[Route]:
        """The best one; what is not known yet counts as nothing, so it is soon known."""
        return [min(self._orders, key=self._made)]

    def _made(self, order: Route) -> float:
        """Tuples that an order makes of one, before the last probe."""
        made, tuples, ahead = 0.0, 1.0, frozenset(order)
        for index in order[:-1]:
            tuples *= self._passed.get((ahead, index), 0.0)
            made += tuples
            ahead -= {index}
        return made

    def hear(self, before: Ruster, chosen: Ruster) -> VisitListener:
        """Listen to how many tuples a probe makes."""
        ahead = frozenset(k for k in chosen.token.stack if isinstance(k, int))
        return _Passed(self, ahead, chosen.token.top)

    def learn(self, ahead: Ahead, index: int, passed: float) -> None:
        """A probe made so many tuples of one, with these probes still ahead, itself included."""
        known = self._passed.get((ahead, index), passed)
        self._passed[ahead, index] = MEMORY * known + (1 - MEMORY) * passed


class _Passed(VisitListener):
    def __init__(self, router: OrderRouter, ahead: Ahead, index: int) -> None:
        self._router, self._ahead, self._index = router, ahead, index

    def done(self, evaluated: int, passed: int, seconds: float) -> None:
        if evaluated:
            self._router.learn(self._ahead, self._index, passed / evaluated)


def by_orders(fabric: JoinFabric) -> dict[str, Router]:
    """A router for each stream, which learns from the first step on."""
    return {alias: OrderRouter(view.bound) for alias, view in fabric.views.items()}
