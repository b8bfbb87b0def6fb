"""The growth of our join as SVG files: time and bytes by window, rows a second by streams."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from querymesh_lab.bench.joins.growth import GrowthPoint
from querymesh_lab.drawing import lines, write


def write_growth(
    folder: Path, windows: Sequence[GrowthPoint], streams: Sequence[GrowthPoint]
) -> list[Path]:
    """Draw both series into a folder, and return the paths of the drawings."""
    return write(folder, _drawn(windows, streams), "join")


def _drawn(windows: Sequence[GrowthPoint], streams: Sequence[GrowthPoint]) -> dict[str, str]:
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
    draw = partial(lines, x="x", group="group", y="y", points=True)
    return {
        "time-by-window": draw(times, titles=(rows, "ns a probe"), scale="log"),
        "bytes-by-window": draw(stored, titles=(rows, "bytes a row"), scale="log"),
        "rows-by-streams": draw(speed, titles=("streams", "rows a second of processor time")),
    }


def _mark(x: float, group: str, y: float) -> dict[str, Any]:
    return {"x": x, "group": group, "y": y}
