"""Beyond the paper: charts split along plan borders (`AdaptiveChart`) against its equal regions.

Fidelity is that of the chart alone, at points all over it: what the estimates are worth is another
matter. Counted are regions, bytes and the points at which all plans had to be costed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Floats
from querymesh.optimize.chart.chart import ChartDimension, Costing, PlanChart, fidelity
from querymesh.optimize.chart.grid import AdaptiveChart
from querymesh.optimize.chart.regular import DenseChart
from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.om.om_data import urnd
from querymesh_lab.papers.om.round_runs import SINGLE, STREAMS, q1, q2

POINTS = 20_000
REGULAR, ADAPTIVE = "equal regions", "split along borders"
FINEST = {1: (8, 16, 32, 64, 128, 256), 3: (8, 16, 32, 64), 4: (8, 16, 32)}
QUICK = {1: (8, 64), 3: (8, 16), 4: (8,)}
"""Partitions of a dimension, by the number of streams."""


@dataclass(frozen=True)
class MeasuredChart:
    """What one chart is worth and what it takes."""

    query: str
    kind: str
    k: int
    fidelity: float
    regions: int
    memory_bytes: int
    costed: int


def measure(bench: Bench) -> list[MeasuredChart]:
    """Charts of Q1 and Q2, and of a join of four streams, by both divisions of space."""
    found = []
    for streams, asked in (QUICK if bench.quick else FINEST).items():
        dimensions, costing = _asked(streams)
        places = np.random.default_rng(0).random((POINTS, len(dimensions)))
        low = np.array([each.low for each in dimensions])
        points = low + places * (np.array([each.high for each in dimensions]) - low)
        name = {1: "Q1", 3: "Q2"}.get(streams, f"join of {streams}")
        for k in asked:
            charts: dict[str, Callable[[], PlanChart]] = {
                REGULAR: lambda: DenseChart(dimensions, k, costing),  # noqa: B023
                ADAPTIVE: lambda: AdaptiveChart(dimensions, costing, k, most_regions=1 << 22),  # noqa: B023
            }
            for kind, build in charts.items():
                found.append(_drawn(name, kind, k, build(), costing, points))
    return found


def _asked(streams: int) -> tuple[tuple[ChartDimension, ...], Costing]:
    """The dimensions of a query's chart and its costs; rates as URND has them."""
    if streams == 1:
        single = q1(urnd((SINGLE,), 50))
        of_stream = single.stream_charts[SINGLE]
        return of_stream.dimensions, lambda points: single.stream_costs(SINGLE, *points.T)
    joined = q2(urnd((*STREAMS, "FTP")[:streams], 50), k=2)
    chart = joined.join_chart
    return (chart.dimensions if chart else ()), joined.join_costs


def _drawn(
    query: str, kind: str, k: int, chart: PlanChart, costing: Costing, points: Floats
) -> MeasuredChart:  # fmt: skip
    right = 100 * fidelity(chart, costing, points)
    return MeasuredChart(query, kind, k, right, chart.regions, chart.memory_bytes, chart.costed)


def results(found: list[MeasuredChart]) -> list[Result]:
    """The finest charts of each query, and what the paper's k = 10 would need."""
    rows = []
    for query in dict.fromkeys(each.query for each in found):
        mine = [each for each in found if each.query == query]
        finest = max(each.k for each in mine)
        regular, split = (
            next(each for each in mine if each.kind == kind and each.k == finest)
            for kind in (REGULAR, ADAPTIVE)
        )
        details = {"charts": [vars(each) for each in mine]}
        for name, times in (
            ("regions", regular.regions / split.regions),
            ("points costed", regular.costed / split.costed),
            ("bytes", regular.memory_bytes / split.memory_bytes),
        ):
            claim = f"{query}, k = {finest}: {name}, {REGULAR} over {ADAPTIVE}"
            rows.append(
                Result(Claim("om", "grid", claim, None, "×", whose="project"),
                       times, None, "", details)
            )  # fmt: skip
        claim = f"{query}, k = {finest}: points of fidelity lost by {ADAPTIVE}"
        rows.append(
            Result(Claim("om", "grid", claim, 1.0, "%", "at most", whose="project"),
                   regular.fidelity - split.fidelity, None, "", details)
        )  # fmt: skip
    return rows
