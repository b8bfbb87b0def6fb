"""A chart of plans as SVG: regions coloured by plan, and the path of a point over time.

Written by hand rather than by a plotting library: it is rectangles and a line, and so the chart of
a running query can be drawn wherever the query runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

from querymesh.optimize.chart.chart import PlanChart
from querymesh.report.charts.chart_slices import Slice, plan_shares, slices_of
from querymesh.report.text.chart_text import held_text
from querymesh.report.text.figures import percent

COLOURS = (
    "#2f8f83", "#d98a3d", "#8a7fc9", "#c05a73", "#5c8f3a", "#4a86c5", "#a97142", "#7a8794",
    "#b0a03a", "#9c5fb5",
)  # fmt: skip
SIDE, CELLS = 300, 60
_LEFT, _TOP, _BELOW, _LINE = 64, 28, 46, 18


class Visit(NamedTuple):
    """Where the point was after a round, and whether another plan was taken there."""

    after_round: int
    point: Sequence[float]
    switched: bool


def regions_svg(
    chart: PlanChart,
    point: Sequence[float],
    path: Sequence[Visit],
    named: Callable[[int], str],
    head: str = "",
) -> str:
    """The slices of a chart side by side, with a legend of the plans.

    `named` says what a plan is called in the legend; `head` stands above a chart of two dimensions,
    where there is nothing to say of others.
    """
    slices = slices_of(chart, point, CELLS, CELLS)
    shares = plan_shares(chart)
    shown = dict(shares)
    for each in slices:
        shown |= {int(met): 0.0 for met in each.plans.flat if int(met) not in shown}
    colours = {plan: COLOURS[at % len(COLOURS)] for at, plan in enumerate(shown)}
    panel = _LEFT + SIDE + 16
    parts = []
    for place, each in enumerate(slices):
        above = held_text(each, chart) or head
        parts.append(
            f'<g transform="translate({place * panel} 0)">'
            f"{_panel(each, path, point, colours, above)}</g>"
        )
    legend_top = _TOP + SIDE + _BELOW
    for at, (plan, share) in enumerate(shown.items()):
        top = legend_top + at * _LINE
        parts.append(
            f'<rect x="{_LEFT}" y="{top}" width="12" height="12" fill="{colours[plan]}"/>'
            f'<text x="{_LEFT + 18}" y="{top + 10}">{escape(named(plan))}, '
            f"{percent(share)} of the chart</text>"
        )
    legend = max(len(named(plan)) for plan in shown)
    longest = max(len(head), 3 + legend + 21)
    width = max(panel * len(slices), _LEFT + 7 * longest)
    height = legend_top + _LINE * len(shown) + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="11" '
        f'fill="currentColor">{"".join(parts)}</svg>'
    )


def _panel(
    each: Slice,
    path: Sequence[Visit],
    point: Sequence[float],
    colours: dict[int, str],
    above: str,
) -> str:
    rows, columns = each.plans.shape
    wide, high = SIDE / columns, SIDE / rows
    parts = [f'<text x="{_LEFT}" y="{_TOP - 10}">{escape(above)}</text>']
    for row in range(rows):
        column = 0
        for plan, run in groupby(each.plans[row].tolist()):
            count = len(list(run))
            # A little wider and higher than they are, or hairlines show between regions.
            parts.append(
                f'<rect x="{_LEFT + column * wide:.2f}" y="{_TOP + SIDE - (row + 1) * high:.2f}" '
                f'width="{count * wide + 0.3:.2f}" height="{high + 0.3:.2f}" '
                f'fill="{colours[plan]}"/>'
            )
            column += count
    parts.append(_axes(each))
    if each.has_point:
        places = [_at(each, visit.point) for visit in path]
        if places:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="#ffffff" stroke-width="1.6" '
                'stroke-opacity="0.9"/>'
            )
        for visit, (x, y) in zip(path, places, strict=True):
            size = 3.2 if visit.switched else 1.8
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="#ffffff" stroke="#22272e" '
                f'stroke-width="0.8"><title>after round {visit.after_round}</title></circle>'
            )
        x, y = _at(each, point)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="none" stroke="#22272e" '
            'stroke-width="2"><title>now</title></circle>'
        )
    return "".join(parts)


def _at(each: Slice, point: Sequence[float]) -> tuple[float, float]:
    across, up = each.place(point)
    return _LEFT + across * SIDE, _TOP + SIDE - up * SIDE


def _axes(each: Slice) -> str:
    bottom = _TOP + SIDE + 14
    middle = _TOP + SIDE / 2
    labels = [
        f'<text x="{_LEFT}" y="{bottom}">{each.across.low:,.4g}</text>',
        f'<text x="{_LEFT + SIDE}" y="{bottom}" text-anchor="end">{each.across.high:,.4g}</text>',
        f'<text x="{_LEFT + SIDE / 2}" y="{bottom + 14}" text-anchor="middle">'
        f"{escape(each.across.name)}</text>",
    ]
    if each.axes[0] != each.axes[1]:
        labels += [
            f'<text x="{_LEFT - 5}" y="{_TOP + SIDE}" text-anchor="end">{each.up.low:,.4g}</text>',
            f'<text x="{_LEFT - 5}" y="{_TOP + 10}" text-anchor="end">{each.up.high:,.4g}</text>',
            f'<text transform="translate({_LEFT - 44} {middle}) rotate(-90)" '
            f'text-anchor="middle">{escape(each.up.name)}</text>',
        ]
    return "".join(labels)
