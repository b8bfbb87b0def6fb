"""The three limits any route must be seen against, read off a profile.

- best single order: what an expert would write for all the data;
- class oracle: the best order for each true class, the classes known beforehand;
- clairvoyant bound: each dropped row pays only its cheapest dropping operator, each result all.

Each in evaluations per row, which no machine changes, and in microseconds of predicates per row.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Floats, Ints
from querymesh.classify.attributes import one_piece
from querymesh.classify.tree import attributes_of, leaves_of
from querymesh.fabric.core.metrics import Metrics
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.describe import best_single
from querymesh.stats.profile import Profile, Route, route_text


@dataclass(frozen=True, slots=True)
class Effort:
    """What one row costs on average."""

    evaluations: float
    us: float


@dataclass(frozen=True)
class Limits:
    """The limits of one data set; `oracle` is None where nobody knows the true classes."""

    rows: int
    single: Effort
    oracle: Effort | None
    bound: Effort
    single_route: Route
    oracle_routes: tuple[Route, ...]

    def details(self, names: tuple[str, ...]) -> dict[str, Any]:
        """The limits as they stand in a result's details."""
        return {
            "rows": self.rows,
            "single": asdict(self.single),
            "oracle": asdict(self.oracle) if self.oracle else None,
            "bound": asdict(self.bound),
            "single_route": route_text(self.single_route, names),
            "oracle_routes": [route_text(route, names) for route in self.oracle_routes],
        }


def limits(profile: Profile, classes: Ints | None = None) -> Limits:
    """The limits over the profiled rows; `classes` is the true class of each."""
    single = best_single(profile)
    oracle: Effort | None = None
    routes: tuple[Route, ...] = ()
    if classes is not None:
        oracle, routes = _oracle(profile, classes)
    return Limits(
        rows=profile.rows,
        single=_mean(*_efforts(profile, single)),
        oracle=oracle,
        bound=_mean(_unit_costs(profile).clairvoyant_us(), profile.clairvoyant_us()),
        single_route=single,
        oracle_routes=routes,
    )


def _oracle(profile: Profile, classes: Ints) -> tuple[Effort, tuple[Route, ...]]:
    evaluations, us = np.zeros(profile.rows), np.zeros(profile.rows)
    routes = []
    for label in np.unique(classes):
        rows = np.flatnonzero(classes == label)
        own = profile.take(rows)
        routes.append(best_single(own))
        evaluations[rows], us[rows] = _efforts(own, routes[-1])
    return _mean(evaluations, us), tuple(routes)


def effort_of_mesh(profile: Profile, mesh: Mesh) -> Effort:
    """What the mesh costs over the profiled rows, by where its classifier really sends them.

    For engines that count nothing themselves (generated code has no place for a counter).
    """
    evaluations, us = np.zeros(profile.rows), np.zeros(profile.rows)
    columns = {a: one_piece(profile.sample.column(a)) for a in attributes_of(mesh.tree)}
    reached = leaves_of(mesh.tree, columns.__getitem__, profile.rows)
    for rows, route in zip(reached, mesh.leaf_routes, strict=True):
        evaluations[rows], us[rows] = _efforts(profile.take(rows), route)
    return _mean(evaluations, us)


def counted(metrics: Metrics, profile: Profile) -> Effort:
    """What a run really did per input row: evaluations counted, then weighted by profiled cost."""
    rows = max(metrics.rows_in, 1)
    visits = metrics.by_operator()
    us = sum(
        visit.passed * float(profile.pass_us[index - 1])
        + (visit.evaluations - visit.passed) * float(profile.drop_us[index - 1])
        for index, visit in visits.items()
    )
    return Effort(metrics.evaluations / rows, us / rows)


def designed_profile(measured: Profile, table: pa.Table, passes: Bools) -> Profile:
    """The profile of generated data: outcomes as designed, costs as measured on a sample of it.

    The generator's word is checked by the tests and by every contender's answer, and spares a run
    of every predicate on every row.
    """
    return replace(measured, sample=table, outcomes=passes.astype(np.float64))


def _unit_costs(profile: Profile) -> Profile:
    one = np.ones(profile.operators)
    return replace(profile, drop_us=one, pass_us=one)


def _efforts(profile: Profile, route: Route) -> tuple[Floats, Floats]:
    return profile.arriving(route).sum(axis=1), profile.realized_us(route)


def _mean(evaluations: Floats, us: Floats) -> Effort:
    return Effort(float(evaluations.mean()), float(us.mean()))
