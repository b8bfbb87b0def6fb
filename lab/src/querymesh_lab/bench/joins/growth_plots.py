"""The growth of our join as SVG files: time and bytes by window, rows a second by streams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from querymesh.report.html.plots import HEIGHT, OWN, SINGLE, THIRD, WIDTH, altair_and_converter, svg
from querymesh_lab.bench.joins.growth import Point

COLOURS = (OWN, SINGLE, THIRD)


def write(folder: Path, windows: Sequence[Point], streams: Sequence[Point]) -> list[Path]:
    """Draw the series into a folder; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in _drawn(windows, streams).items():
        paths.append(folder / f"join-{name}.svg")
        paths[-1].write_text(text, encoding="utf-8")
    return paths


def _drawn(windows: Sequence[Point], streams: Sequence[Point]) -> dict[str, str]:
    rows = "rows in a window"
    smallest = min(point.size.batch_rows for point in windows)
    weighed = [point for point in windows if point.size.batch_rows == smallest]
    times = [
        _mark(p.size.window_rows, f"batches of {p.size.batch_rows:,}", p.ns_a_probe)
        for p in windows
    ]
    stored = [
        _mark(point.size.window_rows, kind, value)
        for point in weighed
        for kind, value in (
            ("in memory", point.memory_bytes_a_row),
            ("block files", point.file_bytes_a_row),
            ("bare Arrow", point.raw_bytes_a_row),
        )
    ]
    speed = [_mark(p.size.streams, "join", p.rows_a_second) for p in streams]
    return {
        "time-by-window": _lines(times, rows, "ns a probe", "log"),
        "bytes-by-window": _lines(stored, rows, "bytes a row", "log"),
        "rows-by-streams": _lines(speed, "streams", "rows a second of processor time", "linear"),
    }


def _mark(x: float, group: str, y: float) -> dict[str, Any]:
    return {"x": x, "group": group, "y": y}


def _lines(values: list[dict[str, Any]], x: str, y: str, scale: str) -> str:
    """One line for each group, from zero up."""
    alt, _ = altair_and_converter()
    names = list(dict.fromkeys(value["group"] for value in values))
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    chart = (
        alt.Chart(alt.Data(values=values), width=WIDTH, height=HEIGHT)
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=alt.X("x:Q", title=x, scale=alt.Scale(type=scale)),
            y=alt.Y("y:Q", title=y, scale=alt.Scale(zero=True)),
            color=alt.Color("group:N", sort=names, scale=colours, title=None),
        )
    )
    return svg(chart)
