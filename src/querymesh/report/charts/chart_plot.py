"""The charts of a running query: one as an SVG file, or all on a page with what `explain` says."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from querymesh.errors import QueryMeshError
from querymesh.optimize.chart.chart_planner import ChartPlanner
from querymesh.optimize.rate.rate_planner import RatePlanner
from querymesh.report.charts.chart_svg import Visit, regions_svg
from querymesh.report.html.mesh_page import page_of
from querymesh.report.text.chart_text import (
    DRAWN_STEPS,
    plan_letters,
    planner_text,
    stream_plan_text,
    stream_point,
)

_JOINS = "Which join order is best where, and the path of the estimates"
_STREAM = (
    "{stream}: whether σ or π is better first, by its selectivity and its arrival rate, and where "
    "the estimates are now. Of the model alone: a projection takes no step of its own here"
)


def write_chart(planner: ChartPlanner, path: str | os.PathLike[str]) -> None:
    """Write the λ-λ chart as an SVG file."""
    _write(chart_svg(planner), path, "chart")


def write_chart_page(planner: ChartPlanner, path: str | os.PathLike[str]) -> None:
    """Write all charts and all that `explain` says as one HTML file."""
    title = f"Charts of the join of {', '.join(planner.join.aliases)}"
    drawn = [] if planner.chart is None else [_figure(_JOINS, chart_svg(planner))]
    if planner.rounds is not None:
        drawn += [
            _figure(_STREAM.format(stream=stream), stream_svg(planner, stream))
            for stream in planner.rounds.query.stream_charts
        ]
    write_words(title, planner.join.query.sql, planner_text(planner), path, drawn)


def write_rate_page(planner: RatePlanner, path: str | os.PathLike[str]) -> None:
    """Write all that `explain` says of a planner by rates as one HTML file."""
    title = f"Output rates of the join of {', '.join(planner.join.aliases)}"
    write_words(title, planner.join.query.sql, planner.explain(), path)


def write_words(
    title: str, sql: str, text: str, path: str | os.PathLike[str], drawn: list[str] | None = None
) -> None:
    """Write what a planner says as a page, below its query and what was drawn of it."""
    sections = [
        f"<h1>{escape(title)}</h1>",
        f"<pre>{escape(sql.strip())}</pre>",
        *(f"<section>{each}</section>" for each in drawn or ()),
        f"<section><h2>In words</h2><pre>{escape(text)}</pre></section>",
    ]
    _write(page_of(title, sections), path, "page")


def _figure(caption: str, svg: str) -> str:
    return f'<figure class="panel"><figcaption>{escape(caption)}</figcaption>{svg}</figure>'


def _write(text: str, path: str | os.PathLike[str], what: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise QueryMeshError(f"cannot write the {what} to {path}: {error.strerror}") from error


def chart_svg(planner: ChartPlanner) -> str:
    """The λ-λ chart with the path of the point."""
    chart = planner.chart
    if chart is None:
        why = (
            f"the only order is {planner.plan_text(planner.rounds.query.orders[0])}"
            if planner.rounds is not None
            else f"{planner.seen} of {planner.charting.settle} rounds were observed so far"
        )
        raise QueryMeshError(f"there is no chart to draw: {why}")
    assert planner.rounds is not None
    orders = planner.rounds.query.orders
    letters = plan_letters(planner)
    path = [
        Visit(step.after_round, step.point, step.switched)
        for step in list(planner.steps)[-DRAWN_STEPS:]
    ]
    return regions_svg(
        chart,
        planner.point,
        path,
        lambda plan: f"{letters(plan)}: {planner.plan_text(orders[plan])}",
    )


def stream_svg(planner: ChartPlanner, stream: str) -> str:
    """A stream's sel-λ chart with the point of now: of these the planner keeps no path."""
    assert planner.rounds is not None
    chart = planner.rounds.query.stream_charts[stream]
    return regions_svg(chart, stream_point(planner, stream), (), stream_plan_text)
