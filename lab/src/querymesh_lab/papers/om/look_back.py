"""Beyond the paper: how far back estimates should look (it gives neither d nor a, § 4.3), and what
happens when streams change faster than that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from querymesh.stats.round_estimates import DEFAULT_DECAY, DEFAULT_ROUNDS
from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.claim import Result
from querymesh_lab.papers.om.courses import join_courses, rounds, single_courses
from querymesh_lab.papers.om.om_data import HOST, HOSTS, Conversations, HostCourse
from querymesh_lab.papers.om.round_runs import KEEPS, SINGLE, follow, q1, q2
from querymesh_lab.papers.om.single_figures import FidelityPoint, claim

BACK = ((1, 0.0), (3, 0.0), (10, 0.0), (30, 0.0), (100, 0.0), (10, 0.1), (10, 0.5), (10, 1.0),
        (100, 0.1), (100, 0.5))  # fmt: skip
"""The pairs of d (rounds looked back) and a (decay) that are tried."""

LASTING_S = (2, 5, 10, 30, 60, 240)
PERIODS = (2, 4, 6, 10, 20, 40, 100)
K, SOME = 40, 3
"""Partitions, and stretches of the trace: each point takes a run for each of them."""

BELOW = (
    "estimates follow the round before: where streams turn round by round, they point the wrong "
    "way, and any plan at random does better"
)


def swinging(period: int, count: int, size: int = 500) -> HostCourse:
    """A stream without noise: the share of host 2 is a quarter above what π keeps for half of the
    period, and a quarter below for the other half."""
    shares = [KEEPS + (0.25 if at % period < period / 2 else -0.25) for at in range(count)]
    hosts = []
    for share in shares:
        found = np.full(size, (HOST + 1) % HOSTS)
        found[: round(share * size)] = HOST
        hosts.append(found)
    # One tuple more or less, so that λ has a range.
    return HostCourse({SINGLE: [each[: size - at % 2] for at, each in enumerate(hosts)]})


def back(bench: Bench, folder: Path) -> tuple[list[Result], list[FidelityPoint]]:
    """Fidelity by d and a, of Q1 and of Q2 as they came."""
    asked = BACK[:: 3 if bench.quick else 1]
    if (DEFAULT_ROUNDS, DEFAULT_DECAY) not in asked:
        asked = (*asked, (DEFAULT_ROUNDS, DEFAULT_DECAY))
    points = []
    for name, query, courses in (
        ("Q1", q1, single_courses(bench, folder, stretches=SOME)),
        ("Q2", q2, join_courses(bench, folder)),
    ):
        for d, decay in asked:
            found = [follow(query(each, K), each, d, decay).fidelity for each in courses]
            details = {"d": d, "a": decay, "fidelity": sum(found) / len(found)}
            points.append(FidelityPoint(name, d, details))
    results = []
    for name in ("Q1", "Q2"):
        mine = [point.details for point in points if point.series == name]
        usual = next(
            each for each in mine if (each["d"], each["a"]) == (DEFAULT_ROUNDS, DEFAULT_DECAY)
        )
        best = max(mine, key=lambda each: each["fidelity"])
        told = f"d = {best['d']:g}, a = {best['a']:g}"
        wanted = claim(
            "estimates", f"{name}: points lost by d = 10, a = 0.5 against the best ({told})", 5.0,
            sense="at most", whose="project",
        )  # fmt: skip
        lost = best["fidelity"] - usual["fidelity"]
        results.append(Result(wanted, lost, None, "", {"points": mine}))
    return results, points


def drift(bench: Bench, folder: Path | None) -> tuple[list[Result], list[FidelityPoint]]:
    """Fidelity of Q1 by how long conversations last, and by the period of a swing."""
    points = []
    for period in PERIODS[:: 3 if bench.quick else 1]:
        course = swinging(period, rounds(bench))
        points.append(FidelityPoint("swing, period in rounds", period, _details(course)))
    if folder is not None:
        for lasting in LASTING_S[:: 5 if bench.quick else 1]:
            courses = single_courses(
                bench, folder, talk=Conversations(lasting_s=lasting), stretches=SOME
            )
            each = [_details(course) for course in courses]
            mean = {name: sum(one[name] for one in each) / len(each) for name in each[0]}
            points.append(FidelityPoint("conversations, seconds", lasting, mean))
    details = {"points": [vars(point) for point in points]}
    swings = [point for point in points if point.series.startswith("swing")]

    def row(name: str, value: float, note: str, **other: Any) -> Result:
        return Result(
            claim("estimates", name, None, whose="project", **other), value, None, note, details
        )

    results = [
        row("Q1, a swing of 2 rounds: OM", swings[0].details["fidelity"], BELOW),
        row("Q1, a swing of 2 rounds: plain mean of 10 rounds", swings[0].details["plain mean"],
            "", neutral=49.0),
        row(f"Q1, a swing of {swings[-1].at:g} rounds: OM", swings[-1].details["fidelity"], ""),
    ]  # fmt: skip
    talks = [point for point in points if point.series.startswith("conv")]
    if talks:
        fast, slow = talks[0].details["fidelity"], talks[-1].details["fidelity"]
        results += [
            row(f"Q1, conversations of {talks[0].at:g} s: OM", fast, ""),
            row(f"Q1, conversations of {talks[-1].at:g} s: OM", slow, ""),
        ]
    return results, points


def _details(course: HostCourse) -> dict[str, float]:
    query = q1(course, K)
    usual = follow(query, course)
    return {
        "fidelity": usual.fidelity,
        "plain mean": follow(query, course, DEFAULT_ROUNDS, 0.0).fidelity,
        "last round": follow(query, course, 1, 0.0).fidelity,
        "switches": usual.counted.switches,
    }
