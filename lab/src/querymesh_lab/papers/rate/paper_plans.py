"""What RBO § 5 runs: its streams and predicates (Tables 4 and 5), its plans, and how we shrink it.

The paper's five streams end after 5,000 to 100,000 rows, its plans after ten to fifty million
results. Two scalings leave the shape of every curve as it is, if costs and rates are all there is:

    faster    arrivals and costs s times as fast        the same results, s times sooner
    fewer     1/s of the rows, s times the selectivity  1/s of all results, s times sooner

The paper does not give what a row costs. `HANDLING_S` is fitted: with it, and results read as a
queue's (`optimize/rate/curves.py`), the two plans of § 5.2 cross near the 2,000 results of Figure
9. All of § 5.3 is then a prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from querymesh.cost.plan_tree import PlanTree, Source, plan_text
from querymesh.cost.rates import JoinCosts
from querymesh.optimize.rate.join_plans import plans
from querymesh.optimize.rate.stream_query import JoinPredicate, RateQuery

SIZES = {"A": 5_000, "B": 10_000, "C": 20_000, "D": 50_000, "E": 100_000}
MEGABYTES = {"A": 0.7, "B": 1.5, "C": 1.8, "D": 5.9, "E": 9.3}
PREDICATES = (
    JoinPredicate("A", "B", 2e-3),
    JoinPredicate("A", "C", 5e-3, handling_s=0.005),
    JoinPredicate("B", "D", 1e-4),
    JoinPredicate("D", "E", 1e-5),
)
HANDLING_S = 0.00375

THREE_DELAYS_S = {"A": 0.020, "B": 0.002, "C": 0.010}
"""Seconds between two rows of a stream (§ 5.2)."""

FIVE_DELAYS_S = {"A": 0.020, "B": 0.010, "C": 0.015, "D": 0.005, "E": 0.002}
"""Not printed. § 5.4 says what has come after 100 s: A and B, 33% of C, 40% of D, 50% of E."""

AB_FIRST, AC_FIRST = "(A ⋈ B) ⋈ C", "(A ⋈ C) ⋈ B"

DEEP, LEAVES, EVENLY, OTHER = "Left Deep", "Fast Leaves", "Evenly Spread", "other Fast Leaves"
FIVE_PLANS = {
    DEEP: "(((A ⋈ C) ⋈ B) ⋈ D) ⋈ E",
    LEAVES: "((A ⋈ C) ⋈ B) ⋈ (D ⋈ E)",
    EVENLY: "((B ⋈ D) ⋈ E) ⋈ (A ⋈ C)",
    OTHER: "((D ⋈ E) ⋈ B) ⋈ (A ⋈ C)",
}
"""Figure 11 is not in the text we have, only words: a deep plan with the fastest stream on top; a
bushy one with the fastest at the lowest level; a bushy one with the fastest in the middle and the
second fastest at the lowest. Two trees are Fast Leaves by these words, and neither has all that is
said of it: with the first § 5.3 comes out, with the second Table 6's traditional costs can."""


@dataclass(frozen=True)
class Scale:
    """How much faster than the paper's, and with how many times fewer rows."""

    faster: float = 1.0
    fewer: float = 1.0

    @property
    def time(self) -> float:
        """How many of the paper's seconds pass in one of ours."""
        return self.faster * self.fewer

    def __str__(self) -> str:
        parts = [f"{self.faster:g} × as fast"] if self.faster != 1 else []
        if self.fewer != 1:
            parts.append(f"1/{self.fewer:g} of the rows, selectivities {self.fewer:g} × as high")
        return ", ".join(parts) or "not scaled"


def paper_query(delays_s: Mapping[str, float], scale: Scale | None = None) -> RateQuery:
    """The streams with these delays, and what joins them."""
    scale = scale or Scale()
    streams = tuple(
        Source(
            name,
            scale.faster / delay_s,
            SIZES[name] / scale.fewer,
            row_bytes=MEGABYTES[name] * 1e6 / SIZES[name],
        )
        for name, delay_s in delays_s.items()
    )
    joined = tuple(
        JoinPredicate(
            each.left,
            each.right,
            each.selectivity * scale.fewer,
            each.handling_s / scale.faster,
        )
        for each in PREDICATES
        if {each.left, each.right} <= delays_s.keys()
    )
    return RateQuery(streams, joined, costs=JoinCosts(hash_s=HANDLING_S / scale.faster))


def three_way(scale: Scale | None = None) -> dict[str, PlanTree]:
    """The two plans of § 5.2, Figure 6."""
    found = by_text(paper_query(THREE_DELAYS_S, scale))
    return {name: found[name] for name in (AB_FIRST, AC_FIRST)}


def five_way(scale: Scale | None = None) -> dict[str, PlanTree]:
    """The plans of § 5.3, Figure 11, by name."""
    found = by_text(paper_query(FIVE_DELAYS_S, scale))
    return {name: found[written] for name, written in FIVE_PLANS.items()}


def by_text(query: RateQuery) -> dict[str, PlanTree]:
    """All plans of a query, by what they are written as."""
    return {plan_text(tree): tree for tree in plans(query)}
