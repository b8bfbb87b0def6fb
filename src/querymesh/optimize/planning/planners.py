"""The policies that plan a running join round by round, each with its planner.

A new one is a module with a `Planner`, a name in `PLANNED` and a line in `planner_for`.
"""

from __future__ import annotations

from dataclasses import dataclass

from querymesh.errors import QueryMeshError, UnsupportedError
from querymesh.optimize.chart.chart_planner import ChartPlanner
from querymesh.optimize.chart.charting import Charting, charting_of
from querymesh.optimize.planning.planner import Planner
from querymesh.optimize.rate.goals import First, Goal, Last, MostBy
from querymesh.optimize.rate.rate_planner import RatePlanner
from querymesh.query.join import JoinQuery

PLANNED = ("rate", "chart")


@dataclass(frozen=True)
class Aim:
    """What the planner of a policy is to aim at, as `querymesh.run` was told.

    `goal` is of policy "rate", `charting` of policy "chart". `sizes` are the rows of streams that
    end.
    """

    goal: Goal | None = None
    charting: Charting | None = None
    sizes: dict[str, int] | None = None


def aim_for(
    policy: str, goal: Goal | None, weights: object = None, charting: Charting | None = None
) -> Aim:
    """What was asked for, if it is of this policy."""
    if goal is not None and not isinstance(goal, MostBy | First | Last):
        raise QueryMeshError(
            f"goal is querymesh.MostBy(60), querymesh.First(1000) or querymesh.Last(), not {goal!r}"
        )
    if goal is not None and policy != "rate":
        raise QueryMeshError(
            f"goal= says what policy 'rate' plans for, and the policy is {policy!r}: give "
            "policy='rate', or leave goal= out"
        )
    return Aim(goal, charting_of(policy, weights, charting))


def planner_for(policy: str, join: JoinQuery, aim: Aim) -> Planner:
    """A fresh planner of a policy for a join."""
    if policy == "rate":
        if aim.sizes is not None:
            return RatePlanner(join, aim.goal, aim.sizes, patience=1)
        return RatePlanner(join, aim.goal)
    if policy == "chart":
        return ChartPlanner(join, aim.charting)
    raise UnsupportedError(f"policy {policy!r} has no planner for joins of windowed streams")
