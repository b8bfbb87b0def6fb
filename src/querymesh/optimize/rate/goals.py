"""What a plan over streams is chosen for, RBO § 4.1, and the ways to choose it, §§ 4.1 and 4.2."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from querymesh.cost.plan_tree import PlanTree, plan_text, sources_of
from querymesh.errors import OptionError, QueryError, did_you_mean
from querymesh.optimize.rate.cardinality import expected_total
from querymesh.optimize.rate.curves import Reading, predicted, predicted_until
from querymesh.optimize.rate.heuristics import is_on_time, load, rate_estimate, time_estimate
from querymesh.optimize.rate.join_plans import Space, best_plan, count_plans, plans
from querymesh.optimize.rate.stream_query import RateQuery


@dataclass(frozen=True)
class MostBy:
    """As many results as possible by a time, `time_s` seconds after the query starts."""

    time_s: float

    def __post_init__(self) -> None:
        if not 0 < self.time_s < math.inf:
            raise OptionError(f"most results by {self.time_s} s: write a time above 0")


@dataclass(frozen=True)
class First:
    """The first `results` results as soon as possible."""

    results: float

    def __post_init__(self) -> None:
        if not 0 < self.results < math.inf:
            raise OptionError(f"the first {self.results} results: write a number above 0")


@dataclass(frozen=True)
class Last:
    """All results as soon as possible."""


Goal = MostBy | First | Last


def goal_from(text: str) -> Goal:
    """A goal from text, as the command line has it and `goal_text` writes it.

    >>> goal_from("most by 90s"), goal_from("first 1000"), goal_from("last")
    (MostBy(time_s=90.0), First(results=1000.0), Last())
    """
    found = _GOAL.fullmatch(text.strip().lower())
    if found is None:
        raise OptionError(f"a goal is 'most by 60s', 'first 1000' or 'last', not {text!r}")
    if (seconds := found["seconds"]) is not None:
        return MostBy(float(seconds))
    return Last() if found["results"] is None else First(float(found["results"]))


def goal_text(goal: Goal) -> str:
    """The goal as text; `goal_from` reads it back."""
    match goal:
        case MostBy(time_s):
            return f"most by {time_s:g}s"
        case First(results):
            return f"first {results:.0f}"
        case Last():
            return "last"


_NUMBER = r"\d+(?:\.\d+)?"
_GOAL = re.compile(
    rf"most by (?P<seconds>{_NUMBER}) ?s?(?:econds)?|first (?P<results>{_NUMBER})|last"
)

SAME = 1e-3
"""Plans whose predictions differ by less than this part are as good as each other."""

_START_S = 60.0
"""The period for which a first plan is chosen where the goal has no time, in seconds."""

_ROUNDING = 1e-9
"""The part by which a number of results may be larger than all there are."""


class Ranked(NamedTuple):
    """A plan, and what eq. 3 predicts for the goal: results for `MostBy`, seconds otherwise."""

    tree: PlanTree
    value: float


class TreeChoice(NamedTuple):
    """The plan chosen for a goal.

    `value` is what `achieved` predicts for it, `way` one of `WAYS`, `among` the number of plans
    that it was chosen from.
    """

    tree: PlanTree
    value: float
    way: str
    among: int


def achieved(tree: PlanTree, goal: Goal, reading: Reading = "queue") -> float:
    """What a plan does for a goal: results by the time (more is better), or the time (less is).

    The time is infinite if windows keep the plan from ever making so many.
    """
    match goal:
        case MostBy(time_s):
            return predicted(tree, time_s, reading).outputs(time_s)
        case First(results):
            check_reachable(tree, goal)
            curve = predicted_until(tree, results, reading)
            most = float(curve.made[-1])
            if results > most * (1 + _ROUNDING):
                return math.inf
            return curve.time_of(min(results, most))
        case Last():
            check_reachable(tree, goal)
            curve = predicted(tree, reading=reading)
            return curve.time_of(curve.total)


def check_reachable(tree: PlanTree, goal: Goal) -> None:
    """Raise if no plan of the query can reach the goal, even without windows."""
    total = expected_total(tree)
    if isinstance(goal, First) and goal.results > total * (1 + _ROUNDING):
        raise QueryError(
            f"the first {goal.results:g} results are not reached: {total:g} are expected in all. "
            "Ask for no more than that"
        )
    if isinstance(goal, Last):
        endless = [source.name for source in sources_of(tree) if source.size == math.inf]
        if endless:
            raise QueryError(
                f"there is no last result: no end is known of {', '.join(endless)}. Ask for the "
                "first results, or for the most by a time"
            )


def ranked(trees: Iterable[PlanTree], goal: Goal, reading: Reading = "queue") -> list[Ranked]:
    """Plans with what eq. 3 predicts for them, best first."""
    found = [Ranked(tree, achieved(tree, goal, reading)) for tree in trees]
    return sorted(found, key=lambda each: each.value, reverse=isinstance(goal, MostBy))


def choose(
    query: RateQuery,
    goal: Goal,
    way: str = "exact",
    space: Space | None = None,
    reading: Reading = "queue",
) -> TreeChoice:
    """The plan for a goal.

    `exact` integrates every plan (eq. 3); of those that do equally well, as all do that are never
    late, it takes the one with the least work. `local rate` (§ 4.2.1) keeps the plan of the highest
    rate for each set of streams, and is for the most results by a time. `local time` (§ 4.2.2)
    takes the plan whose latest part is the earliest, and is for the first results or all of them.
    """
    if way not in WAYS:
        raise OptionError(f"no way to choose is called {way!r}; {did_you_mean(way, WAYS)}")
    tree = WAYS[way](query, goal, space or Space(), reading)
    value = achieved(tree, goal, reading)
    if value == math.inf:
        raise QueryError(unreachable(tree, goal))
    return TreeChoice(tree, value, way, count_plans(query, space))


def unreachable(tree: PlanTree, goal: Goal) -> str:
    """The text of the error for a plan whose windows are too short for the goal."""
    assert isinstance(goal, First), "the others are reached, or refused before"
    most = float(predicted_until(tree, goal.results).made[-1])
    return (
        f"the first {goal.results:g} results are not reached: {most:.3g} are expected of "
        f"{plan_text(tree)}, whose windows let rows go before they are met. Ask for no more than "
        "that, or for longer windows"
    )


def _exact(query: RateQuery, goal: Goal, space: Space, reading: Reading) -> PlanTree:
    found = on_time_plan(query, goal, space, reading)
    return found or _least_work(ranked(plans(query, space), goal, reading), goal)


def on_time_plan(
    query: RateQuery, goal: Goal, space: Space, reading: Reading = "queue"
) -> PlanTree | None:
    """The plan with the least work, if it is never late: no plan gives out more, or earlier."""

    def least(by_s: float) -> PlanTree:
        return best_plan(query, lambda tree: -load(tree, by_s).total, space)

    if isinstance(goal, MostBy):
        tree, by_s = least(goal.time_s), goal.time_s
    else:
        value = achieved(least(_START_S), goal, reading)
        if value == math.inf:
            return None
        by_s = period_s(goal, value)
        tree = least(by_s)
    return tree if is_on_time(tree, by_s) else None


def _least_work(best_first: Sequence[Ranked], goal: Goal) -> PlanTree:
    """Of the plans that do as well as the first, the one with the least work."""
    best = best_first[0].value
    if best == math.inf:
        return best_first[0].tree
    equal = [each for each in best_first if abs(each.value - best) <= SAME * abs(best)]
    by_s = period_s(goal, best)
    return min(equal, key=lambda each: load(each.tree, by_s).total).tree


def period_s(goal: Goal, value: float) -> float:
    """The seconds that a goal is about: those given, or those until it is reached."""
    return goal.time_s if isinstance(goal, MostBy) else max(value, 1e-9)


def _local_rate(query: RateQuery, goal: Goal, space: Space, reading: Reading) -> PlanTree:
    if not isinstance(goal, MostBy):
        raise OptionError(
            "local rate maximization is for the most results by a time: choose 'local time' for "
            "the first results or all of them"
        )
    by_s = goal.time_s

    def estimate(tree: PlanTree) -> tuple[float, float]:
        # Equal but for the last digits is equal: then less work is better.
        return float(f"{rate_estimate(tree, by_s):.6g}"), -load(tree, by_s).total

    return best_plan(query, estimate, space)


def _local_time(query: RateQuery, goal: Goal, space: Space, reading: Reading) -> PlanTree:
    if isinstance(goal, MostBy):
        raise OptionError(
            "local time minimization is for the first results or all of them: choose 'local rate' "
            "for the most results by a time"
        )
    # § 4.2.2's `min` compares C_t > C_f and takes the tree of the larger: a slip for C_t < C_f.
    trees = plans(query, space)
    check_reachable(trees[0], goal)
    results = goal.results if isinstance(goal, First) else expected_total(trees[0])
    return min(trees, key=lambda tree: time_estimate(tree, results))


WAYS: Mapping[str, Callable[[RateQuery, Goal, Space, Reading], PlanTree]] = {
    "exact": _exact,
    "local rate": _local_rate,
    "local time": _local_time,
}
