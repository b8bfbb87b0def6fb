"""RBO's query (§ 5) with other costs, and random queries like it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace

from querymesh.cost.plan_tree import Source
from querymesh.cost.rates import JoinCosts
from querymesh.optimize.rate.stream_query import JoinPredicate, RateQuery, Selection
from querymesh_lab.papers.rate import paper_plans
from querymesh_lab.papers.rate.paper_plans import HANDLING_S


def paper_query(delays_s: Mapping[str, float], handling_s: float = HANDLING_S) -> RateQuery:
    """The paper's query, its costs as told."""
    return replace(paper_plans.paper_query(delays_s), costs=JoinCosts(hash_s=handling_s))


def graph(count: int, edges: list[tuple[int, int]]) -> RateQuery:
    """Streams S0, S1, … and what joins them."""
    streams = tuple(Source(f"S{at}", 1.0, 10) for at in range(count))
    return RateQuery(streams, tuple(JoinPredicate(f"S{a}", f"S{b}", 0.1) for a, b in edges))


def random_edges(rng: random.Random, count: int) -> list[tuple[int, int]]:
    """A random tree and some more edges: the graph is connected."""
    edges = [(rng.randrange(at), at) for at in range(1, count)]
    others = [
        (a, b) for b in range(count) for a in range(b) if (a, b) not in edges and rng.random() < 0.3
    ]
    return edges + others


def random_query(rng: random.Random, ends: bool = True) -> RateQuery:
    """Three or four streams, more or less overloaded, with one selection to place."""
    count = rng.choice([3, 4])
    streams = tuple(
        Source(f"S{at}", 10 ** rng.uniform(0, 3), 10 ** rng.uniform(2, 4) if ends else math.inf)
        for at in range(count)
    )
    predicates = tuple(
        JoinPredicate(f"S{a}", f"S{b}", 10 ** rng.uniform(-4, -1), rng.choice([0, 0, 0.005]))
        for a, b in random_edges(rng, count)
    )
    selection = Selection("S0", rng.uniform(0.05, 0.9), 10 ** rng.uniform(-5, -2))
    costs = JoinCosts(hash_s=10 ** rng.uniform(-5, -2.3))
    return RateQuery(streams, predicates, (selection,), costs)
