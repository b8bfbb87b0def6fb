"""The planner of policy "rate": a join tree for a goal, round by round (RBO § 4), as probe orders.

Every round moves the decayed means of `observed_rates`. Once one of them has moved by more than a
tenth since the last look, all trees are looked at again, and another one is taken if it does better
for the goal by `LEAST_GAIN`; or, where trees do equally well because none is late, if it works less
by that part. `probe_orders` says which order of probes a tree means.

The goal's time counts from when a query starts with empty windows: "most by 60 s" is about the
first minute. A goal that is longer than the windows is about how it goes on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from querymesh.cost.plan_tree import JoinShape, PlanTree, join_shape, plan_text, shape_text
from querymesh.errors import QueryError, UnsupportedError
from querymesh.explained import Explained
from querymesh.optimize.planning.orders import order_of, route_for, written_orders
from querymesh.optimize.planning.planner import Decision, Orders, Round
from querymesh.optimize.rate.goals import (
    First,
    Goal,
    Last,
    MostBy,
    achieved,
    choose,
    on_time_plan,
    period_s,
    unreachable,
)
from querymesh.optimize.rate.heuristics import is_on_time, load
from querymesh.optimize.rate.join_plans import Space, best_plan, count_plans, plan_of
from querymesh.optimize.rate.observed_rates import RateStatistics
from querymesh.optimize.rate.probe_orders import tree_orders
from querymesh.optimize.rate.stream_query import RateQuery
from querymesh.query.join import JoinQuery

EXACT_PLANS = 120
"""Up to so many plans are integrated; above, one of the two heuristics chooses. Five streams that
are all joined to each other have 105 bushy plans."""

LISTED_PLANS = 250
"""Above this, local time minimisation, which looks at every plan, would take too long."""

_START_S, _FOREVER_S = 60.0, 1e9

MOVED = 0.1
"""An estimate that has moved by less than this part is not worth another look."""

LEAST_GAIN = 0.03
"""Another plan must do better by this part: what is nearly equal must not make a query waver."""

PATIENCE = 3
"""After so many rounds, a selectivity that no round has shown is assumed."""


@dataclass(frozen=True)
class ChosenTree:
    """A tree with the reasons for choosing it.

    - `query`: the streams, predicates and costs that it was chosen by
    - `value`: what it is expected to do for the goal, as `goals.achieved` has it
    - `load`: seconds that its joins work in a second; the work on single streams is the same in
      every tree
    - `on_time`: whether no operator is ever late
    - `way`, `among`: how it was chosen, and of how many plans
    - `round`: the number of the round after which it was chosen
    """

    tree: PlanTree
    query: RateQuery
    value: float
    load: float
    on_time: bool
    way: str
    among: int
    round: int


@dataclass
class RatePlanner(Explained):
    """Chooses the probe orders of a join by output rates (RBO).

    - `join`: the query
    - `goal`: `MostBy`, `First` or `Last`; `default_goal` if none is given
    - `sizes`: the rows of the streams that end, by alias
    - `space`: which trees are looked at
    - `stores_trees`: whether the tree itself runs, so that its joins store what they hand on, as
      Spark's own do
    - `patience`: rounds after which a selectivity that was not observed is assumed; 1 for a batch,
      or for a tree that is fixed beforehand
    """

    join: JoinQuery
    goal: Goal | None = None
    sizes: Mapping[str, int] | None = None
    space: Space = field(default_factory=lambda: Space(placing="pushed"))
    stores_trees: bool = False
    patience: int = PATIENCE
    wants_keys: bool = field(default=False, init=False)
    chosen: ChosenTree | None = field(default=None, init=False)
    orders: Orders = field(init=False)
    assumptions: list[str] = field(default_factory=list, init=False)
    history: list[str] = field(default_factory=list, init=False)
    results: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.goal = self.goal or default_goal(self.join)
        self.statistics = RateStatistics(self.join, dict(self.sizes or {}))
        if isinstance(self.goal, Last) and (endless := self._endless()):
            raise QueryError(
                f"there is no last result: {', '.join(endless)} has no end. Ask for the first "
                "results, goal=querymesh.policies.First(1000), or for the most by a "
                "time, goal=querymesh.policies.MostBy(60)"
            )
        self.orders = written_orders(self.join)
        self.problem = ""
        self._seen: dict[str, float] = {}

    def _endless(self) -> list[str]:
        return [alias for alias in self.join.aliases if alias not in (self.sizes or {})]

    def observe(self, shown: Round) -> Decision | None:
        """Learn from a round; the orders for the next ones, or None if they stay as they are."""
        self.statistics.observe(shown)
        self.results += shown.results
        if self.statistics.unknown and self.statistics.rounds < self.patience:
            return None
        if isinstance(self.goal, First) and self.chosen and self.results >= self.goal.results:
            return None
        now = self._figures()
        if self.chosen is not None and not has_moved(self._seen, now):
            return None
        self._seen = now
        try:
            found = self.choose(shown.number)
        except (QueryError, UnsupportedError) as problem:
            self.problem = str(problem)
            return None
        self.problem = ""
        return self._decided(found, shown.number)

    def choose(self, number: int = 0) -> ChosenTree:
        """The best tree by what is known now; an error if the goal cannot be reached."""
        query, self.assumptions = self.statistics.query(self.stores_trees)
        return chosen_for(query, self._goal, self.space, number)

    @property
    def _goal(self) -> Goal:
        assert self.goal is not None
        return self.goal

    def _figures(self) -> dict[str, float]:
        """The estimates whose moves make the planner look at all trees again, by name."""
        query, _ = self.statistics.query(self.stores_trees)
        figures = {f"rate of {each.name}": each.rows_a_second for each in query.streams}
        figures |= {f"{p.left} ⋈ {p.right}": p.selectivity for p in query.predicates}
        figures |= {
            f"σ of {step.stream}": getattr(step, "selectivity", 1.0) for step in query.steps
        }
        return figures | {f"cost of {step.stream}": step.cost_s for step in query.steps}

    def _decided(self, found: ChosenTree, number: int) -> Decision | None:
        running = self.chosen
        reason = f"round {number}: {choice_text(found, self._goal)}"
        if running is not None:
            shape = join_shape(running.tree)
            now = judged(shape, found, self._goal)
            if shape == join_shape(found.tree) or not is_better(found, now, self._goal):
                self.chosen = replace(now, way=running.way, round=running.round)
                return None
            reason += f"; {tree_text(running.tree)} would do {_value(now, self._goal)}"
        self.chosen = found
        orders = allowed_orders(self.join, found)
        self.history.append(reason)
        if orders == self.orders and running is not None:
            return None
        self.orders = orders
        return Decision(orders, reason)


def default_goal(join: JoinQuery) -> Goal:
    """The most results by a minute, or by twice the longest window: then windows have filled."""
    return MostBy(max(60.0, 2 * join.longest_us / 1e6))


def chosen_for(query: RateQuery, goal: Goal, space: Space, number: int = 0) -> ChosenTree:
    """The plan for a goal, by what is known of a query; an error if none reaches it."""
    among = count_plans(query, space)
    tree, way = _tree_for(query, goal, space, among)
    value = achieved(tree, goal)
    if value == math.inf:
        raise QueryError(unreachable(tree, goal))
    return ChosenTree(tree, query, value, *_load(tree, goal, value), way, among, number)


def _tree_for(query: RateQuery, goal: Goal, space: Space, among: int) -> tuple[PlanTree, str]:
    """All plans integrated if there are few, else by the heuristic for the goal.

    Local time minimisation looks at every plan. Where there are too many, the plan of the highest
    rate is taken, at about the time at which the goal is reached.
    """
    if among <= EXACT_PLANS:
        return choose(query, goal, "exact", space).tree, "exact"
    if (tree := on_time_plan(query, goal, space)) is not None:
        return tree, "least work"
    if not isinstance(goal, MostBy):
        if among <= LISTED_PLANS:
            return choose(query, goal, "local time", space).tree, "local time"
        start = best_plan(query, lambda tree: -load(tree, _START_S).total, space)
        goal = MostBy(min(achieved(start, goal), _FOREVER_S))
    return choose(query, goal, "local rate", space).tree, "local rate"


def _load(tree: PlanTree, goal: Goal, value: float) -> tuple[float, bool]:
    by_s = period_s(goal, min(value, 1e9))
    return load(tree, by_s).joins, is_on_time(tree, by_s)


def judged(shape: JoinShape, like: ChosenTree, goal: Goal) -> ChosenTree:
    """A tree of this shape, valued by the figures that another tree was chosen by."""
    tree = plan_of(like.query, shape)
    try:
        value = achieved(tree, goal)
    except QueryError:
        value = 0.0 if isinstance(goal, MostBy) else math.inf
    work, on_time = _load(tree, goal, value)
    return replace(like, tree=tree, value=value, load=work, on_time=on_time)


def allowed_orders(join: JoinQuery, chosen: ChosenTree) -> dict[str, tuple[str, ...]]:
    """The orders that a tree means, as far as each view's precedence allows them."""
    wanted = tree_orders(chosen.tree, chosen.query, {*join.aliases})
    return {
        alias: order_of(join.views[alias], route_for(join.views[alias], order))
        for alias, order in wanted.items()
    }


def tree_text(tree: PlanTree) -> str:
    """A tree as text, without the conditions on single streams: they come first in every tree."""
    shape = join_shape(tree)
    return plan_text(tree) if isinstance(shape, str) else shape_text(shape)


def choice_text(found: ChosenTree, goal: Goal) -> str:
    """A tree and what it is expected to do, in one line."""
    return f"{tree_text(found.tree)} does {_value(found, goal)}"


def _value(found: ChosenTree, goal: Goal) -> str:
    load = f"joining {found.load:.3g} s a second"
    match goal:
        case MostBy(time_s):
            return f"{found.value:,.4g} results by {time_s:g} s, {load}"
        case First(results):
            return f"the first {results:g} results in {found.value:,.4g} s, {load}"
        case Last():
            return f"all results in {found.value:,.4g} s, {load}"


def is_better(found: ChosenTree, running: ChosenTree, goal: Goal) -> bool:
    """Whether a plan is worth a change: it does better by `LEAST_GAIN`, or as well with less work.

    Where neither is ever late, both do the same, and only the work counts.
    """
    if running.value == math.inf:
        return True
    gain = (found.value - running.value) * (1 if isinstance(goal, MostBy) else -1)
    equal = LEAST_GAIN * abs(running.value)
    works_less = found.load < (1 - LEAST_GAIN) * running.load
    if found.on_time and running.on_time:
        return works_less
    return gain > equal or (gain >= -equal and works_less)


def has_moved(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    """Whether an estimate differs by more than the part `MOVED` from what it was."""
    if before.keys() != now.keys():
        return True
    return any(abs(now[name] - was) > MOVED * max(abs(was), 1e-12) for name, was in before.items())
