"""All plans of a query over streams, by dynamic programming over connected subsets (RBO § 4.2.1).

A state is a set of streams that the join graph connects, and the set of selections and projections
that are done. Its plans come from smaller states: a selection or projection on top of a plan that
lacks it, or a join of two states that share nothing::

    {A B C | σ}   =   σ on {A B C |}   +   {A B | σ} ⋈ {C |}   +   {A B |} ⋈ {C | σ}   +   …

`plans` keeps all of a state, `best_plan` only the best, `count_plans` how many there are.
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

    `shape`: linear plans join one stream at a time. `placing`: selections and projections directly
    on their streams, or anywhere above. `products`: whether what no predicate joins may be joined.
    """

    shape: Literal["bushy", "linear"] = "bushy"
    placing: Literal["anywhere", "pushed"] = "anywhere"
    products: bool = False


class _State(NamedTuple):
    """Sets of streams and of steps, as bits."""

    streams: int
    steps: int


class _Ways(NamedTuple):
    """How a state comes about: as a stream itself, by a last step, by a last join."""

    stream: Source | None
    stepped: list[tuple[Selection | Projection, _State]]
    joined: list[tuple[_State, _State]]


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
    table: dict[_State, list[PlanTree]] = {}
    for state, ways in _states(query, space):
        table[state] = [*_trees(query, ways, table)]
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
    """The plan of the highest estimate if only the best plan of each state goes on.

    It is the best of all where a higher estimate of a part never lowers that of the whole, as with
    the rates of eq. 2; otherwise it is a good one.
    """
    space = space or Space()
    simple = _is_simple(query, space)
    table: dict[_State, list[PlanTree]] = {}
    bare = replace(query, steps=()) if simple else query
    for state, ways in _states(bare, space):
        if simple and ways.stream is not None:
            table[state] = [plan_of(query, ways.stream.name)]
            continue
        table[state] = [max(_trees(query, ways, table), key=estimate)]
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
    count: dict[_State, int] = {}
    for state, ways in _states(query, space):
        count[state] = (
            (ways.stream is not None)
            + sum(count[before] for _, before in ways.stepped)
            + sum(count[left] * count[right] for left, right in ways.joined)
        )
    return count[_whole(query)]


def _whole(query: RateQuery) -> _State:
    return _State((1 << len(query.streams)) - 1, (1 << len(query.steps)) - 1)


def _trees(
    query: RateQuery, ways: _Ways, table: dict[_State, list[PlanTree]]
) -> Iterator[PlanTree]:
    """The trees of a state from those of smaller ones."""
    if ways.stream is not None:
        yield ways.stream
    for step, before in ways.stepped:
        yield from (step.above(tree) for tree in table[before])
    for left, right in ways.joined:
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


def _states(query: RateQuery, space: Space) -> Iterator[tuple[_State, _Ways]]:
    """The states from which whole plans are made, each after all that it needs."""
    whole = _whole(query)
    seen: set[_State] = set()
    for streams in range(1, whole.streams + 1):
        for steps in range(whole.steps + 1):
            if steps & ~_allowed(query, streams, whole.streams):
                continue
            ways = _Ways(
                query.streams[streams.bit_length() - 1]
                if streams.bit_count() == 1 and not steps
                else None,
                [*_stepped(query, space, _State(streams, steps), seen)],
                [*_joined(query, space, _State(streams, steps), seen)],
            )
            if any(ways):
                seen.add(_State(streams, steps))
                yield _State(streams, steps), ways
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
    query: RateQuery, space: Space, state: _State, seen: set[_State]
) -> Iterator[tuple[Selection | Projection, _State]]:
    for at, step in enumerate(query.steps):
        before = _State(state.streams, state.steps & ~(1 << at))
        if before == state or before not in seen:
            continue
        if space.placing == "pushed" and step.stream and state.streams.bit_count() > 1:
            continue
        yield step, before


def _joined(
    query: RateQuery, space: Space, state: _State, seen: set[_State]
) -> Iterator[tuple[_State, _State]]:
    lowest = state.streams & -state.streams
    for part in _subsets(state.streams):
        other = state.streams & ~part
        if not part & lowest or not other:
            continue
        if space.shape == "linear" and min(part.bit_count(), other.bit_count()) > 1:
            continue
        if not space.products and not _across(query, part, other):
            continue
        for done in _subsets(state.steps):
            left, right = _State(part, done), _State(other, state.steps & ~done)
            if left in seen and right in seen:
                larger = part.bit_count() >= other.bit_count()
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
