"""AMRI's Figures 8 to 10 as SVG files: results so far by processor time."""

from __future__ import annotations

from querymesh_lab.bench.measure import CONTROL
from querymesh_lab.drawing import lines
from querymesh_lab.papers.amri.index_race import IndexRace

POINTS = 100


def results_by_time(figure: str, found: IndexRace) -> dict[str, str]:
    """One line for each rival, of the last round; the control is left out."""
    values = []
    for name, runs in found.runs.items():
        curve = runs[-1].curve
        if name != CONTROL:
            some = [*curve[:: max(len(curve) // POINTS, 1)], curve[-1]]
            values += [{"seconds": at, "rival": name, "results": made} for at, made in some]
    titles = ("seconds of processor time", "results so far")
    return {f"figure-{figure}": lines(values, "seconds", "rival", "results", titles)}
