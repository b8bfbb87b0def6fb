"""RBO's two ways to judge a plan without integrating anything, § 4.2."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from querymesh.cost.plan_tree import Join, PlanTree, Source, inputs_of, sources_of, window_of
from querymesh.cost.rates import join_rate, selection_rate
from querymesh.errors import QueryError
from querymesh.optimize.rate.cardinality import expected_total


class Need(NamedTuple):
    """§ 4.2.2's (P, n, r, t): a point of a plan, the rows it must give out, its rate, the time."""

    tree: PlanTree
    rows: float
    rate: float
    time_s: float


def rate_estimate(tree: PlanTree, by_s: float) -> float:
    """Local rate maximization, § 4.2.1: eq. 2 from the leaves up, with t_p / 2 for every t.

    Half of the interval, so that the rate is too high before as much as it is too low after. A
    stream that ends before t_p counts with its mean rate up to t_p.
    """
    return _estimate(tree, by_s, lambda source: _mean_rate(source, by_s))


class Load(NamedTuple):
    """Seconds of work that a second brings: to all operators of a plan, to its joins alone, and to
    the busiest operator."""

    total: float
    joins: float
    busiest: float


def load(tree: PlanTree, by_s: float) -> Load:
    """The work of a plan when this time has passed and nothing was late.

    Where no operator is late, all plans of a query give out the same, and this tells them apart:
    the one that works least is the last to be late. Rates are those at the time, and not means up
    to it as in eq. 2; a stream that ends before counts with its mean.
    """
    return _loaded(tree, by_s, lambda source: _mean_rate(source, by_s))[1]


def is_on_time(tree: PlanTree, by_s: float) -> bool:
    """Whether no operator of a plan is late at any time until then, but for streams that are there
    all at once, in a hundredth of the time."""

    def peak(source: Source) -> float:
        at_once = source.end_s < by_s / 100
        return _mean_rate(source, by_s) if at_once else source.rows_a_second

    return _loaded(tree, by_s, peak)[1].busiest < 1


def _loaded(tree: PlanTree, by_s: float, rate_of: Callable[[Source], float]) -> tuple[float, Load]:
    """The rate at which a plan gives out rows when `by_s` seconds have passed, and its load."""
    match tree:
        case Source():
            return rate_of(tree), Load(0.0, 0.0, 0.0)
        case Join(left, right):
            (first, one), (second, other) = (_loaded(s, by_s, rate_of) for s in (left, right))
            lefts = first * min(by_s, window_of(left))
            rights = second * min(by_s, window_of(right))
            work = tree.costs.busy(first, second, lefts, rights)
            below = Load(one.total + other.total, one.joins + other.joins, max(one[2], other[2]))
            rate = tree.passes * (first * rights + second * lefts)
            return rate, _plus(below, work, work)
        case _:
            rate, below = _loaded(tree.child, by_s, rate_of)
            return tree.passes * rate, _plus(below, tree.cost_s * rate, 0.0)


def _plus(below: Load, work: float, of_join: float) -> Load:
    return Load(below.total + work, below.joins + of_join, max(below.busiest, work))


def _mean_rate(source: Source, by_s: float) -> float:
    return min(source.rows_a_second, source.size / by_s)


def needs(tree: PlanTree, results: float) -> list[Need]:
    """Local time minimization, § 4.2.2: what each point of a plan must give out, and by when.

    Of a join that shall make the share φ of all it can make, each input must bring √φ of what it
    can bring (Figure 5). The text has √(φ · f_AB · f_BC · |A|) rows of A for A ⋈ (B ⋈ C); only
    √φ · |A| and √φ · f_BC · |B| · |C| give the results asked for, so that is what holds here. If a
    stream has no end, the plan can make what comes until there are as many results as asked for.

    The time is n / r. The rate depends on the time; it is that of the time found.
    """
    until_s = _enough_s(tree, results)
    return [*_needs(tree, results, lambda part: _brought(part, until_s))]


def time_estimate(tree: PlanTree, results: float) -> tuple[float, ...]:
    """The times of all points of a plan, latest first: what § 4.2.2's `max` looks for is the first.

    Of plans whose latest times are the same, as when all wait for one slow stream, that is better
    whose next latest time is earlier; the paper says nothing about them.
    """
    return tuple(sorted((need.time_s for need in needs(tree, results)), reverse=True))


def _estimate(tree: PlanTree, by_s: float, rate: Callable[[Source], float]) -> float:
    match tree:
        case Source():
            return rate(tree)
        case Join(left, right):
            inputs = _estimate(left, by_s, rate), _estimate(right, by_s, rate)
            windows_s = window_of(left), window_of(right)
            return join_rate(*inputs, tree.passes, by_s / 2, tree.costs, windows_s)
        case _:
            return selection_rate(_estimate(tree.child, by_s, rate), tree.passes, tree.cost_s)


def _needs(tree: PlanTree, rows: float, brings: Callable[[PlanTree], float]) -> Iterator[Need]:
    time_s = _solved(lambda by_s: by_s * _endless(tree, by_s), rows)
    yield Need(tree, rows, rows / time_s if time_s else _endless(tree, 1.0), time_s)
    share = rows / brings(tree) if rows else 0.0
    if isinstance(tree, Join):
        share = math.sqrt(share)
    for child in inputs_of(tree):
        yield from _needs(child, share * brings(child), brings)


def _endless(tree: PlanTree, by_s: float) -> float:
    """The estimate as the paper has it, as if no stream ended before the rows needed have come."""
    return _estimate(tree, by_s, lambda source: source.rows_a_second)


def _brought(tree: PlanTree, until_s: float) -> float:
    """The rows that a plan can make of what has come by a time."""
    match tree:
        case Source():
            return (
                tree.size if until_s == math.inf else min(tree.size, tree.rows_a_second * until_s)
            )
        case Join(left, right):
            return tree.passes * _brought(left, until_s) * _brought(right, until_s)
        case _:
            return tree.passes * _brought(tree.child, until_s)


def _enough_s(tree: PlanTree, results: float) -> float:
    """The time by which enough has come for so many results; infinite if all streams end."""
    total = expected_total(tree)
    if results > total * (1 + 1e-9):
        raise QueryError(
            f"{results:g} results are not reached: the plan is expected to make {total:g} in all. "
            "Ask for no more than that"
        )
    if all(source.size < math.inf for source in sources_of(tree)):
        return math.inf
    return _solved(lambda until_s: _brought(tree, until_s), results)


def _solved(grows: Callable[[float], float], target: float) -> float:
    """Where a growing function reaches a value, to 12 digits."""
    if target <= 0:
        return 0.0
    high = 1.0
    while grows(high) < target:
        high *= 16
        if high > 1e30:
            return math.inf
    low = 0.0
    while high - low > 1e-12 * high and high > 1e-30:
        middle = (low + high) / 2
        low, high = (middle, high) if grows(middle) < target else (low, middle)
    return high
