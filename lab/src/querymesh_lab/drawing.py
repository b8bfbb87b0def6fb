"""Bars, lines and strips as SVG, in the colours of the reports; they need the extra `report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from querymesh.report.html.plots import HEIGHT, OWN, SINGLE, THIRD, WIDTH, altair_and_converter, svg

COLOURS = (OWN, SINGLE, THIRD, "#c25b74", "#6b7f8f")


def bars(values: Sequence[Mapping[str, Any]], x: str, group: str, y: str, title: str) -> str:
    """Grouped bars: `x` across, one colour for each `group`."""
    alt, _ = altair_and_converter()
    names = list(dict.fromkeys(value[group] for value in values))
    chart = (
        alt.Chart(alt.Data(values=list(values)), width=WIDTH, height=HEIGHT)
        .mark_bar(cornerRadiusEnd=3)
        .encode(
            x=alt.X(f"{x}:N", title=None, sort=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset(f"{group}:N", sort=names),
            y=alt.Y(f"{y}:Q", title=title),
            color=_colour(alt, group, names),
        )
    )
    return svg(chart)


def lines(
    values: Sequence[Mapping[str, Any]], x: str, group: str, y: str, titles: tuple[str, str],
    points: bool = False, scale: str = "linear",
) -> str:  # fmt: skip
    """One line for each `group`; `scale` is that of `x`, "linear" or "log"."""
    alt, _ = altair_and_converter()
    names = list(dict.fromkeys(value[group] for value in values))
    chart = (
        alt.Chart(alt.Data(values=list(values)), width=WIDTH, height=HEIGHT)
        .mark_line(strokeWidth=2, point=points)
        .encode(
            x=alt.X(f"{x}:Q", title=titles[0], scale=alt.Scale(type=scale)),
            y=alt.Y(f"{y}:Q", title=titles[1]),
            color=_colour(alt, group, names),
        )
    )
    return svg(chart)


def strips(values: Sequence[Mapping[str, Any]], x: str, group: str, title: str) -> str:
    """A row of ticks for each `group`, where along `x` it was the one."""
    alt, _ = altair_and_converter()
    chart = (
        alt.Chart(alt.Data(values=list(values)), width=WIDTH, height=HEIGHT / 2)
        .mark_tick(thickness=3, color=OWN)
        .encode(x=alt.X(f"{x}:Q", title=title), y=alt.Y(f"{group}:N", title=None))
    )
    return svg(chart)


def _colour(alt: Any, group: str, names: list[str]) -> Any:
    scale = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    return alt.Color(f"{group}:N", sort=names, scale=scale, title=None)


def write(folder: Path, drawn: Mapping[str, str], prefix: str) -> list[Path]:
    """Write each drawing as `prefix-name.svg`, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in drawn.items():
        paths.append(folder / f"{prefix}-{name}.svg")
        paths[-1].write_text(text, encoding="utf-8")
    return paths
