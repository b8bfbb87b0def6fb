"""Flat pieces of a chart of plans, to be drawn: two dimensions, the others held where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.optimize.chart.chart import ChartDimension, PlanChart

_LOOKED_AT = 9
"""Places in each dimension at which a chart is looked at to find out where plans differ."""


@dataclass(frozen=True)
class Slice:
    """A chart's plans on a grid: `plans[row, column]`, the first row the lowest.

    `held` are the values of all dimensions; those of the two drawn are the point's. `has_point`:
    whether the point lies within this slice rather than in another. `same` is a dimension along
    which all slices that were cut are like this one.
    """

    across: ChartDimension
    up: ChartDimension
    axes: tuple[int, int]
    held: tuple[float, ...]
    plans: Ints
    has_point: bool
    same: str = ""

    def place(self, point: Sequence[float]) -> tuple[float, float]:
        """Where a point is drawn: parts of the way across and up, at the edge if it is beyond."""
        return (
            _part(self.across, point[self.axes[0]]),
            _part(self.up, point[self.axes[1]]),
        )


def _part(dimension: ChartDimension, value: float) -> float:
    part = (value - dimension.low) / (dimension.high - dimension.low)
    return float(min(max(part, 0.0), 1.0))


def slices_of(
    chart: PlanChart, point: Sequence[float], columns: int, rows: int, most: int = 3
) -> list[Slice]:
    """A chart in slices: all of it, if it has two dimensions.

    Of more, the two along which plans differ most around the point are drawn. Of three, the third
    is cut `most` times, and once more precisely: the slice nearest to the point goes through it;
    where all cuts are alike, that one is enough.
    Of still more dimensions there is the slice through the point alone.
    """
    dimensions = chart.dimensions
    held = tuple(
        min(max(value, each.low), each.high) for value, each in zip(point, dimensions, strict=True)
    )
    if len(dimensions) == 1:
        axes = (0, 0)
    else:
        differing = sorted(range(len(held)), key=lambda axis: -_changes(chart, held, axis))
        across, up = sorted(differing[:2])
        axes = (across, up)
    if len(dimensions) != 3 or most < 2:
        return [_slice(chart, axes, held, columns, rows, True)]
    third = next(axis for axis in range(3) if axis not in axes)
    low, high = dimensions[third].low, dimensions[third].high
    cuts = [low + (cut + 0.5) / most * (high - low) for cut in range(most)]
    nearest = min(range(most), key=lambda cut: abs(cuts[cut] - held[third]))
    drawn = []
    for cut, value in enumerate(cuts):
        at = list(held)
        at[third] = held[third] if cut == nearest else value
        drawn.append(_slice(chart, axes, tuple(at), columns, rows, cut == nearest))
    here = drawn[nearest]
    if all(np.array_equal(each.plans, here.plans) for each in drawn):
        return [replace(here, same=dimensions[third].name)]
    return drawn


def _changes(chart: PlanChart, held: tuple[float, ...], axis: int) -> int:
    """How often the plan changes along a dimension, on lines around the point."""
    dimensions = chart.dimensions
    rng = np.random.default_rng(0)
    low = np.array([each.low for each in dimensions])
    high = np.array([each.high for each in dimensions])
    starts = np.vstack((held, low + rng.random((7, len(low))) * (high - low)))
    lines = np.repeat(starts, _LOOKED_AT, axis=0)
    lines[:, axis] = np.tile(np.linspace(low[axis], high[axis], _LOOKED_AT), len(starts))
    plans = chart.plans_at(lines).reshape(len(starts), _LOOKED_AT)
    return int((np.diff(plans, axis=1) != 0).sum())


def _slice(
    chart: PlanChart,
    axes: tuple[int, int],
    held: tuple[float, ...],
    columns: int,
    rows: int,
    has_point: bool,
) -> Slice:
    across, up = (chart.dimensions[axis] for axis in axes)
    rows = 1 if axes[0] == axes[1] else rows
    points = np.tile(np.asarray(held, np.float64), (rows * columns, 1))
    if rows > 1:
        points[:, axes[1]] = np.repeat(_middles(up, rows), columns)
    points[:, axes[0]] = np.tile(_middles(across, columns), rows)
    plans = chart.plans_at(points).reshape(rows, columns)
    return Slice(across, up, axes, held, plans, has_point)


def _middles(dimension: ChartDimension, count: int) -> Floats:
    size = dimension.high - dimension.low
    return np.asarray(dimension.low + (np.arange(count) + 0.5) / count * size, np.float64)


def plan_shares(chart: PlanChart, count: int = 4096) -> dict[int, float]:
    """About which share of a chart each plan has, the largest first."""
    rng = np.random.default_rng(0)
    low = np.array([each.low for each in chart.dimensions])
    high = np.array([each.high for each in chart.dimensions])
    plans = chart.plans_at(low + rng.random((count, len(low))) * (high - low))
    found, counts = np.unique(plans, return_counts=True)
    ranked = sorted(zip(found.tolist(), counts.tolist(), strict=True), key=lambda each: -each[1])
    return {int(plan): seen / count for plan, seen in ranked}
