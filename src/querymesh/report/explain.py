"""Who draws what: for each thing that explains itself, the function that writes its text or page.

Drawers are imported when they are asked for, so that a mesh in text loads no charts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from html import escape
from importlib import import_module
from typing import Any

from querymesh.errors import UnsupportedError

TEXTS = {
    "Mesh": "text.mesh_text:mesh_text",
    "JoinMesh": "text.join_text:join_mesh_text",
    "Learned": "text.eddy_text:eddy_text",
    "RatePlanner": "text.rate_text:rate_text",
    "ChartPlanner": "text.chart_text:planner_text",
    "IndexLoop": "text.index_text:indices_text",
    "Run": "text.run_text:run_text",
    "Advice": "text.advice_text:advice_text",
}
PAGES = {
    "Mesh": "html.mesh_page:write_mesh_page",
    "JoinMesh": "html.join_page:write_join_page",
    "ChartPlanner": "charts.chart_plot:write_chart_page",
    "RatePlanner": "charts.chart_plot:write_rate_page",
    "Run": "html.run_page:write_run_page",
}
NOTEBOOKS = {
    "Mesh": "html.notebook:mesh_html",
    "JoinMesh": "html.notebook:join_mesh_html",
    "Run": "html.notebook:run_html",
    "Query": "html.notebook:query_html",
    "Predicate": "html.notebook:predicate_html",
    "Advice": "html.notebook:advice_html",
}
DRAWINGS = {"ChartPlanner": "charts.chart_plot:write_chart"}


def text_of(thing: object) -> str:
    """What `explain()` of a mesh, a run or a planner prints."""
    return str(_drawer(thing, TEXTS, "text")(thing))


def write_page(thing: object, path: str | os.PathLike[str]) -> None:
    """Write the thing as one HTML page."""
    _drawer(thing, PAGES, "page")(thing, path)


def write_drawing(thing: object, path: str | os.PathLike[str]) -> None:
    """Write the thing as an SVG file."""
    _drawer(thing, DRAWINGS, "drawing")(thing, path)


def html_of(thing: object) -> str:
    """The thing as a notebook shows it: a small picture, or else its text."""
    if any(kind.__name__ in NOTEBOOKS for kind in type(thing).__mro__):
        return str(_drawer(thing, NOTEBOOKS, "picture")(thing))
    return f"<pre>{escape(text_of(thing))}</pre>"


def _drawer(thing: object, drawers: Mapping[str, str], what: str) -> Callable[..., Any]:
    for kind in type(thing).__mro__:
        if kind.__name__ in drawers:
            module, _, name = drawers[kind.__name__].partition(":")
            drawer: Callable[..., Any] = getattr(import_module(f"querymesh.report.{module}"), name)
            return drawer
    raise UnsupportedError(
        f"there is no {what} of a {type(thing).__name__}: explain() tells it in words"
        if what != "text"
        else f"a {type(thing).__name__} has nothing to explain"
    )
