"""What a query over streams is made of for rate-based optimization: its streams and their rates,
what joins them, and what is done to them (RBO Tables 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from querymesh.cost.plan_tree import PlanTree, Project, Select, Source
from querymesh.cost.rates import FREE, JoinCosts, check_cost, check_selectivity
from querymesh.errors import QueryError, did_you_mean


@dataclass(frozen=True)
class JoinPredicate:
    """A join predicate between two streams.

    `selectivity` is the share of pairs for which it holds; `handling_s` is paid for each arriving
    row on top of the join's own cost. Predicates of one `group` say the same thing twice, as
    a.k = b.k and b.k = c.k say a.k = c.k: see `join_plans.joined`.
    """

    left: str
    right: str
    selectivity: float
    handling_s: float = 0.0
    group: str | None = None

    def __post_init__(self) -> None:
        check_selectivity(self.selectivity, f"join predicate {self.left} ⋈ {self.right}")
        check_cost(self.handling_s, f"join predicate {self.left} ⋈ {self.right}")


@dataclass(frozen=True)
class Selection:
    """A selection on one stream, to be placed anywhere above it."""

    stream: str
    selectivity: float
    cost_s: float = 0.0
    name: str = "σ"

    def __post_init__(self) -> None:
        check_selectivity(self.selectivity, f"selection {self.name}")
        check_cost(self.cost_s, f"selection {self.name}")

    def above(self, tree: PlanTree) -> Select:
        """The plan with this selection on top."""
        return Select(tree, self.selectivity, self.cost_s, self.name)


@dataclass(frozen=True)
class Projection:
    """A projection on one stream, or of whole results if no stream is named."""

    stream: str | None = None
    cost_s: float = 0.0
    name: str = "π"

    def __post_init__(self) -> None:
        check_cost(self.cost_s, f"projection {self.name}")

    def above(self, tree: PlanTree) -> Project:
        """The plan with this projection on top."""
        return Project(tree, self.cost_s, self.name)


@dataclass(frozen=True)
class RateQuery:
    """A query over streams with all figures that rate-based optimization needs.

    - `streams`: the sources, with their rates
    - `predicates`: what joins them
    - `steps`: selections and projections, each to be placed somewhere above its stream
    - `costs`: what every join takes for an arriving row, the handling of its predicates aside
    """

    streams: tuple[Source, ...]
    predicates: tuple[JoinPredicate, ...] = ()
    steps: tuple[Selection | Projection, ...] = ()
    costs: JoinCosts = FREE

    def __post_init__(self) -> None:
        names = [stream.name for stream in self.streams]
        if not names:
            raise QueryError("a query needs a stream")
        if len(set(names)) < len(names):
            raise QueryError(f"two streams have the same name: {', '.join(sorted(names))}")
        for name in self._named():
            if name not in names:
                raise QueryError(f"there is no stream {name}; {did_you_mean(name, names)}")

    def _named(self) -> Iterator[str]:
        for predicate in self.predicates:
            yield from (predicate.left, predicate.right)
        yield from (step.stream for step in self.steps if step.stream is not None)


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
