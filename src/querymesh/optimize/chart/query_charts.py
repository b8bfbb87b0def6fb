"""The charts of one query, OM § 4.4: built once, before it runs.

    sel-λ chart of each stream   selectivity of its selections, arrival rate    σ → π or π → σ
    λ-λ chart of the joins       rates at which streams come to the joins       the join order

A stream comes to the joins as its selection lets it through, at sel · λ. By that rate, rather than
by λ, the λ-λ chart holds whatever becomes of the selectivities. Those of the joins are taken to be
constant (§ 4.4.2): when they are estimated anew, `with_join_selectivities` has the λ-λ chart built
again, and that alone.

Choosing by stream and for the joins apart gives the best whole plan by § 4.1: what a stream's order
of σ and π changes is its own memory only. Where there is one candidate there is no chart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from querymesh.arrays import Floats
from querymesh.cost.plan_tree import PlanTree, Project, Source
from querymesh.cost.rates import cost_at
from querymesh.cost.utility import (
    DEFAULT_WEIGHTS,
    Costs,
    Statistics,
    Value,
    Weights,
    plan_costs,
    utility,
)
from querymesh.errors import TrainingError, did_you_mean
from querymesh.optimize.chart.candidates import (
    Order,
    QueryShape,
    join_plan,
    stream_plans,
    whole_plan,
)
from querymesh.optimize.chart.chart import (
    MOST_REGIONS,
    ChartDimension,
    PlanChart,
    best_plans,
    checked_count,
)
from querymesh.optimize.chart.grid import AdaptiveChart
from querymesh.optimize.chart.left_deep import candidate_orders, spread_points
from querymesh.optimize.chart.regular import DEFAULT_PARTITIONS, regular_chart

Range = tuple[float, float]

_SEARCHED_POINTS = 64
"""Where join orders are searched for, if there are too many to try all."""


class ChosenPlan(NamedTuple):
    """A whole plan by its parts: the order of the streams, and which of its plans each one has."""

    order: Order
    streams: tuple[int, ...]


@dataclass(frozen=True)
class ChartedQuery:
    """A query with all that its charts are built from, and the charts.

    `rates` are the least and greatest arrival rate of each stream, `selectivities` those of its
    selections, 0 to 1 if not given. `k` are the partitions of a dimension; with `adaptive`, of the
    narrowest regions. `model` is § 4.1's `plan_costs`, or another.
    """

    shape: QueryShape
    window_s: float
    rates: Mapping[str, Range]
    join_selectivities: Mapping[str, float]
    selectivities: Mapping[str, Range] | None = None
    weights: Weights = DEFAULT_WEIGHTS
    k: int = DEFAULT_PARTITIONS
    adaptive: bool = False
    most_regions: int = MOST_REGIONS
    model: Callable[[PlanTree, Statistics], Costs] = plan_costs

    def __post_init__(self) -> None:
        checked_count("k, the partitions of a dimension,", self.k)
        for stream in self.shape.streams:
            if stream not in self.rates:
                raise TrainingError(
                    f"between which arrival rates stream {stream} moves is not known: give "
                    f"rates={{{stream!r}: (least, greatest)}} ({did_you_mean(stream, self.rates)})"
                )
        for join in self.shape.joins:
            if join.name not in self.join_selectivities:
                raise TrainingError(
                    f"the selectivity of join {join.name} is not known: estimate it from "
                    f"histograms, or assume one in join_selectivities={{{join.name!r}: ...}}"
                )

    @property
    def selected(self) -> list[str]:
        """The streams that have a selection."""
        with_one = {each.stream for each in self.shape.selections}
        return [stream for stream in self.shape.streams if stream in with_one]

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """The join orders to choose from."""
        if len(self.shape.streams) == 1:
            return (self.shape.streams,)
        ranges = [self._input_range(stream) for stream in self.shape.streams]
        lows, highs = zip(*ranges, strict=True)
        points = spread_points(lows, highs, _SEARCHED_POINTS)
        return candidate_orders(self.shape, lambda order: self._join_costs((order,), points)[:, 0])

    @cached_property
    def stream_charts(self) -> dict[str, PlanChart]:
        """The sel-λ chart of each stream that has two plans."""
        several = [each for each in self.shape.streams if len(stream_plans(self.shape, each)) > 1]
        return {stream: self._stream_chart(stream) for stream in several}

    @cached_property
    def join_chart(self) -> PlanChart | None:
        """The λ-λ chart, if there is an order to choose."""
        if len(self.orders) == 1:
            return None
        dimensions = [
            ChartDimension(f"rate of {stream} at the joins", *self._input_range(stream))
            for stream in self.shape.streams
        ]
        return self._chart(dimensions, lambda points: self._join_costs(self.orders, points))

    def with_join_selectivities(self, join_selectivities: Mapping[str, float]) -> ChartedQuery:
        """The same query with a new λ-λ chart; the streams' charts stay."""
        changed = replace(self, join_selectivities=join_selectivities)
        changed.__dict__["stream_charts"] = self.stream_charts
        return changed

    def stream_costs(self, stream: str, selectivity: Value, rate: Value) -> Floats:
        """What each of a stream's plans costs, in utils: a row a point, a column a plan."""
        names = [each.name for each in self.shape.selections if each.stream == stream]
        # The selectivity observed is that of all its predicates together.
        shares: dict[str, Value] = dict.fromkeys(names, 1.0)
        if names:
            shares[names[0]] = selectivity
        known = Statistics({stream: rate}, shares, self.window_s)
        return self._utils(stream_plans(self.shape, stream), known)

    def join_costs(self, rates: Floats) -> Floats:
        """What each order costs if streams come to the joins at these rates, a column a stream."""
        return self._join_costs(self.orders, rates)

    def best(self, rates: Mapping[str, float], selectivities: Mapping[str, float]) -> ChosenPlan:
        """The best plan at a point itself, by costing all: what a chart saves, and is judged by."""
        of_streams = [
            int(best_plans(self.stream_costs(each, selectivities.get(each, 1.0), rates[each]))[0])
            for each in self.shape.streams
        ]
        at_joins = np.array([self.input_rates(rates, selectivities)])
        order = self.orders[int(best_plans(self.join_costs(at_joins))[0])]
        return ChosenPlan(order, tuple(of_streams))

    def plan(self, chosen: ChosenPlan) -> PlanTree:
        """The plan tree of a chosen order of joins and of each stream."""
        return whole_plan(
            self.shape, chosen.order, dict(zip(self.shape.streams, chosen.streams, strict=True))
        )

    def input_rates(
        self, rates: Mapping[str, float], selectivities: Mapping[str, float]
    ) -> list[float]:
        """sel · λ of each stream, at which it comes to the joins."""
        return [rates[each] * selectivities.get(each, 1.0) for each in self.shape.streams]

    def _join_costs(self, orders: tuple[Order, ...], rates: Floats) -> Floats:
        inputs: dict[str, PlanTree] = {each: Source(each) for each in self.shape.streams}
        for each in self.shape.projections:  # for the width: what they cost is alike in all orders
            cost_s = cost_at("projection", each.tpr)
            inputs[each.stream] = Project(Source(each.stream), cost_s, keeps=each.keeps)
        columns = dict(zip(self.shape.streams, rates.T, strict=True))
        known = Statistics(columns, self.join_selectivities, self.window_s)
        return self._utils([join_plan(self.shape, order, inputs) for order in orders], known)

    def _utils(self, plans: Sequence[PlanTree], known: Statistics) -> Floats:
        utils = [np.atleast_1d(utility(self.model(plan, known), self.weights)) for plan in plans]
        return np.stack(np.broadcast_arrays(*utils), axis=1)

    def _stream_chart(self, stream: str) -> PlanChart:
        dimensions = [
            ChartDimension(f"selectivity of {stream}", *self._selectivities(stream)),
            ChartDimension(f"arrival rate of {stream}", *self.rates[stream]),
        ]
        return self._chart(dimensions, lambda points: self.stream_costs(stream, *points.T))

    def _chart(
        self, dimensions: list[ChartDimension], costing: Callable[[Floats], Floats]
    ) -> PlanChart:
        if self.adaptive:
            return AdaptiveChart(dimensions, costing, self.k, most_regions=self.most_regions)
        return regular_chart(dimensions, costing, self.k, self.most_regions)

    def _selectivities(self, stream: str) -> Range:
        return (self.selectivities or {}).get(stream, (0.0, 1.0))

    def _input_range(self, stream: str) -> Range:
        low, high = self.rates[stream]
        if stream not in self.selected:
            return low, high
        least, most = self._selectivities(stream)
        return low * least, high * most
