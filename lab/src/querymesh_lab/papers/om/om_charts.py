"""OM's Figures 3 and 4 as SVG files, and ours on charts and estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence

from querymesh.report.charts.chart_svg import Visit, regions_svg
from querymesh.report.text.chart_text import stream_plan_text
from querymesh_lab.drawing import lines
from querymesh_lab.papers.om.grid_charts import MeasuredChart
from querymesh_lab.papers.om.round_runs import RoundsFollowed
from querymesh_lab.papers.om.single_figures import FidelityPoint

FIDELITY = "fidelity, %"
DRAWN = 100
"""Rounds of a path that is drawn: with all 600 the regions are not to be seen."""

RIVALS = {"fidelity": "OM", "RAND": "RAND", "RATE": "RATE"}


def by_time(found: Sequence[RoundsFollowed]) -> dict[str, str]:
    """Figure 3a, a line for each stretch."""
    values = [
        {"seconds": 100 * (at + 1), "stretch": f"stretch {number}", "fidelity": value}
        for number, each in enumerate(found, 1)
        if number <= 5
        for at, value in enumerate(each.by_hundred())
    ]
    titles = ("seconds", FIDELITY)
    return {"figure-3a": lines(values, "seconds", "stretch", "fidelity", titles, points=True)}


def sel_lambda(followed: RoundsFollowed) -> dict[str, str]:
    """Q1's sel-λ chart, its regions by plan, with the path that the estimates took at first."""
    assert followed.chart is not None
    chosen = followed.chosen[:DRAWN].tolist()
    path = [
        Visit(int(number), point.tolist(), at > 0 and chosen[at] != chosen[at - 1])
        for at, (number, point) in enumerate(
            zip(followed.numbers[:DRAWN], followed.estimated, strict=False)
        )
    ]
    head = f"Q1, estimates of {len(path)} rounds; large where it switches"
    drawn = regions_svg(followed.chart, path[-1].point, path, stream_plan_text, head)
    return {"figure-3a-chart": drawn}


def by_filter(figure: str, points: Sequence[FidelityPoint]) -> dict[str, str]:
    """Figures 3b and 4a, a drawing for each filter."""
    drawn = {}
    for series, title in (
        ("scaled", "coefficient of variation"),
        ("smoothed", "averages over so many seconds"),
    ):
        values = [
            {"at": point.at, "rival": name, "fidelity": point.details[known]}
            for point in points
            if point.series == series
            for known, name in RIVALS.items()
        ]
        drawn[f"figure-{figure}-{series}"] = lines(
            values, "at", "rival", "fidelity", (title, FIDELITY), points=True
        )
    return drawn


def by_partitions(figure: str, points: Sequence[FidelityPoint]) -> dict[str, str]:
    """Figures 3c and 4b; with the chart read at what came, and no chart at all."""
    values = []
    for point in points:
        names = {"fidelity": point.series}
        if figure == "3c":
            names |= {"without forecasts": "if forecasts were right", "without a chart": "no chart"}
        values += [
            {"k": point.at, "of": name, "fidelity": point.details[known]}
            for known, name in names.items()
        ]
    titles = ("k, partitions of a dimension", FIDELITY)
    return {f"figure-{figure}": lines(values, "k", "of", "fidelity", titles, points=True)}


def drift(points: Sequence[FidelityPoint]) -> dict[str, str]:
    """Fidelity by how fast the selectivity changes, a drawing for each way of changing."""
    drawn = {}
    for series in dict.fromkeys(point.series for point in points):
        mine = [point for point in points if point.series == series]
        values = [
            {"at": point.at, "estimate": name, "fidelity": point.details[known]}
            for point in mine
            for known, name in (
                ("fidelity", "d = 10, a = 0.5"),
                ("plain mean", "d = 10, a = 0"),
                ("last round", "d = 1"),
            )
        ]
        name = f"drift-{series.split(',')[0]}"
        drawn[name] = lines(values, "at", "estimate", "fidelity", (series, FIDELITY), points=True)
    return drawn


def grid(found: Sequence[MeasuredChart]) -> dict[str, str]:
    """Fidelity by regions, on a scale where ten times as many are one step."""
    drawn = {}
    for query in dict.fromkeys(each.query for each in found):
        values = [
            {"regions": math.log10(each.regions),
             "kind": each.kind, "fidelity": each.fidelity}
            for each in found
            if each.query == query
        ]  # fmt: skip
        name = f"grid-{query.lower().replace(' ', '-')}"
        titles = ("regions, powers of ten", FIDELITY)
        drawn[name] = lines(values, "regions", "kind", "fidelity", titles, points=True)
    return drawn
