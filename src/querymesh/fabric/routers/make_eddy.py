"""The routers that decide while tuples run, by the name of their policy."""

from __future__ import annotations

from querymesh.fabric.core.lottery import Seed
from querymesh.fabric.profile.calibrate_join import visit_us
from querymesh.fabric.profile.profiler import declared_cost
from querymesh.fabric.routers.content import ContentRouter
from querymesh.fabric.routers.eddy import EddyRouter
from querymesh.fabric.routers.routing import Routing
from querymesh.query.model import BoundQuery

EDDY, CBR = "eddy", "cbr"
EDDIES = (EDDY, CBR)
"""Policies that need no training."""


def make_eddy(
    policy: str,
    bound: BoundQuery,
    routing: Routing,
    own: frozenset[int] | None = None,
    seed: Seed = 0,
) -> EddyRouter:
    """The router of a policy.

    For a stream of a join, `own` are the conditions on it alone, which come first. Its tuples set
    out when they are stored and probe when all others are: between the two nothing is heard of
    them, and they are cut into chunks when they probe.
    """
    first = own or frozenset()
    priced = routing.split_if_cheaper and routing.by_cost
    price_us = visit_us(bound) if priced else 0.0
    if policy == EDDY:
        router = EddyRouter(bound.operators, routing, first, seed, price_us)
    else:
        attributes = bound.schemas[bound.source.alias].names
        router = ContentRouter(bound.operators, routing, attributes, first, seed, price_us)
    declared = {op.index: declared_cost(op, bound) for op in bound.operators}
    router.estimates.declared_us.update({k: c for k, c in declared.items() if c is not None})
    if own is not None and not routing.one_route_per_chunk:
        router.window = None
    return router
