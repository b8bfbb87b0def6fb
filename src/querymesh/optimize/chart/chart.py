"""Charts of plans, OM § 4.4: which plan is best where, worked out before it is asked.

A chart divides the space of what changes (a selectivity and an arrival rate, or the arrival rates
of l streams) into regions and holds one plan for each, the best at its centroid::

    λ   . . . . . . . .
        2 2 2 2 1 1 1 1      k = 8 partitions in each of 2 dimensions: 64 regions.
        2 2 2 1 1 1 1 1      Between rounds the estimates move to another region, and the
        2 2 1 1 1 1 0 0      plan switches only where that one holds another plan.
        . . . . . . . .  sel

How space is divided is a chart's own affair: `regular` has equal regions, as the paper does,
`grid` regions that are split only where plans differ. A `ChartReader` follows the estimates
through a chart and counts moves, switches and hits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.errors import OptionError, QueryMeshError, TrainingError

Costing = Callable[[Floats], Floats]
"""From points, one a row, to what each plan costs there, one a column."""

MOST_REGIONS = 1 << 16
"""Holds k = 40 in three dimensions."""

TOLERANCE = 1e-12
"""Costs that differ by this part of themselves, or less, are equal."""


@dataclass(frozen=True, slots=True)
class ChartDimension:
    """A figure that changes, and the values between which it does.

    A value beyond them counts as the nearer one.
    """

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise QueryMeshError(
                f"dimension {self.name} of a chart must go from a finite number to a greater one, "
                f"not from {self.low} to {self.high}"
            )


class Region(NamedTuple):
    """A region's name within its chart, and its plan."""

    key: tuple[int, ...]
    plan: int


class PlanChart(Protocol):
    """What all charts can do. `costed` counts the points at which plans were costed."""

    dimensions: tuple[ChartDimension, ...]
    costed: int

    @property
    def regions(self) -> int:
        """How many regions the chart has."""

    @property
    def held(self) -> int:
        """How many of its regions are held in memory."""

    @property
    def memory_bytes(self) -> int:
        """The bytes that the regions in memory take."""

    def look_up(self, point: Sequence[float]) -> Region:
        """The region that holds a point."""

    def centroid(self, region: Region) -> Floats:
        """The middle of a region: the point at which its plan is the best."""

    def plans_at(self, points: Floats) -> Ints:
        """The plans of the regions that hold the points, one a row; nothing is remembered."""


def best_plans(costs: Floats) -> Ints:
    """The plan of least cost in each row, the first of equals."""
    least = costs.min(axis=1, keepdims=True)
    return np.asarray(np.argmax(costs <= least + np.abs(least) * TOLERANCE, axis=1), np.int64)


def checked_point(dimensions: Sequence[ChartDimension], point: Sequence[float]) -> Floats:
    """The point as an array; a coordinate that is missing or unknown is an error."""
    if len(point) != len(dimensions):
        names = ", ".join(dimension.name for dimension in dimensions)
        raise TrainingError(f"this chart has the dimensions {names}, the point has {len(point)}")
    place = np.asarray(point, np.float64)
    for dimension, value in zip(dimensions, place, strict=True):
        if math.isnan(value):
            raise TrainingError(
                f"{dimension.name} is not known: observe a round, or assume a value"
            )
    return place


def checked_count(what: str, count: int, least: int = 1) -> int:
    """The count, if it is a whole number and not below the least; an `OptionError` otherwise."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < least:
        raise OptionError(f"{what} must be a whole number from {least} on, not {count!r}")
    return int(count)


def fidelity(chart: PlanChart, costing: Costing, points: Floats) -> float:
    """The share of points whose looked-up plan is a best one there (§ 5.1)."""
    costs = costing(points)
    chosen = np.take_along_axis(costs, chart.plans_at(points)[:, None], axis=1)
    least = costs.min(axis=1, keepdims=True)
    return float((chosen <= least + np.abs(least) * TOLERANCE).mean())


class RegionChoice(NamedTuple):
    """The region chosen for a round.

    `moved`, `switched`: whether the region, or its plan, is another than a round before. `outside`:
    whether the estimates lay beyond the chart.
    """

    region: Region
    moved: bool
    switched: bool
    outside: bool

    @property
    def plan(self) -> int:
        """The plan's number."""
        return self.region.plan


class ChartReader:
    """A chart in use, with the counts of § 5.1.

    `moves`: the estimates crossed into another region. `switches`: into another plan. `outside`:
    they lay beyond the chart, and the nearest region stood in. `hits` of `judged`: the plan was a
    best one for what was observed afterwards.
    """

    def __init__(self, chart: PlanChart) -> None:
        self.chart = chart
        self.rounds = self.moves = self.switches = self.outside = self.judged = self.hits = 0
        self._last: Region | None = None

    def choose(self, point: Sequence[float]) -> RegionChoice:
        """The plan for the next round, from what is estimated for it (Algorithm 2, lines 1-3)."""
        region, last = self.chart.look_up(point), self._last
        moved = last is not None and region.key != last.key
        switched = last is not None and region.plan != last.plan
        outside = any(
            not dimension.low <= value <= dimension.high
            for dimension, value in zip(self.chart.dimensions, point, strict=True)
        )
        self._last = region
        self.rounds += 1
        self.moves += moved
        self.switches += switched
        self.outside += outside
        return RegionChoice(region, moved, switched, outside)

    def judge(self, costs: Floats) -> bool:
        """Whether the plan last chosen was a hit, given what each plan costs as it came to be."""
        if self._last is None:
            raise TrainingError("no plan has been chosen yet: choose one, then judge it")
        least = float(costs.min())
        hit = bool(costs[self._last.plan] <= least + abs(least) * TOLERANCE)
        self.judged += 1
        self.hits += hit
        return hit

    @property
    def fidelity(self) -> float:
        """The share of judged rounds that were hits; NaN before the first."""
        return self.hits / self.judged if self.judged else math.nan
