"""The queries of OM § 5, run round by round by their charts (Algorithm 2), and what they are
compared with.

    RAND         any of the candidate plans, each round: its fidelity is 1 / plans, but for ties
    RATE         the plan that is best for the means of the first rounds, for ever
    hindsight    ours: the one plan that was best most often, for ever; known afterwards only
    no chart     ours: the plan that is best at the estimates themselves, a chart of endless k
    no forecast  ours: the chart read at what then came, as if estimates were never wrong

The last two say which part of the misses is whose. A miss next to a border costs next to nothing,
so beside fidelity there is the *excess*: how many more utils the plans taken cost than the best.
Rounds without a result cost endlessly many utils whatever the plan, and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.cost.utility import Statistics, plan_costs, utility
from querymesh.errors import QueryMeshError
from querymesh.optimize.chart.candidates import (
    QueryShape,
    StreamJoin,
    StreamProjection,
    StreamSelection,
    join_plan,
)
from querymesh.optimize.chart.chart import TOLERANCE, PlanChart, best_plans
from querymesh.optimize.chart.query_charts import ChartedQuery, ChosenPlan
from querymesh.optimize.chart.regular import DEFAULT_PARTITIONS
from querymesh.optimize.chart.scheduling import QueryRounds
from querymesh.stats.histogram import JoinSelectivity
from querymesh.stats.round_estimates import DEFAULT_DECAY, DEFAULT_ROUNDS, RoundEstimates
from querymesh_lab.papers.om.om_data import WINDOW_S, HostCourse

EQUALITY_TPR, PROJECTION_TPR, JOIN_TPR = 400e3, 500e3, 3e3
"""The processing rates of § 5.1, in tuples a second."""

KEEPS = 2 / 6
"""Q1 selects two of the six columns of a DEC-PKT trace: time, hosts, ports, bytes."""

SINGLE = "TCP"
STREAMS = ("TCP", "UDP", "SF")


def q1(
    course: HostCourse, k: int = DEFAULT_PARTITIONS, keeps: float = KEEPS, adaptive: bool = False
) -> ChartedQuery:
    """Table 2's Q1: SELECT src_host, dest_host FROM TCP WHERE dest_host = 2."""
    shape = QueryShape(
        (SINGLE,),
        selections=(StreamSelection("dest_host = 2", SINGLE, EQUALITY_TPR),),
        projections=(StreamProjection(SINGLE, PROJECTION_TPR, keeps),),
    )
    return ChartedQuery(shape, WINDOW_S, _ranges(course), {}, k=k, adaptive=adaptive)


def q2(course: HostCourse, k: int = DEFAULT_PARTITIONS, adaptive: bool = False) -> ChartedQuery:
    """Table 2's Q2: equal hosts in all streams; what follows from two equalities is the third.

    Join selectivities are those of the course as a whole.
    """
    streams = tuple(course.hosts)
    joins = tuple(
        StreamJoin(f"{one} = {other}", (one, other), JOIN_TPR, "host")
        for one, other in combinations(streams, 2)
    )
    selectivities = {
        join.name: float(course.join_selectivities(*join.streams).mean()) for join in joins
    }
    shape = QueryShape(streams, joins=joins)
    return ChartedQuery(shape, WINDOW_S, _ranges(course), selectivities, k=k, adaptive=adaptive)


def _ranges(course: HostCourse) -> dict[str, tuple[float, float]]:
    """λ_min and λ_max of Algorithm 1, as if known beforehand."""
    seen = {stream: course.rates(stream) for stream in course.hosts}
    return {name: (float(some.min()), float(some.max()) + 1.0) for name, some in seen.items()}


@dataclass(frozen=True)
class RoundsFollowed:
    """A query's rounds: a row each, `numbers` says which.

    `costs` are those of each plan at what the round has shown, `estimated` and `shown` the points
    of the chart that was foretold and that came. `chart` is None where it was built anew on the
    way: then there is no one chart to ask.
    """

    counted: QueryRounds
    numbers: Ints
    chosen: Ints
    costs: Floats
    estimated: Floats
    shown: Floats
    chart: PlanChart | None
    costing: Callable[[Floats], Floats]

    @cached_property
    def hits(self) -> Floats:
        """1 where the plan taken was a best one."""
        return self._hits(self.chosen)

    @property
    def fidelity(self) -> float:
        """The share of rounds whose plan was a best one, in percent as all figures here."""
        return 100 * float(self.hits.mean())

    @property
    def random(self) -> float:
        """RAND's fidelity, on average over its choices."""
        return 100 * float(self._best.mean())

    @property
    def rate(self) -> float:
        """RATE's fidelity: the first rounds' means are what it knows."""
        known = self.shown[:DEFAULT_ROUNDS].mean(axis=0, keepdims=True)
        plan = int(best_plans(self.costing(known))[0])
        return 100 * float(self._best[:, plan].mean())

    @property
    def hindsight(self) -> float:
        """The fidelity of the one plan that was best most often."""
        return 100 * float(self._best.mean(axis=0).max())

    @property
    def without_chart(self) -> float:
        """The fidelity if all plans were costed at the estimates."""
        return 100 * float(self._hits(best_plans(self.costing(self.estimated))).mean())

    @property
    def without_forecast(self) -> float:
        """The fidelity if the chart were read at what then came."""
        if self.chart is None:
            raise QueryMeshError("the chart was built anew on the way: there is no one to read")
        return 100 * float(self._hits(self.chart.plans_at(self.shown)).mean())

    @property
    def excess(self) -> float:
        """How many more utils the plans taken cost than the best, in percent."""
        taken = np.take_along_axis(self.costs, self.chosen[:, None], axis=1)
        return 100 * float(taken.sum() / self.costs.min(axis=1).sum() - 1)

    @property
    def random_excess(self) -> float:
        """How many more utils RAND's plans cost than the best, in percent."""
        return 100 * float(self.costs.mean(axis=1).sum() / self.costs.min(axis=1).sum() - 1)

    def by_hundred(self) -> list[float]:
        """Fidelity by 100 rounds, as Figure 3a has it."""
        of = self.numbers // 100
        return [100 * float(self.hits[of == each].mean()) for each in np.unique(of)]

    def details(self) -> dict[str, float]:
        """All figures by name."""
        counted = self.counted
        found = {
            "fidelity": self.fidelity,
            "RAND": self.random,
            "one plan, in hindsight": self.hindsight,
            "excess utils": self.excess,
            "excess utils of RAND": self.random_excess,
            "rounds": counted.rounds,
            "moves": counted.moves,
            "switches": counted.switches,
            "charts built anew": counted.rebuilt,
        }
        if self.chart is not None:
            found["RATE"] = self.rate
            found["without a chart"] = self.without_chart
            found["without forecasts"] = self.without_forecast
        return found

    @cached_property
    def _best(self) -> Floats:
        """1 where a plan was a best one, a column a plan."""
        least = self.costs.min(axis=1, keepdims=True)
        best = self.costs <= least + np.abs(least) * TOLERANCE
        return np.asarray(best, np.float64)

    def _hits(self, plans: Ints) -> Floats:
        return np.asarray(np.take_along_axis(self._best, plans[:, None], axis=1)[:, 0], np.float64)


class QueryFollower:
    """One query on its course, a round at a time.

    With `threshold` join selectivities are estimated anew from histograms (§ 4.3) and a plan is
    judged by those that the round had; otherwise they are taken to be constant.
    """

    def __init__(
        self,
        query: ChartedQuery,
        course: HostCourse,
        d: int = DEFAULT_ROUNDS,
        decay: float = DEFAULT_DECAY,
        threshold: float | None = None,
    ) -> None:
        self.course = course
        self.streams = query.shape.streams
        self._rates = {stream: course.rates(stream) for stream in self.streams}
        self._shares = {stream: course.selectivities(stream) for stream in query.selected}
        middle = {stream: sum(query.rates[stream]) / 2 for stream in self.streams}
        shares = dict.fromkeys(query.selected, 0.5)
        self.rounds = QueryRounds(
            query,
            RoundEstimates("arrival rate", middle, d, decay),
            RoundEstimates("selectivity", shares, d, decay),
        )
        self._joins = {
            join.name: JoinSelectivity(threshold, assumed=query.join_selectivities[join.name])
            for join in query.shape.joins
            if threshold is not None
        }
        self._chosen: list[int] = []
        self._estimated: list[list[float]] = []

    def step(self) -> ChosenPlan:
        """One round: choose, run, take in what it has shown."""
        rounds, at = self.rounds, self.rounds.rounds
        rates = {stream: rounds.rates[stream] for stream in self.streams}
        shares = {stream: rounds.selectivities[stream] for stream in self._shares}
        self._estimated.append(self._point(rates, shares))
        chosen = rounds.begin()
        self._chosen.append(
            rounds.query.orders.index(chosen.order) if self._several else chosen.streams[0]
        )
        rounds.end(
            {stream: float(some[at]) for stream, some in self._rates.items()},
            {stream: float(some[at]) for stream, some in self._shares.items()},
        )
        if self._joins:
            self._look_at_joins(at)
        return chosen

    def run(self) -> RoundsFollowed:
        """Run all rounds of the course."""
        for _ in range(self.course.rounds):
            self.step()
        return self.followed()

    def followed(self) -> RoundsFollowed:
        """The rounds so far, with what their plans cost."""
        query = self.rounds.query
        count = len(self._chosen)
        shown = np.array([
            self._point(
                {stream: float(some[at]) for stream, some in self._rates.items()},
                {stream: float(some[at]) for stream, some in self._shares.items()},
            )
            for at in range(count)
        ])  # fmt: skip
        costing = query.join_costs if self._several else _of_stream(query)
        chart = query.join_chart if self._several else query.stream_charts[SINGLE]
        costs = costing(shown)
        if self._joins:
            chart, costs = None, self._as_shown(query)
        some = np.flatnonzero(np.isfinite(costs).all(axis=1))
        chosen, estimated = np.array(self._chosen)[some], np.array(self._estimated)[some]
        return RoundsFollowed(
            self.rounds, some, chosen, costs[some], estimated, shown[some], chart, costing
        )

    @property
    def _several(self) -> bool:
        return len(self.streams) > 1

    def _point(self, rates: Mapping[str, float], shares: Mapping[str, float]) -> list[float]:
        if self._several:
            return self.rounds.query.input_rates(rates, shares)
        return [shares[SINGLE], rates[SINGLE]]

    def _look_at_joins(self, at: int) -> None:
        changed = False
        for join in self.rounds.query.shape.joins:
            one, other = (self.course.hosts[stream][at] for stream in join.streams)
            observed = float(self._observed[join.name][at])
            changed |= self._joins[join.name].observe(observed, one, other)
        if changed:
            self.rounds.joins_changed({name: each.estimate for name, each in self._joins.items()})

    @cached_property
    def _observed(self) -> dict[str, Floats]:
        joins = self.rounds.query.shape.joins
        return {join.name: self.course.join_selectivities(*join.streams) for join in joins}

    def _as_shown(self, query: ChartedQuery) -> Floats:
        """What each order costs at each round's own join selectivities."""
        known = Statistics(self._rates, self._observed, WINDOW_S)
        orders = (join_plan(query.shape, order) for order in query.orders)
        utils = [utility(plan_costs(plan, known), query.weights) for plan in orders]
        return np.stack(utils, axis=1)[: len(self._chosen)]


def _of_stream(query: ChartedQuery) -> Callable[[Floats], Floats]:
    return lambda points: query.stream_costs(SINGLE, *points.T)


def follow(
    query: ChartedQuery,
    course: HostCourse,
    d: int = DEFAULT_ROUNDS,
    decay: float = DEFAULT_DECAY,
    threshold: float | None = None,
) -> RoundsFollowed:
    """Run a query over its course."""
    return QueryFollower(query, course, d, decay, threshold).run()
