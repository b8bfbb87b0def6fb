"""Policy `rate`: join orders by what they have given out by when (RBO)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from querymesh.errors import OptionError, QueryError
from querymesh.optimize.rate.goals import First, Goal, Last, MostBy, goal_from
from querymesh.optimize.rate.rate_planner import RatePlanner
from querymesh.policies.planned import Planned
from querymesh.policies.policy import Job
from querymesh.policies.sampled_round import sampled_round
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery


@dataclass(frozen=True, kw_only=True)
class Rate(Planned):
    """Plans joins of windowed streams by their output rates (RBO § 4).

    Options, beside `sample_rows`, `budget` and `seed` of all planning policies:

    - `goal`: what a plan is chosen for: `MostBy(seconds)`, `First(results)` or `Last()`. Unless
      told, the most results by a minute, or by twice the longest window if that is later

    With engine="native" it runs as a tree of Spark's own joins, which stays as it is.
    """

    name: ClassVar[str] = "rate"
    own_options: ClassVar[tuple[str, ...]] = ("goal",)

    goal: Goal | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.goal is not None and not isinstance(self.goal, MostBy | First | Last):
            raise OptionError(
                f"goal is querymesh.policies.MostBy(60), First(1000) or Last(), not {self.goal!r}"
            )

    @classmethod
    def read_own(cls, own: Mapping[str, str]) -> dict[str, Any]:
        """The goal, from text such as 'most by 60s'."""
        return {name: goal_from(text) for name, text in own.items()}

    def check(self, query: BoundQuery | JoinQuery, engine: str) -> None:
        """Its trees can run as Spark's own joins too."""
        if not (isinstance(query, JoinQuery) and engine == "native"):
            super().check(query, engine)

    def planner(
        self, join: JoinQuery, *, at_once: bool, sizes: dict[str, int] | None
    ) -> RatePlanner:
        """A planner for the goal; of streams that end it plans at the first round it sees."""
        if sizes is not None:
            return RatePlanner(join, self.goal, sizes, patience=1)
        return RatePlanner(join, self.goal)

    def tree_planner(self, job: Job) -> RatePlanner:
        """A planner with a tree of Spark's own joins chosen, which store what they hand on.

        It goes by the sample if there is one, else by the batch itself.
        """
        assert job.join is not None
        assert job.streams is not None
        sizes = None if job.streaming else job.streams.stream_sizes()
        planner = RatePlanner(job.join, self.goal, sizes, stores_trees=True, patience=1)
        sampled = job.streams.sampled_join(self.training)
        shown = sampled_round(sampled, self.training)
        storing_s = max(0.0, sampled.storing_s() - sum(shown.own_seconds.values()))
        planner.observe(replace(shown, storing_seconds=storing_s))
        if planner.problem:
            raise QueryError(planner.problem)
        return planner
