"""A plan of a continuous query as OM § 3 has it: a tree of selections, projections, joins and
aggregates over streams.

A plan is data. What is known of streams and predicates is looked up by name when it is costed, so
that one plan can be costed at many points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from querymesh.errors import QueryMeshError


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A leaf of a plan: the tuples of a stream as they arrive."""

    stream: str


@dataclass(frozen=True, slots=True)
class Selection:
    """σ: the tuples for which all predicates hold. `tpr`: tuples it can process in a second."""

    predicates: tuple[str, ...]
    tpr: float
    of: Plan

    def __post_init__(self) -> None:
        check_tpr("selection", self.tpr)


@dataclass(frozen=True, slots=True)
class Projection:
    """π: all tuples, each with the share `keeps` of its bytes."""

    name: str
    tpr: float
    of: Plan
    keeps: float = 1.0

    def __post_init__(self) -> None:
        check_tpr("projection", self.tpr)
        check_keeps(self.keeps)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Ω: one result for the tuples of a window."""

    name: str
    tpr: float
    of: Plan

    def __post_init__(self) -> None:
        check_tpr("aggregate", self.tpr)


@dataclass(frozen=True, slots=True)
class Join:
    """⋈ of two inputs' windows; without predicates, their product.

    `left_tpr` is 1 / C_L, how many arrivals on the left it can process in a second.
    """

    predicates: tuple[str, ...]
    left_tpr: float
    right_tpr: float
    left: Plan
    right: Plan

    def __post_init__(self) -> None:
        check_tpr("join", self.left_tpr)
        check_tpr("join", self.right_tpr)


Plan = Arrivals | Selection | Projection | Aggregate | Join


def check_tpr(what: str, tpr: float) -> None:
    """A processing rate is finite and above 0."""
    if not (math.isfinite(tpr) and tpr > 0):
        raise QueryMeshError(f"a {what} processes more than 0 tuples a second, not {tpr}")


def check_keeps(keeps: float) -> None:
    """A projection keeps some of a tuple, at most all."""
    if not 0 < keeps <= 1:
        raise QueryMeshError(
            f"a projection keeps a share of a tuple's bytes above 0 and at most 1, not {keeps}"
        )


def streams_of(plan: Plan) -> Iterator[str]:
    """The streams of a plan from the left: in a left-deep one, in the order they are joined."""
    if isinstance(plan, Arrivals):
        yield plan.stream
    elif isinstance(plan, Join):
        yield from streams_of(plan.left)
        yield from streams_of(plan.right)
    else:
        yield from streams_of(plan.of)


def plan_text(plan: Plan) -> str:
    """A plan for people, in the paper's signs, what runs first innermost.

    >>> plan_text(Projection("p", 500e3, Selection(("host",), 400e3, Arrivals("TCP"))))
    'π(σ(TCP))'
    """
    if isinstance(plan, Arrivals):
        return plan.stream
    if isinstance(plan, Join):
        return f"({plan_text(plan.left)} ⋈ {plan_text(plan.right)})"
    sign = "σ" if isinstance(plan, Selection) else "π" if isinstance(plan, Projection) else "Ω"
    return f"{sign}({plan_text(plan.of)})"
