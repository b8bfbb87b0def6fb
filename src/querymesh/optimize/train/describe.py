"""From a classifier and routes to a `Mesh` with its figures over a profile.

What training and adaptation share: which rows reach which leaf, what each costs there, the best
single route beside it, and the choices a tolerance leaves open.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.classify.attributes import LeftOut, one_piece
from querymesh.classify.tree import Leaf, Tree, attributes_of, leaves_of, paths_us
from querymesh.cost.route_time import LeafCost, Overheads, mesh_cost_us
from querymesh.mesh.mesh import LeafStats, Mesh, OperatorStats, SharedMesh, TrainedOn
from querymesh.optimize.routes.route_searches import ROUTE_SEARCHES, auto
from querymesh.optimize.routes.shared_route import SharedRoutes
from querymesh.optimize.routes.subset import RouteSearch, Subset, checked_route
from querymesh.optimize.routes.uncertain import uncertain_route
from querymesh.optimize.strategy import chosen
from querymesh.optimize.train.training import Training
from querymesh.query.model import Query
from querymesh.stats.profile import Profile, Route


def route_search_for(profile: Profile, training: Training) -> RouteSearch:
    """The route search asked for; queries that share one pass have one of their own."""
    if not profile.serves:
        return chosen("route search", training.route_search, ROUTE_SEARCHES)
    training.check_shared()
    return SharedRoutes(profile.serves)


def best_single(profile: Profile, route_search: RouteSearch = auto) -> Route:
    """The best single order for all tuples: what an expert would write."""
    if profile.operators == 0:
        return ()
    if profile.serves:
        route_search = SharedRoutes(profile.serves)
    everyone = Subset(profile.outcomes, profile.drop_us, profile.pass_us, profile.after)
    return checked_route(route_search, everyone)


def costs_us(
    profile: Profile, tree: Tree, routes: tuple[Route, ...], overheads: Overheads
) -> Floats:
    """What each tuple costs in a mesh, its tests and its share of the rusters included (eq. 2)."""
    if isinstance(tree, Leaf):
        return profile.realized_us(routes[tree.label])
    costs = np.zeros(profile.rows)
    paths = list(paths_us(tree, overheads.node_us))
    for (leaf, path_us), rows in zip(paths, reach(profile, tree), strict=True):
        costs[rows] = profile.take(rows).realized_us(routes[leaf.label]) + path_us
    return costs + (len(paths) - 1) * overheads.route_us(profile.operators)


def reach(profile: Profile, tree: Tree) -> list[Ints]:
    """The rows of the sample that reach each leaf, left to right."""
    columns = {name: one_piece(profile.sample.column(name)) for name in attributes_of(tree)}
    return leaves_of(tree, columns.__getitem__, profile.rows)


def describe(
    query: Query,
    profile: Profile,
    tree: Tree,
    routes: tuple[Route, ...],
    single: Route,
    left_out: tuple[LeftOut, ...],
    overheads: Overheads,
    why: str | None = None,
) -> Mesh:
    """A mesh with its figures over the profiled tuples."""
    single_us = profile.realized_us(single)
    stats, costs = [], []
    paths = paths_us(tree, overheads.node_us)
    for (leaf, path_us), rows in zip(paths, reach(profile, tree), strict=True):
        share = len(rows) / profile.rows
        here = profile.take(rows)
        route_us = float(here.realized_us(routes[leaf.label]).mean()) if len(rows) else 0.0
        leaf_single_us = float(single_us[rows].mean()) if len(rows) else 0.0
        stats.append(LeafStats(share, route_us, leaf_single_us))
        costs.append(LeafCost(share, route_us, path_us))
    kind = SharedMesh if profile.serves else Mesh
    return kind(
        query=query,
        operators=tuple(
            OperatorStats(name, after, *map(float, figures))
            for name, after, *figures in zip(
                profile.names,
                profile.after,
                profile.cost_us,
                profile.pass_rates(),
                profile.drop_us,
                profile.pass_us,
                strict=True,
            )
        ),
        tree=tree,
        routes=routes,
        leaves=tuple(stats),
        single=single,
        expected_us=mesh_cost_us(costs, profile.operators, overheads),
        single_us=float(single_us.mean()),
        bound_us=float(profile.clairvoyant_us().mean()),
        trained_on=TrainedOn(profile.rows),
        left_out=left_out,
        why=why or _kinds_text(len(stats)),
    )


def _kinds_text(kinds: int) -> str:
    if kinds == 1:
        return "one route serves all tuples: telling kinds apart could not save enough"
    return f"{kinds} kinds of tuples are worth telling apart"


def single_mesh(
    query: Query, profile: Profile, route: Route, left_out: tuple[LeftOut, ...], why: str
) -> Mesh:
    """A mesh of one route, which has no overheads."""
    free = Overheads(0.0, 0.0, 1)
    return describe(query, profile, Leaf(0), (route,), route, left_out, free, why)


def leave_open(mesh: Mesh, profile: Profile, tolerance: float) -> Mesh:
    """The mesh with uncertain routes where orders cost about the same (QM § 5.4)."""
    if tolerance == 0:
        return mesh
    uncertain = tuple(
        uncertain_route(route, profile.take(rows) if len(rows) else profile, tolerance, mesh.single)
        for route, rows in zip(mesh.leaf_routes, reach(profile, mesh.tree), strict=True)
    )
    return replace(mesh, uncertain=uncertain)
