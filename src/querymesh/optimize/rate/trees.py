"""Plans as trees, and what a query is made of, for rate-based optimization (RBO §§ 3 and 5).

A tree is frozen data: sources at the leaves, above them selections, projections and joins. What a
tree does over time is told by `rate_curves`, which one to take by `rate_goals`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TypeAlias

from querymesh.cost.rates import FREE, JoinCosts, check_cost, check_selectivity
from querymesh.errors import QueryError


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Select:
    """A selection of § 3.2, placed."""

    child: Tree
    selectivity: float
    cost_s: float = 0.0
    name: str = "σ"

    def __post_init__(self) -> None:
        check_selectivity(self.selectivity, f"selection {self.name}")
        check_cost(self.cost_s, f"selection {self.name}")


@dataclass(frozen=True)
class Project:
    """A projection of § 3.1, placed."""

    child: Tree
    cost_s: float = 0.0
    name: str = "π"

    def __post_init__(self) -> None:
        check_cost(self.cost_s, f"projection {self.name}")


@dataclass(frozen=True)
class Join:
    """A join of § 3.3; a product is one of selectivity 1. Both algorithms of § 3.4 treat their
    sides alike, so that A ⋈ B and B ⋈ A are one plan."""

    left: Tree
    right: Tree
    selectivity: float = 1.0
    costs: JoinCosts = FREE

    def __post_init__(self) -> None:
        check_selectivity(self.selectivity, "a join")


Tree = Source | Select | Project | Join

Nested: TypeAlias = "str | tuple[Nested, Nested]"
"""The shape of a tree, by the names of its streams: ("a", ("b", "c"))."""


def nested(tree: Tree) -> Nested:
    """The shape of a tree, without what is done on the way."""
    match tree:
        case Source(name):
            return name
        case Select(child) | Project(child):
            return nested(child)
        case Join(left, right):
            return nested(left), nested(right)


def sources(tree: Tree) -> Iterator[Source]:
    """The leaves, from left to right."""
    match tree:
        case Source():
            yield tree
        case Join(left, right):
            yield from sources(left)
            yield from sources(right)
        case Select(child) | Project(child):
            yield from sources(child)


def window_s(tree: Tree) -> float:
    """How long a join keeps a row of this tree: as long as all streams keep their part of it."""
    return min(source.window_s for source in sources(tree))


def expected_total(tree: Tree) -> float:
    """How many rows a tree gives out in the end if no window cuts them off."""
    match tree:
        case Source():
            return tree.size
        case Select(child, selectivity):
            return _times(selectivity, expected_total(child))
        case Project(child):
            return expected_total(child)
        case Join(left, right, selectivity):
            return _times(selectivity, _times(expected_total(left), expected_total(right)))


def _times(first: float, second: float) -> float:
    """A product where nothing of infinitely much is nothing."""
    return first * second if first and second else 0.0


def text(tree: Tree) -> str:
    """As the paper writes it, with selections and projections as functions.

    >>> text(Join(Join(Source("A"), Select(Source("B"), 0.1, name="σ1")), Source("C")))
    '(A ⋈ σ1(B)) ⋈ C'
    """
    match tree:
        case Source(name):
            return name
        case Select(child, name=name) | Project(child, name=name):
            return f"{name}({text(child)})"
        case Join(left, right):
            sides = (
                f"({text(side)})" if isinstance(side, Join) else text(side)
                for side in (left, right)
            )
            return " ⋈ ".join(sides)


def with_assumed_rates(streams: Sequence[Source]) -> tuple[tuple[Source, ...], tuple[str, ...]]:
    """The streams with a rate for each, and a sentence for each rate that was assumed.

    An unknown rate is taken to be the mean of the known ones; if none is known all are 1, which is
    then the unit of time.

    >>> with_assumed_rates([Source("A", 10), Source("B")])[1]
    ('the rate of stream B is not known: assumed 10 rows a second, the mean of the known rates',)
    """
    known = [stream.rate for stream in streams if stream.rate is not None]
    rate = fmean(known) if known else 1.0
    why = "the mean of the known rates" if known else "as for all streams, since no rate is known"
    notes = tuple(
        f"the rate of stream {stream.name} is not known: assumed {rate:g} rows a second, {why}"
        for stream in streams
        if stream.rate is None
    )
    assumed = (stream if stream.rate else replace(stream, rate=rate) for stream in streams)
    return tuple(assumed), notes
