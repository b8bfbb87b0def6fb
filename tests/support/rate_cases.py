"""RBO's streams and join predicates (§ 5, Tables 4 and 5), and random queries like them."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from querymesh.cost.plan_tree import PlanTree, Source, plan_text
from querymesh.cost.rates import JoinCosts
from querymesh.optimize.rate.join_plans import plans
from querymesh.optimize.rate.stream_query import JoinPredicate, RateQuery, Selection

SIZES = {"A": 5_000, "B": 10_000, "C": 20_000, "D": 50_000, "E": 100_000}
MEGABYTES = {"A": 0.7, "B": 1.5, "C": 1.8, "D": 5.9, "E": 9.3}
PREDICATES = (
    JoinPredicate("A", "B", 2e-3),
    JoinPredicate("A", "C", 5e-3, handling_s=0.005),
    JoinPredicate("B", "D", 1e-4),
    JoinPredicate("D", "E", 1e-5),
)

THREE_DELAYS_S = {"A": 0.020, "B": 0.002, "C": 0.010}
"""§ 5.2."""

FIVE_DELAYS_S = {"A": 0.020, "B": 0.010, "C": 0.015, "D": 0.005, "E": 0.002}
"""From § 5.4: after 100 s, A and B have come, 33% of C, 40% of D and 50% of E."""

HANDLING_S = 0.00375
"""move + hash + probe, which the paper does not give. Fitted: with this, and outputs read as a
queue's, § 5.2's plans cross near the 2,000 results of Figure 9. § 5.3 is then a prediction."""

LEFT_DEEP = "(((A ⋈ C) ⋈ B) ⋈ D) ⋈ E"
EVENLY_SPREAD = "((B ⋈ D) ⋈ E) ⋈ (A ⋈ C)"
"""Figure 11 is not in the text of the paper, only words: a deep plan with the fastest stream on
top; a bushy one with the fastest in the middle and the second fastest at the lowest level."""

FAST_LEAVES = "((A ⋈ C) ⋈ B) ⋈ (D ⋈ E)"
OTHER_FAST_LEAVES = "((D ⋈ E) ⋈ B) ⋈ (A ⋈ C)"
"""A bushy plan with the fastest streams at the lowest level: four are, and no one of them has all
that is said of it. The first was picked since § 5.3 comes out with it. Table 6's traditional cost
can come out only with the second, the only one that costs no more than Evenly Spread."""


def paper_query(delays_s: Mapping[str, float], handling_s: float = HANDLING_S) -> RateQuery:
    streams = tuple(
        Source(name, 1 / delay_s, SIZES[name], row_bytes=MEGABYTES[name] * 1e6 / SIZES[name])
        for name, delay_s in delays_s.items()
    )
    joined = tuple(each for each in PREDICATES if {each.left, each.right} <= delays_s.keys())
    return RateQuery(streams, joined, costs=JoinCosts(hash_s=handling_s))


def by_text(query: RateQuery) -> dict[str, PlanTree]:
    return {plan_text(tree): tree for tree in plans(query)}


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
