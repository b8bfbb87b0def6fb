"""Of orders that cost the same, those for which states need fewer indices.

The order of a stream's probes decides by which attributes it asks the other states, and each way to
ask a state is an index to keep. Of three streams with a.p = b.p, a.q = c.q and b.r = c.r::

    a > b > c     b by p, c by q and r         with  b > c > a     c by r, a by p and q     4 in all
                                               with  b > a > c     a by p, c by q and r     3

Each stream's order is chosen for itself. Where several of them cost the same, as far as the sample
can tell, the streams settle together on orders that ask alike: memory, and the time to keep
indices, for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from math import factorial

from querymesh.mesh.mesh import LeafStats, Mesh
from querymesh.optimize.planning.orders import route_for
from querymesh.query.join import JoinQuery
from querymesh.query.model import Probe
from querymesh.stats.profile import Profile, Route

AccessPattern = tuple[int, ...]
Accesses = frozenset[tuple[str, AccessPattern]]

SAME = 0.01
"""Orders whose costs on the sample differ by no more than this share are taken to cost the same."""

MOST_ORDERS = 720
"""A stream with more orders of its probes keeps its order: each of them would be costed."""

MOST_PASSES = 5
"""Times, at most, that each stream chooses again after the others have chosen."""


def access_patterns(
    join: JoinQuery, alias: str, route: Route
) -> Iterator[tuple[str, AccessPattern]]:
    """The relations that a stream's tuples probe on a route, each with the keys they ask it by."""
    joined = {alias}
    for operator in (join.views[alias].operators[k - 1] for k in route):
        if not isinstance(operator, Probe):
            continue
        keys = enumerate(join.keys_of(operator.relation))
        pattern = tuple(position for position, each in keys if joined & each.members.keys())
        if pattern:
            yield operator.relation, pattern
        joined.add(operator.relation)


def with_fewer_indices(
    join: JoinQuery, meshes: Mapping[str, Mesh], profiles: Mapping[str, Profile]
) -> dict[str, Mesh]:
    """The meshes, some of those of one route with another route that costs the same and asks the
    states in fewer ways; a mesh without a profile stays."""
    settled = dict(meshes)
    choices = {
        alias: found
        for alias, mesh in meshes.items()
        if alias in profiles and (found := _equally_cheap(join, alias, mesh, profiles[alias]))
    }
    for _ in range(MOST_PASSES):
        before = dict(settled)
        for alias, routes in choices.items():
            others = _all_accesses(join, {a: mesh for a, mesh in settled.items() if a != alias})
            sizes = {r: len(others | frozenset(access_patterns(join, alias, r))) for r in routes}
            best = min(routes, key=lambda route: (sizes[route], routes[route]))
            (running,) = settled[alias].routes
            if sizes[best] < sizes[running]:
                settled[alias] = _with_route(settled[alias], best, routes[best])
        if settled == before:
            break
    return settled


def _equally_cheap(join: JoinQuery, alias: str, mesh: Mesh, profile: Profile) -> dict[Route, float]:
    """The routes that cost the same as the only one of a mesh, with their costs; empty for a mesh
    of several routes."""
    view = join.views[alias]
    probes = [op.relation for op in view.operators if isinstance(op, Probe)]
    if not mesh.is_single or mesh.uncertain or factorial(len(probes)) > MOST_ORDERS:
        return {}
    (running,) = mesh.routes
    own = [k for k in running if not isinstance(view.operators[k - 1], Probe)]
    limit = (1 + SAME) * float(profile.realized_us(running).mean())
    orders = {running, *(route_for(view, order, own) for order in permutations(probes))}
    costs = {route: float(profile.realized_us(route).mean()) for route in sorted(orders)}
    return {route: cost for route, cost in costs.items() if route == running or cost <= limit}


def _all_accesses(join: JoinQuery, meshes: Mapping[str, Mesh]) -> Accesses:
    routes = ((alias, route) for alias, mesh in meshes.items() for route in mesh.routes)
    return frozenset(
        each for alias, route in routes for each in access_patterns(join, alias, route)
    )


def _with_route(mesh: Mesh, route: Route, cost_us: float) -> Mesh:
    """The mesh on another single route."""
    return replace(
        mesh,
        routes=(route,),
        single=route,
        leaves=(LeafStats(1.0, cost_us, cost_us),),
        expected_us=cost_us,
        single_us=cost_us,
    )
