"""A plan of a query over streams as a tree: the one language of OM § 3 and RBO § 3.

Sources are at the leaves, above them selections σ, projections π, aggregates Ω and joins ⋈. A tree
is frozen data, and both papers describe its operators by the same three figures::

    what                              OM      RBO            here
    rows a second that come           λ       r_i            Source.rate
    the share that passes             sel     f              selectivity
    how long a row takes              1/tpr   C_σ, C_π       cost_s
      the same of a join, by side     1/tpr   C_l, C_r       costs

RBO's plans have all of them. OM costs one plan at many points: its sources have no rate, its
operators name their predicates, and `utility.Statistics` has the figures. What is not known is an
error where it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from querymesh.cost.rates import FREE, ArrivalCosts, check_cost, check_selectivity
from querymesh.errors import QueryError, QueryMeshError, UnsupportedError

Selectivity = float | tuple[str, ...]
"""The share of rows, or of pairs of rows, that pass; or the names of the predicates that they must
pass, whose shares are looked up when a plan is costed. Without any predicate all pass."""


@dataclass(frozen=True, slots=True)
class Source:
    """A stream: rows a second (None: unknown), how many there are, and how long they are kept."""

    name: str
    rate: float | None = None
    size: float = math.inf
    window_s: float = math.inf
    row_bytes: float = 0.0

    def __post_init__(self) -> None:
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise QueryError(
                f"stream {self.name} has {self.rate} rows a second: write a number above 0, or "
                "None if it is not known"
            )
        for value, what in (
            (self.size, "rows"),
            (self.window_s, "s of window"),
            (self.row_bytes, "bytes a row"),
        ):
            if not value >= 0:
                raise QueryError(f"stream {self.name} has {value} {what}: write a number from 0 on")

    @property
    def rows_a_second(self) -> float:
        """The rate, which must be known by now."""
        if self.rate is None:
            raise QueryError(
                f"the rate of stream {self.name} is not known: write Source({self.name!r}, "
                "rate=rows a second), or let with_assumed_rates() assume one"
            )
        return self.rate

    @property
    def end_s(self) -> float:
        """When the last row has come."""
        return self.size / self.rows_a_second


@dataclass(frozen=True, slots=True)
class Select:
    """σ: the rows that pass (RBO § 3.2, OM § 4.1). `cost_s` is what asking one of them takes."""

    child: PlanTree
    selectivity: Selectivity
    cost_s: float = 0.0
    name: str = "σ"

    def __post_init__(self) -> None:
        _check_share(self.selectivity, f"selection {self.name}")
        check_cost(self.cost_s, f"selection {self.name}")

    @property
    def passes(self) -> float:
        """The selectivity, which must be known by now."""
        return _known_share(self.selectivity)


@dataclass(frozen=True, slots=True)
class Project:
    """π: all rows, each with the share `keeps` of its bytes (RBO § 3.1, OM § 4.1)."""

    child: PlanTree
    cost_s: float = 0.0
    name: str = "π"
    keeps: float = 1.0

    def __post_init__(self) -> None:
        check_cost(self.cost_s, f"projection {self.name}")
        check_keeps(self.keeps)

    @property
    def passes(self) -> float:
        """The share of rows that pass a projection: all of them."""
        return 1.0


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Ω: one result for the rows of a window (OM § 4.1); RBO has no aggregates."""

    child: PlanTree
    cost_s: float = 0.0
    name: str = "Ω"

    def __post_init__(self) -> None:
        check_cost(self.cost_s, f"aggregate {self.name}")

    @property
    def passes(self) -> float:
        """Not known: how many results there are follows from the window, not from the rows."""
        raise UnsupportedError(
            f"RBO has no output rate of an aggregate such as {self.name}: leave it out, or cost "
            "the plan by querymesh.cost.utility"
        )


@dataclass(frozen=True, slots=True)
class Join:
    """⋈ of two inputs (RBO § 3.3, OM § 4.1); a product is a join of selectivity 1.

    `costs` are the seconds that a row takes from either side: `rates.JoinCosts` by one of RBO's
    algorithms, `rates.TupleRates` by OM's processing rates. Both algorithms treat their sides
    alike, so that A ⋈ B and B ⋈ A are one plan of RBO.
    """

    left: PlanTree
    right: PlanTree
    selectivity: Selectivity = 1.0
    costs: ArrivalCosts = FREE

    def __post_init__(self) -> None:
        _check_share(self.selectivity, "a join")

    @property
    def passes(self) -> float:
        """The selectivity, which must be known by now."""
        return _known_share(self.selectivity)


PlanTree = Source | Select | Project | Aggregate | Join

JoinShape: TypeAlias = "str | tuple[JoinShape, JoinShape]"
"""Which streams a tree joins with which, by their names: ("a", ("b", "c"))."""


def _check_share(selectivity: Selectivity, what: str) -> None:
    if not isinstance(selectivity, tuple):
        check_selectivity(selectivity, what)


def _known_share(selectivity: Selectivity) -> float:
    if isinstance(selectivity, tuple):
        raise QueryError(
            f"the selectivity of {', '.join(selectivity) or 'a product'} is not known: write a "
            "number, or cost the plan by querymesh.cost.utility"
        )
    return selectivity


def check_keeps(keeps: float) -> None:
    """A projection keeps some of a tuple, at most all."""
    if not 0 < keeps <= 1:
        raise QueryMeshError(
            f"a projection keeps a share of a tuple's bytes above 0 and at most 1, not {keeps}"
        )


def inputs_of(tree: PlanTree) -> tuple[PlanTree, ...]:
    """The trees that the topmost operator reads: two of a join, none of a source."""
    match tree:
        case Source():
            return ()
        case Join(left, right):
            return left, right
        case Select(child) | Project(child) | Aggregate(child):
            return (child,)


def sources_of(tree: PlanTree) -> Iterator[Source]:
    """The leaves from left to right: of a left-deep tree, in the order they are joined."""
    if isinstance(tree, Source):
        yield tree
    for child in inputs_of(tree):
        yield from sources_of(child)


def window_of(tree: PlanTree) -> float:
    """The seconds that a join keeps a row of this tree: as long as all its streams keep theirs."""
    return min(source.window_s for source in sources_of(tree))


def join_shape(tree: PlanTree) -> JoinShape:
    """Which streams are joined with which, whatever else is done on the way."""
    match tree:
        case Source(name):
            return name
        case Join(left, right):
            return join_shape(left), join_shape(right)
        case Select(child) | Project(child) | Aggregate(child):
            return join_shape(child)


def left_deep_shape(streams: tuple[str, ...]) -> JoinShape:
    """The shape in which each stream joins the result so far.

    >>> left_deep_shape(("a", "b", "c"))
    (('a', 'b'), 'c')
    """
    shape: JoinShape = streams[0]
    for stream in streams[1:]:
        shape = shape, stream
    return shape


def plan_text(tree: PlanTree) -> str:
    """A plan as the papers write it, with what has one input as a function.

    >>> plan_text(Join(Join(Source("A"), Select(Source("B"), 0.1, name="σ1")), Source("C")))
    '(A ⋈ σ1(B)) ⋈ C'
    """
    match tree:
        case Source(name):
            return name
        case Join(left, right):
            sides = (
                f"({plan_text(side)})" if isinstance(side, Join) else plan_text(side)
                for side in (left, right)
            )
            return " ⋈ ".join(sides)
        case Select(child, name=name) | Project(child, name=name) | Aggregate(child, name=name):
            return f"{name}({plan_text(child)})"


def shape_text(shape: JoinShape) -> str:
    """A join shape as the papers write it.

    >>> shape_text(("a", ("b", "c")))
    'a ⋈ (b ⋈ c)'
    """
    if isinstance(shape, str):
        return shape
    return " ⋈ ".join(part if isinstance(part, str) else f"({shape_text(part)})" for part in shape)
