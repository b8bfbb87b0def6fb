"""All plans of a query over streams, by dynamic programming over connected subsets (RBO § 4.2.1).

A part of the query is a set of streams that the join graph connects, and the set of selections and
projections that are done. Its plans come from smaller parts: a selection or projection on top of a
plan that lacks it, or a join of two parts that share nothing::

    {A B C | σ}   =   σ on {A B C |}   +   {A B | σ} ⋈ {C |}   +   {A B |} ⋈ {C | σ}   +   …

`plans` keeps all of a part, `best_plan` only the best, `count_plans` how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from querymesh.cost.plan_tree import Join, JoinShape, PlanTree, Source, join_shape
from querymesh.errors import QueryError, UnsupportedError
from querymesh.optimize.rate.stream_query import JoinPredicate, Projection, RateQuery, Selection

MOST_PLANS = 100_000
"""More than this are not listed."""


@dataclass(frozen=True)
class Space:
    """Which plans are looked at.

    - `shape`: "linear" plans join one stream at a time, "bushy" ones also join results of joins
    - `placing`: "pushed" puts selections and projections directly on their streams, "anywhere" also
      above joins
    - `products`: whether streams may be joined that no predicate joins
    """

    shape: Literal["bushy", "linear"] = "bushy"
    placing: Literal["anywhere", "pushed"] = "anywhere"
    products: bool = False


class _Part(NamedTuple):
    """A part of a query: its streams and the steps that are done, as sets of bits."""

    streams: int
    steps: int


class _Origins(NamedTuple):
    """How a part comes about: as a stream itself, by a last step, by a last join."""

    stream: Source | None
    stepped: list[tuple[Selection | Projection, _Part]]
    joined: list[tuple[_Part, _Part]]


def plans(query: RateQuery, space: Space | None = None) -> tuple[PlanTree, ...]:
    """Every plan once; A ⋈ B and B ⋈ A are one, written with the larger side first."""
    count = count_plans(query, space)
    if count > MOST_PLANS:
        raise UnsupportedError(
            f"the query has {count} plans, and at most {MOST_PLANS} are listed: ask for linear "
            "plans, push selections down, or let best_plan() keep one for each set of streams"
        )
    space = space or Space()
    if _is_simple(query, space):
        return tuple(
            plan_of(query, join_shape(tree)) for tree in plans(replace(query, steps=()), space)
        )
    table: dict[_Part, list[PlanTree]] = {}
    for part, origins in _parts(query, space):
        table[part] = [*_trees(query, origins, table)]
    return tuple(table[_whole(query)])


def _is_simple(query: RateQuery, space: Space) -> bool:
    """Whether each stream has one step at most, which stays on it: plans then differ in shape."""
    on = [step.stream for step in query.steps]
    return bool(on) and space.placing == "pushed" and None not in on and len(set(on)) == len(on)


def best_plan(
    query: RateQuery,
    estimate: Callable[[PlanTree], float | tuple[float, ...]],
    space: Space | None = None,
) -> PlanTree:
    """The plan of the highest estimate if only the best plan of each part goes on.

    It is the best of all where a higher estimate of a part never lowers that of the whole, as with
    the rates of eq. 2; otherwise it is a good one.
    """
    space = space or Space()
    simple = _is_simple(query, space)
    table: dict[_Part, list[PlanTree]] = {}
    bare = replace(query, steps=()) if simple else query
    for part, origins in _parts(bare, space):
        if simple and origins.stream is not None:
            table[part] = [plan_of(query, origins.stream.name)]
            continue
        table[part] = [max(_trees(query, origins, table), key=estimate)]
    return table[_whole(bare)][0]


def plan_of(query: RateQuery, shape: JoinShape) -> PlanTree:
    """The plan of a shape, such as ("a", ("b", "c")), with all steps on their streams."""
    return _plan_of(query, shape)[0]


def _plan_of(query: RateQuery, shape: JoinShape) -> tuple[PlanTree, int]:
    if isinstance(shape, str):
        bit = _bit(query, shape)
        tree: PlanTree = query.streams[bit.bit_length() - 1]
        for step in query.steps:
            tree = step.above(tree) if step.stream == shape else tree
        return tree, bit
    (first, left), (second, right) = (_plan_of(query, part) for part in shape)
    selectivity, handling_s = joined(query, left, right)
    costs = replace(query.costs, handling_s=query.costs.handling_s + handling_s)
    return Join(first, second, selectivity, costs), left | right


def count_plans(query: RateQuery, space: Space | None = None) -> int:
    """How many plans there are, without listing them."""
    space = space or Space()
    if _is_simple(query, space):
        query = replace(query, steps=())
    count: dict[_Part, int] = {}
    for part, origins in _parts(query, space):
        count[part] = (
            (origins.stream is not None)
            + sum(count[before] for _, before in origins.stepped)
            + sum(count[left] * count[right] for left, right in origins.joined)
        )
    return count[_whole(query)]


def _whole(query: RateQuery) -> _Part:
    return _Part((1 << len(query.streams)) - 1, (1 << len(query.steps)) - 1)


def _trees(
    query: RateQuery, origins: _Origins, table: dict[_Part, list[PlanTree]]
) -> Iterator[PlanTree]:
    """The trees of a part from those of smaller ones."""
    if origins.stream is not None:
        yield origins.stream
    for step, before in origins.stepped:
        yield from (step.above(tree) for tree in table[before])
    for left, right in origins.joined:
        selectivity, handling_s = joined(query, left.streams, right.streams)
        costs = replace(query.costs, handling_s=query.costs.handling_s + handling_s)
        for first in table[left]:
            yield from (Join(first, second, selectivity, costs) for second in table[right])


def joined(query: RateQuery, left: int, right: int) -> tuple[float, float]:
    """The selectivity of a join of two sets of streams, and what its predicates cost a row.

    Predicates are independent, and so multiply, but for those of one group. Of three streams with
    one key, whoever joins two of them has the third join by that key once, and not by two
    predicates. What a set S of streams keeps by a group is F(S), the product over a spanning tree
    of its least selective predicates; two sets then join with F(L ∪ R) / (F(L) · F(R)), so that all
    plans of the query have the same number of results.
    """
    alone = [each for each in _across(query, left, right) if each.group is None]
    selectivity = math.prod(predicate.selectivity for predicate in alone)
    handling_s = sum(predicate.handling_s for predicate in alone)
    grouped: dict[str, list[JoinPredicate]] = {}
    for predicate in _across(query, left, right):
        if predicate.group is not None:
            grouped.setdefault(predicate.group, []).append(predicate)
    for group, across in grouped.items():
        apart = _kept(query, group, left) * _kept(query, group, right)
        selectivity *= min(1.0, _kept(query, group, left | right) / apart) if apart else 0.0
        handling_s += max(predicate.handling_s for predicate in across)
    return selectivity, handling_s


def _kept(query: RateQuery, group: str, streams: int) -> float:
    """F of `joined`: Kruskal's spanning tree, the least selective predicates first."""
    edges = [
        (each.selectivity, _bit(query, each.left), _bit(query, each.right))
        for each in query.predicates
        if each.group == group
    ]
    kept, parts = 1.0, {1 << at: 1 << at for at in range(len(query.streams))}
    for selectivity, first, second in sorted(edges, reverse=True):
        if first & streams and second & streams and parts[first] != parts[second]:
            kept *= selectivity
            one, other = parts[first], parts[second]
            parts = {bit: one if part == other else part for bit, part in parts.items()}
    return kept


def _parts(query: RateQuery, space: Space) -> Iterator[tuple[_Part, _Origins]]:
    """The parts from which whole plans are made, each after all that it needs."""
    whole = _whole(query)
    seen: set[_Part] = set()
    for streams in range(1, whole.streams + 1):
        for steps in range(whole.steps + 1):
            if steps & ~_allowed(query, streams, whole.streams):
                continue
            origins = _Origins(
                query.streams[streams.bit_length() - 1]
                if streams.bit_count() == 1 and not steps
                else None,
                [*_stepped(query, space, _Part(streams, steps), seen)],
                [*_joined(query, space, _Part(streams, steps), seen)],
            )
            if any(origins):
                seen.add(_Part(streams, steps))
                yield _Part(streams, steps), origins
    if whole not in seen:
        raise QueryError(
            "no predicate joins some of the streams "
            f"{', '.join(stream.name for stream in query.streams)}: write one, or allow products"
        )


def _allowed(query: RateQuery, streams: int, whole: int) -> int:
    """The steps that can be done on these streams."""
    return sum(
        1 << at
        for at, step in enumerate(query.steps)
        if (streams == whole if step.stream is None else streams & _bit(query, step.stream))
    )


def _stepped(
    query: RateQuery, space: Space, part: _Part, seen: set[_Part]
) -> Iterator[tuple[Selection | Projection, _Part]]:
    for at, step in enumerate(query.steps):
        before = _Part(part.streams, part.steps & ~(1 << at))
        if before == part or before not in seen:
            continue
        if space.placing == "pushed" and step.stream and part.streams.bit_count() > 1:
            continue
        yield step, before


def _joined(
    query: RateQuery, space: Space, part: _Part, seen: set[_Part]
) -> Iterator[tuple[_Part, _Part]]:
    lowest = part.streams & -part.streams
    for first in _subsets(part.streams):
        second = part.streams & ~first
        if not first & lowest or not second:
            continue
        if space.shape == "linear" and min(first.bit_count(), second.bit_count()) > 1:
            continue
        if not space.products and not _across(query, first, second):
            continue
        for done in _subsets(part.steps):
            left, right = _Part(first, done), _Part(second, part.steps & ~done)
            if left in seen and right in seen:
                larger = first.bit_count() >= second.bit_count()
                yield (left, right) if larger else (right, left)


def _subsets(bits: int) -> Iterator[int]:
    """All subsets, the empty one first."""
    subset = 0
    while True:
        yield subset
        if subset == bits:
            return
        subset = (subset - bits) & bits


def _across(query: RateQuery, left: int, right: int) -> list[JoinPredicate]:
    """The predicates between two sets of streams."""
    found = []
    for predicate in query.predicates:
        first, second = _bit(query, predicate.left), _bit(query, predicate.right)
        if (first & left and second & right) or (first & right and second & left):
            found.append(predicate)
    return found


def _bit(query: RateQuery, name: str) -> int:
    return next(1 << at for at, stream in enumerate(query.streams) if stream.name == name)
