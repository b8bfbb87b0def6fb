"""An order that a task finds by itself: the one as written, until the task has seen a few rows.

A job too small to be sampled beforehand still calls functions on rows, and the fabric counts and
times every visit. After a first short window the operators are ranked by what they drop for their
time, (1 - s) / c, and again after each later window, which are longer and longer::

    rows     0        256            1,280                      5,376
    window   |--------|--------------|--------------------------|-----------------------
    order      1 > 2 > 3    3 > 1 > 2       3 > 1 > 2     only where it is cheaper by far

What must come after another does so in every order, and a row on which a function raises is an
error only if no other operator drops it, so an order never makes a query fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.token import token_of
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.route import certain
from querymesh.stats.profile import Route

FIRST_ROWS, GROWTH = 256, 4
"""The rows of the first window, and how many times as many the next one has."""

CHEAPER = 0.9
"""Another order is taken if it costs at most this share of the one that is followed."""

LEAST_S = 1e-9


@dataclass(frozen=True)
class Measured:
    """What an operator took for a row, in seconds, and the share of rows that passed it."""

    row_s: float
    passed: float


class MeasuredOrder(MeshRouter):
    """The router of a mesh that nobody has learned; one for each worker and run."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__(mesh)
        self.route: Route = mesh.leaf_routes[0]
        self.window = min(FIRST_ROWS, mesh.window)

    @staticmethod
    def suits(mesh: Mesh) -> bool:
        """Whether the mesh is an order as written, of operators that could be in another."""
        return not mesh.is_learned and mesh.is_single and len(mesh.leaf_routes[0]) > 1

    def saw(self, metrics: Metrics) -> None:
        """Rank the operators by what this task counted so far."""
        self.window = min(GROWTH * (self.window or FIRST_ROWS), self.mesh.window)
        seen = {k: _measured(metrics, self.version, k) for k in self.route}
        best = best_order(self.route, self._after, seen)
        if best != self.route and cost_s(best, seen) <= CHEAPER * cost_s(self.route, seen):
            self.route = best
            self._tokens = [token_of(certain(best))]

    @property
    def _after(self) -> dict[int, frozenset[int]]:
        return {k: self.mesh.operators[k - 1].after for k in self.route}


def best_order(
    route: Route, after: Mapping[int, frozenset[int]], seen: Mapping[int, Measured]
) -> Route:
    """The operators by falling (1 - s) / c, each after those that it must come after.

    >>> seen = {1: Measured(1.0, 0.9), 2: Measured(1.0, 0.1)}
    >>> best_order((1, 2), {1: frozenset(), 2: frozenset()}, seen)
    (2, 1)
    >>> best_order((1, 2), {1: frozenset(), 2: frozenset({1})}, seen)
    (1, 2)
    """
    waiting, ordered = list(route), []
    while waiting:
        ready = [k for k in waiting if not after[k] & set(waiting)]
        chosen = max(ready, key=lambda k: (1 - seen[k].passed) / max(seen[k].row_s, LEAST_S))
        waiting.remove(chosen)
        ordered.append(chosen)
    return tuple(ordered)


def cost_s(route: Route, seen: Mapping[int, Measured]) -> float:
    """What a row takes in this order, if operators drop rows independently of each other.

    >>> cost_s((1, 2), {1: Measured(1.0, 0.5), 2: Measured(4.0, 0.1)})
    3.0
    """
    total, arriving = 0.0, 1.0
    for k in route:
        total += arriving * seen[k].row_s
        arriving *= seen[k].passed
    return total


def _measured(metrics: Metrics, version: int, operator: int) -> Measured:
    """Of an operator that no row has come to: it costs nothing and drops nothing."""
    visits = metrics.visits.get((version, 0, operator))
    if visits is None or not visits.evaluations:
        return Measured(0.0, 1.0)
    return Measured(visits.seconds / visits.evaluations, visits.passed / visits.evaluations)
