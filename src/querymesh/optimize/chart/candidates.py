"""Candidate plans of a continuous query by the four heuristics of OM § 4.2.

    1  group selections          all predicates on one stream are one selection
    2  push down σ and π         below the joins, in either order: σ → π and π → σ
    3  left-deep join orders     (s1 ⋈ s2) ⋈ s3: see `left_deep`
    4  aggregate last            at the root

The output rate of σ → π is that of π → σ, so the order on one stream changes nothing for the joins
above or for another stream. Each stream therefore has candidates of its own, and so have the joins,
over inputs that arrive as the streams' plans let them through; `whole_plan` puts the chosen ones
together.

Two points of the paper are read so: "S.a > 5 OR S.a < 10 is grouped as 5 < S.a < 10" must be AND;
and its Q2, TCP.src = UDP.dest AND UDP.dest = SF.dest, has 3 orders only if TCP.src = SF.dest is
seen to follow. Predicates of one `key` are such: any of them will do to join a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from querymesh.cost.plan_tree import (
    Aggregate,
    Join,
    PlanTree,
    Project,
    Select,
    Source,
    check_keeps,
)
from querymesh.cost.rates import TupleRates, check_tpr, cost_at
from querymesh.errors import QueryError, did_you_mean

Order = tuple[str, ...]
"""Streams, in the order they are joined."""


@dataclass(frozen=True, slots=True)
class StreamSelection:
    """A predicate on one stream, and how many tuples a second it can be asked of."""

    name: str
    stream: str
    tpr: float


@dataclass(frozen=True, slots=True)
class StreamProjection:
    """What is kept of a stream's tuples: a share of their bytes, join attributes included.

    `first`: it may come before the selection, since it keeps all that the selection reads.
    """

    stream: str
    tpr: float
    keeps: float = 1.0
    first: bool = True


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """A join predicate between two streams; equal `key`s, if given, are one chain of equalities."""

    name: str
    streams: tuple[str, str]
    tpr: float
    key: str | None = None


@dataclass(frozen=True)
class QueryShape:
    """A query Q[W] as its plans see it: operators, and how fast each is (§ 3)."""

    streams: tuple[str, ...]
    selections: tuple[StreamSelection, ...] = ()
    projections: tuple[StreamProjection, ...] = ()
    joins: tuple[StreamJoin, ...] = ()
    aggregate_tpr: float | None = None

    def __post_init__(self) -> None:
        if not self.streams or len(set(self.streams)) < len(self.streams):
            raise QueryError(f"a query has one stream or more, each once, not {self.streams}")
        mentioned = [each.stream for each in self.selections]
        mentioned += [each.stream for each in self.projections]
        mentioned += [stream for join in self.joins for stream in join.streams]
        for stream in mentioned:
            if stream not in self.streams:
                raise QueryError(f"no stream {stream}: {did_you_mean(stream, self.streams)}")
        names = [each.name for each in self.selections] + [each.name for each in self.joins]
        for name in names:
            if names.count(name) > 1:
                raise QueryError(f"two predicates are called {name}: give each its own name")
        if any(join.streams[0] == join.streams[1] for join in self.joins):
            raise QueryError("a join predicate is between two streams: one on one is a selection")
        for selection in self.selections:
            check_tpr("selection", selection.tpr)
        for join in self.joins:
            check_tpr("join", join.tpr)
        for projection in self.projections:
            check_tpr("projection", projection.tpr)
            check_keeps(projection.keeps)
        if len({each.stream for each in self.projections}) < len(self.projections):
            raise QueryError("a stream has one projection: write it as one list of columns")
        if self.aggregate_tpr is not None:
            check_tpr("aggregate", self.aggregate_tpr)


def grouped_selection(shape: QueryShape, stream: str, of: PlanTree) -> PlanTree:
    """Heuristic 1: a stream's predicates as one selection; each is asked of every tuple."""
    mine = [each for each in shape.selections if each.stream == stream]
    if not mine:
        return of
    cost_s = sum(cost_at("selection", each.tpr) for each in mine)
    return Select(of, tuple(each.name for each in mine), cost_s)


def stream_plans(shape: QueryShape, stream: str) -> tuple[PlanTree, ...]:
    """Heuristic 2: the candidates for one stream, below all joins; σ → π is the first."""
    arrivals = Source(stream)
    selected = grouped_selection(shape, stream, arrivals)
    mine = next((each for each in shape.projections if each.stream == stream), None)
    if mine is None:
        return (selected,)

    def projected(of: PlanTree) -> PlanTree:
        return Project(of, cost_at("projection", mine.tpr), keeps=mine.keeps)

    if selected is arrivals or not mine.first:
        return (projected(selected),)
    return projected(selected), grouped_selection(shape, stream, projected(arrivals))


def join_plan(
    shape: QueryShape, order: Order, inputs: Mapping[str, PlanTree] | None = None
) -> PlanTree:
    """The left-deep plan of an order, the aggregate at its root (heuristic 4).

    Without `inputs` streams are joined as they arrive: what a λ-λ chart is about.
    """
    inputs = inputs or {stream: Source(stream) for stream in shape.streams}
    plan = inputs[order[0]]
    for place, stream in enumerate(order[1:], 1):
        links = links_to(shape, order[:place], stream)
        # A product is as fast as the slowest join known: it compares nothing, but writes all.
        tpr = min((each.tpr for each in links or shape.joins), default=np.inf)
        if not np.isfinite(tpr):
            raise QueryError(
                f"the query joins {', '.join(shape.streams)} without a predicate: give one "
                "StreamJoin at least, for its processing rate"
            )
        names = tuple(each.name for each in links)
        plan = Join(plan, inputs[stream], names, TupleRates(tpr, tpr))
    if shape.aggregate_tpr is not None:
        plan = Aggregate(plan, cost_at("aggregate", shape.aggregate_tpr))
    return plan


def whole_plan(shape: QueryShape, order: Order, chosen: Mapping[str, int]) -> PlanTree:
    """The plan of an order, with one of its `stream_plans` for each stream; the first, if none."""
    inputs = {each: stream_plans(shape, each)[chosen.get(each, 0)] for each in shape.streams}
    return join_plan(shape, order, inputs)


def links_to(shape: QueryShape, joined: Order, stream: str) -> list[StreamJoin]:
    """The predicates between a stream and those joined before; of one key the first is enough.

    Streams of one key are linked by it even where no predicate names both: the equality follows.
    """
    links: dict[str, StreamJoin] = {}
    for join in shape.joins:
        first, second = join.streams
        if (stream == first and second in joined) or (stream == second and first in joined):
            links.setdefault(f"key {join.key}" if join.key else f"name {join.name}", join)
    for join in shape.joins:
        if join.key and stream in join.streams and f"key {join.key}" not in links:
            same = {
                each for other in shape.joins if other.key == join.key for each in other.streams
            }
            if same & set(joined):
                links[f"key {join.key}"] = join
    return [*links.values()]
