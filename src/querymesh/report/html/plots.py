"""The plots of the HTML page, drawn by altair and turned into SVG text on this machine.

Text takes the page's colour (`currentColor`) and marks are of middling brightness, so that one
drawing serves the light and the dark page.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any

from querymesh.errors import SetupError
from querymesh.mesh.mesh import Mesh
from querymesh.report.comparison import Comparison, per_row
from querymesh.report.live.progress import BatchProgress
from querymesh.report.text.figures import leaf_name

OWN, SINGLE, THIRD = "#2f8f83", "#d98a3d", "#8a7fc9"
WIDTH, HEIGHT = 420, 220


@functools.cache
def altair_and_converter() -> tuple[ModuleType, ModuleType]:
    """altair and the converter to SVG; SetupError with the remedy where the extra is missing."""
    try:
        import altair
        import vl_convert
    except ImportError as missing:
        raise SetupError(
            f"plots need {missing.name}, which is not installed: "
            "pip install 'querymesh[report]', or ask for text only"
        ) from missing
    return altair, vl_convert


def svg(chart: Any) -> str:
    """A chart as SVG text, in colours that suit a light and a dark page."""
    _, vl_convert = altair_and_converter()
    quiet = {"labelColor": "currentColor", "titleColor": "currentColor"}
    chart = (
        chart.configure(background="transparent", font="sans-serif")
        .configure_view(stroke=None)
        .configure_axis(
            **quiet, gridColor="#8a94a3", gridOpacity=0.25, domainOpacity=0.4, tickOpacity=0.4
        )
        .configure_legend(**quiet, orient="bottom", title=None)
    )
    return str(vl_convert.vegalite_to_svg(chart.to_json(validate=False)))


def leaf_costs(mesh: Mesh) -> str:
    """What each kind of tuple costs on its own route, and on the best single route."""
    alt, _ = altair_and_converter()
    own, single = "own route", "best single route"
    values = [
        {"leaf": leaf_name(leaf), "route": name, "us": us}
        for leaf, stats in enumerate(mesh.leaves)
        for name, us in ((own, stats.route_us), (single, stats.single_us))
    ]
    chart = (
        alt.Chart(alt.Data(values=values), width=WIDTH, height=HEIGHT)
        .mark_bar(cornerRadiusEnd=3)
        .encode(
            x=alt.X("leaf:N", title="leaf", sort=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("route:N", sort=[own, single]),
            y=alt.Y("us:Q", title="µs a row"),
            color=_colours(alt, [own, single]),
        )
    )
    return svg(chart)


def operators(mesh: Mesh) -> str:
    """Each operator by what it costs and what it lets through: cheap and strict is lower left."""
    alt, _ = altair_and_converter()
    values = [
        {"index": str(k), "us": op.cost_us, "passes": op.pass_rate}
        for k, op in enumerate(mesh.operators, 1)
    ]
    base = alt.Chart(alt.Data(values=values), width=WIDTH, height=HEIGHT).encode(
        x=alt.X("us:Q", title="µs an evaluation", scale=alt.Scale(type="symlog", constant=1)),
        y=alt.Y("passes:Q", title="rows out per row in", scale=alt.Scale(zero=True)),
    )
    numbers = base.mark_text(dy=-14, fontWeight="bold", color="currentColor")
    points = base.mark_circle(size=160, color=OWN, opacity=0.9)
    return svg(points + numbers.encode(text="index:N"))


def evaluations(comparison: Comparison) -> str:
    """Evaluations a row by contender, where they are known."""
    return _by_contender(
        [(c.name, per_row(c.evaluations, comparison.rows)) for c in comparison.contenders],
        f"evaluations of {comparison.evaluations_of}, a row",
    )


def relative_times(comparison: Comparison) -> str:
    """Time relative to the first contender, with the first against itself as the control."""
    ratios = [(c.name, comparison.ratio(c)) for c in comparison.contenders]
    control = (f"{comparison.first.name}, again", comparison.control)
    return _by_contender([ratios[0], control, *ratios[1:]], "time, as a multiple of the first")


def _by_contender(figures: Sequence[tuple[str, float | None]], title: str) -> str:
    alt, _ = altair_and_converter()
    values = [{"name": name, "figure": figure} for name, figure in figures if figure is not None]
    base = alt.Chart(alt.Data(values=values), width=WIDTH, height=46 * len(values)).encode(
        y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=220, minExtent=120)),
        x=alt.X("figure:Q", title=title),
    )
    bars = base.mark_bar(cornerRadiusEnd=3).encode(
        color=alt.Color(
            "name:N",
            legend=None,
            scale=alt.Scale(
                domain=[value["name"] for value in values],
                range=[OWN] + [SINGLE] * (len(values) - 1),
            ),
        )
    )
    numbers = base.mark_text(align="left", dx=5, color="currentColor").encode(
        text=alt.Text("figure:Q", format=".2f")
    )
    return svg(bars + numbers)


def progress(batches: Sequence[BatchProgress]) -> str:
    """The stream over time: evaluations a row and rows a second, and where the mesh changed."""
    alt, _ = altair_and_converter()
    values = [
        {
            "batchId": batch.batch_id,
            "processedRowsPerSecond": batch.processed_rows_per_second,
            "evaluations": batch.evaluations_per_row,
        }
        for batch in batches
    ]
    switches = [
        {"batchId": after.batch_id - 0.5}
        for before, after in pairwise(batches)
        if after.version != before.version
    ]
    base = alt.Chart(alt.Data(values=values), width=2 * WIDTH, height=160)
    across = alt.X("batchId:Q", title="batchId", axis=alt.Axis(tickMinStep=1))
    rule = (
        alt.Chart(alt.Data(values=switches))
        .mark_rule(color=SINGLE, strokeDash=[5, 4], strokeWidth=2)
        .encode(x=across)
    )

    def line(field: str, title: str, colour: str) -> Any:
        drawn = base.mark_line(point={"color": colour}, color=colour, strokeWidth=2)
        up = alt.Y(f"{field}:Q", title=title)
        return drawn.encode(x=across, y=up) + rule

    work = line("evaluations", "evaluations a row", OWN)
    return svg(work & line("processedRowsPerSecond", "processedRowsPerSecond", THIRD))


def _colours(alt: ModuleType, names: list[str]) -> Any:
    return alt.Color(
        "route:N", sort=names, scale=alt.Scale(domain=names, range=[OWN, SINGLE]), title=None
    )
