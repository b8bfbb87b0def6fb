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

Pattern = tuple[int, ...]
Asked = frozenset[tuple[str, Pattern]]

SAME = 0.01
"""Orders whose costs on the sample differ by no more of it are taken to cost the same."""

MOST_ORDERS = 720
MOST_PASSES = 5


def asked_by(join: JoinQuery, alias: str, route: Route) -> Iterator[tuple[str, Pattern]]:
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
    """The meshes, those of one route perhaps with another that costs the same on its profile."""
    settled = dict(meshes)
    choices = {
        alias: found
        for alias, mesh in meshes.items()
        if alias in profiles and (found := _equals(join, alias, mesh, profiles[alias]))
    }
    for _ in range(MOST_PASSES):
        before = dict(settled)
        for alias, routes in choices.items():
            others = _asked(join, {a: mesh for a, mesh in settled.items() if a != alias})
            sizes = {r: len(others | frozenset(asked_by(join, alias, r))) for r in routes}
            best = min(routes, key=lambda route: (sizes[route], routes[route]))
            (now,) = settled[alias].routes
            if sizes[best] < sizes[now]:
                settled[alias] = _on(settled[alias], best, routes[best])
        if settled == before:
            break
    return settled


def _equals(join: JoinQuery, alias: str, mesh: Mesh, profile: Profile) -> dict[Route, float]:
    """The routes that cost what a mesh's only one does, with their costs; none of several."""
    view = join.views[alias]
    probes = [op.relation for op in view.operators if isinstance(op, Probe)]
    if not mesh.is_single or mesh.uncertain or factorial(len(probes)) > MOST_ORDERS:
        return {}
    (now,) = mesh.routes
    own = [k for k in now if not isinstance(view.operators[k - 1], Probe)]
    limit = (1 + SAME) * float(profile.realized_us(now).mean())
    orders = {now, *(route_for(view, order, own) for order in permutations(probes))}
    costs = {route: float(profile.realized_us(route).mean()) for route in sorted(orders)}
    return {route: cost for route, cost in costs.items() if route == now or cost <= limit}


def _asked(join: JoinQuery, meshes: Mapping[str, Mesh]) -> Asked:
    routes = ((alias, route) for alias, mesh in meshes.items() for route in mesh.routes)
    return frozenset(each for alias, route in routes for each in asked_by(join, alias, route))


def _on(mesh: Mesh, route: Route, cost_us: float) -> Mesh:
    """The mesh on another single route."""
    return replace(
        mesh,
        routes=(route,),
        single=route,
        leaves=(LeafStats(1.0, cost_us, cost_us),),
        expected_us=cost_us,
        single_us=cost_us,
    )
