"""OM's Figures 4a and 4b: the query that joins three streams, and its join selectivities (§ 4.3).

With equal selectivities the best of the three orders joins the fastest stream last (where, as
here, the first join's result is what takes memory), so borders lie where two streams are equally
fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.om.courses import as_it_came, join_courses, mean_details, rounds
from querymesh_lab.papers.om.om_data import Conversations, HostCourse, scaled, smoothed, urnd
from querymesh_lab.papers.om.round_runs import STREAMS, follow, q2
from querymesh_lab.papers.om.single_figures import ANY_PLAN, VARIATIONS, FidelityPoint, claim

JOINED = partial(claim, neutral=100 / 3)
SECONDS = (1, 2, 5, 10, 30, 60)
PARTITIONS = (2, 3, 4, 5, 6, 8, 10, 20, 40)
APART = (1.0, 1.5, 2.0)
THRESHOLDS = (0.1, 0.25, 0.5)
NEVER = 1e9
SMOOTH_S = 30

NOISE = (
    "the three streams are equally fast on average, and which of them is the fastest in the next "
    "second is mostly noise. The chart read at what came has {read:.0f} %: what is lost is the "
    "forecast. Averages over 30 s and more, which lower the coefficient of variation too, can be "
    "foretold; smaller deviations alone change little"
)
SPEED = (
    "streams whose mean rates are 1 : 1.5 : 2 have one best order nearly always, and RATE finds "
    "it as well"
)


def figure_4a(bench: Bench, folder: Path) -> tuple[list[Result], list[FidelityPoint]]:
    """Fidelity by how erratic the rates are, by both filters."""
    points = []
    for variation in VARIATIONS[:: 4 if bench.quick else 1]:
        courses = join_courses(bench, folder, partial(scaled, variation=variation))
        points.append(_point("scaled", variation, courses))
    for seconds in (1, 60) if bench.quick else SECONDS:
        courses = join_courses(bench, folder, partial(smoothed, seconds=seconds))
        points.append(_point("smoothed", seconds, courses))
    apart = _point("faster", APART[-1], join_courses(bench, folder, faster=APART))
    calm, erratic = points[-1].details, points[0].details
    least = min(points, key=lambda point: point.details["fidelity"])
    details = {"points": [vars(point) for point in (*points, apart)]}
    came = _as_came(points)
    noise = NOISE.format(read=came["without forecasts"])

    def row(name: str, value: float, paper: float | None, note: str, **other: Any) -> Result:
        return Result(JOINED("4a", name, paper, **other), value, None, note, details)

    at = f"{least.series} to {least.at:g}"
    return [
        row("Q2: smoothest (averages over 60 s)", calm["fidelity"], 99.0, ""),
        row(f"Q2: least fidelity, {at}", least.details["fidelity"], 80.0, noise, sense="at least"),
        row("Q2: RAND, by construction", erratic["RAND"], 30.0,
            f"{ANY_PLAN.format(plans='three')}; the paper has \"close to 30 %\"",
            sense="at least"),
        row("Q2: OM over RAND, smoothest", calm["fidelity"] / calm["RAND"], 3.3, "",
            unit="×", neutral=1.0),
        row("Q2: OM over RAND, CV 0.26", erratic["fidelity"] / erratic["RAND"], 80 / 30, noise,
            unit="×", neutral=1.0),
        row("Q2: OM over RATE, smoothest", calm["fidelity"] / calm["RATE"], None, "",
            unit="×", neutral=1.0),
        row("Q2: as it came, mean rates 1 : 1.5 : 2", apart.details["fidelity"], None,
            SPEED, whose="project"),
        row("Q2: as it came, OM above the one order that was best most often",
            came["fidelity"] - came["one plan, in hindsight"], None, noise, neutral=0.0,
            whose="project"),
        row("Q2: as it came, utils above the best plan's (RAND: "
            f"{came['excess utils of RAND']:.1f} %)", came["excess utils"], None, "",
            sense="less", neutral=came["excess utils of RAND"], whose="project"),
    ], points  # fmt: skip


def _as_came(points: Sequence[FidelityPoint]) -> dict[str, float]:
    return next(each.details for each in points if each.series == "smoothed" and each.at == 1)


def figure_4b(bench: Bench, folder: Path | None) -> tuple[list[Result], list[FidelityPoint]]:
    """Fidelity by k: the trace, smoothed and as it came, and URND; without a trace, URND alone."""
    series = {"URND": [urnd(STREAMS, rounds(bench), seed) for seed in range(2)]}
    if folder is not None:
        smooth = partial(smoothed, seconds=SMOOTH_S)
        series["DEC"] = join_courses(bench, folder, as_it_came)
        series["DEC, averages over 30 s"] = join_courses(bench, folder, smooth)
    asked = (5, 8, 10) if bench.quick else PARTITIONS
    points = [_point(name, k, courses, k) for name, courses in series.items() for k in asked]
    at = {(point.series, int(point.at)): point.details["fidelity"] for point in points}
    details = {"points": [vars(point) for point in points]}

    def row(name: str, value: float, paper: float | None, note: str, **other: Any) -> Result:
        return Result(JOINED("4b", name, paper, **other), value, None, note, details)

    found = [
        row("Q2, URND: points gained from k = 8 to 10", at["URND", 10] - at["URND", 8], 2.0, "",
            sense="at most"),
        row("Q2, URND: OM over RAND, k = 10", at["URND", 10] * 3 / 100, None,
            "rates that have nothing to do with those before cannot be foretold: any plan is as "
            "good as RAND's", unit="×", neutral=1.0, whose="project"),
    ]  # fmt: skip
    for name in series:
        if name != "URND":
            lead = min(at[name, k] - at["URND", k] for k in asked)
            found += [
                row(f"Q2, {name}: points above URND, least over k", lead, None, "", neutral=0.0),
                row(f"Q2, {name}: points gained from k = 5 to 10", at[name, 10] - at[name, 5], 2.0,
                    "", sense="at most"),
            ]  # fmt: skip
    return found, points


def figure_joins(bench: Bench, folder: Path) -> list[Result]:
    """§ 4.3: hosts that come and go move join selectivities; what estimating them anew is worth.

    Plans are judged by the selectivities that a round had.
    """
    courses = join_courses(bench, folder, talk=Conversations())
    found: dict[float, dict[str, float]] = {
        threshold: mean_details([follow(q2(each), each, threshold=threshold) for each in courses])
        for threshold in (*THRESHOLDS, NEVER)
    }
    by_threshold = {("never" if each == NEVER else str(each)): found[each] for each in found}
    usual, never = found[0.25], found[NEVER]
    asked = Claim("om", "4.3", "Q2: rounds whose λ-λ chart is built anew, threshold 0.25", None,
                  "%", "less", 100.0, "project")  # fmt: skip
    return [
        Result(JOINED("4.3", "Q2, hosts come and go: fidelity, threshold 0.25", None,
                      whose="project"), usual["fidelity"], None, "", by_threshold),
        Result(JOINED("4.3", "Q2, hosts come and go: points above never estimating anew", None,
                      neutral=0.0, whose="project"),
               usual["fidelity"] - never["fidelity"], None, "", by_threshold),
        Result(JOINED("4.3", "Q2, hosts come and go: points gained by threshold 0.1", None,
                      neutral=0.0, whose="project"),
               found[0.1]["fidelity"] - usual["fidelity"], None, "", by_threshold),
        Result(asked, 100 * usual["charts built anew"] / usual["rounds"], None, "", by_threshold),
    ]  # fmt: skip


def _point(series: str, at: float, courses: Sequence[HostCourse], k: int = 10) -> FidelityPoint:
    return FidelityPoint(series, at, mean_details([follow(q2(each, k), each) for each in courses]))
