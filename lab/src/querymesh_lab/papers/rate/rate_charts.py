"""RBO's Figures 7 to 10 and 12 to 15 as SVG files: the time of each number of results."""

from __future__ import annotations

import numpy as np

from querymesh.optimize.rate.curves import Curve
from querymesh_lab.drawing import lines
from querymesh_lab.papers.rate.plan_race import AGAIN, PlanRace

POINTS = 60


def outputs_by_time(race: PlanRace, figures: tuple[str, str], most: float) -> dict[str, str]:
    """Predicted and measured, one line a plan, with results across as the paper has them."""
    return {
        f"figure-{figure}": _drawn(curves, most)
        for figure, curves in zip(figures, (race.expected, race.measured), strict=True)
    }


def _drawn(curves: dict[str, Curve], most: float) -> str:
    values = []
    for name, curve in curves.items():
        if name != AGAIN:
            shown = np.linspace(0, min(most, float(curve.made[-1])), POINTS)
            values += [
                {"results": float(n), "plan": name, "seconds": curve.time_of(float(n))}
                for n in shown
            ]
    return lines(values, "results", "plan", "seconds", ("results", "seconds, as in the paper"))
