"""What CBR's Figures 5, 6 and 7 claim of routing calls, against what was counted."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from querymesh_lab.papers.cbr.eddy_runs import (
    BETTER,
    KNOWS,
    LEARNED_AFTER,
    LEARNS,
    LOTTERY,
    MOST_ABOVE_KNOWS,
    OWN,
    half_interval,
)
from querymesh_lab.papers.cbr.random_selectivities import WRONG, RandomStreams
from querymesh_lab.papers.claim import Claim, Result

FIGURE_6 = {4: 21.2, 6: 29.4, 8: 35.1}
"""Joins: printed percent of calls saved."""

FIGURE_7 = {0.05: 37.0}
MOST_WRONG = 6.5
FITTED_7 = (
    "of four ways to draw selectivities with a given product, the one that lets Content-Knows "
    "reach what the paper prints at 5 %"
)


def figure_5(found: Sequence[RandomStreams]) -> list[Result]:
    """Figure 5: the wrong classifier is rarely used."""
    rows = []
    for streams in found:
        name = f"{streams.joins} joins: routing calls by a wrong classifier"
        claim = Claim("cbr", "5", name, MOST_WRONG, "%", "at most", 0.0)
        rows.append(
            Result(claim, streams.breakdown()[WRONG], details=streams.details(),
                   half_interval=half_interval(streams.wrong()))
        )  # fmt: skip
    return rows


def figure_6(found: Sequence[RandomStreams]) -> list[Result]:
    """Calls by joins, and how near to Content-Knows."""
    rows = []
    for streams in found:
        what = f"{streams.joins} joins, random selectivities"
        rows += _gains("6", what, FIGURE_6.get(streams.joins), streams)
    return [*rows, *above_knows(found)]


def above_knows(found: Sequence[RandomStreams]) -> list[Result]:
    """Our own target: how near to Content-Knows, once there was time to learn."""
    rows = []
    for of in (LEARNS, OWN):
        for streams in found:
            name = (
                f"{streams.joins} joins, {of}: calls above Content-Knows after "
                f"{LEARNED_AFTER:,} tuples"
            )
            claim = Claim("cbr", "6", name, MOST_ABOVE_KNOWS, "%", "at most", 0.0, "project")
            above = streams.above_knows(of)
            rows.append(
                Result(claim, statistics.fmean(above), details={"streams": above},
                       half_interval=half_interval(above))
            )  # fmt: skip
    return rows


def figure_7(found: Sequence[RandomStreams]) -> list[Result]:
    """Figure 7: calls saved, by aggregate selectivity."""
    rows = []
    for streams in found:
        share = streams.aggregate or 0.0
        what = f"{streams.joins} joins, aggregate selectivity {share:.0%}"
        rows += _gains("7", what, FIGURE_7.get(share), streams, FITTED_7)
    return rows


def _gains(
    figure: str, what: str, printed: float | None, streams: RandomStreams, fitted: str = ""
) -> list[Result]:
    rows = []
    for over, rival, of in (
        (LOTTERY, f"{LOTTERY}, the paper's", LEARNS),
        (LOTTERY, f"{LOTTERY}, settings beyond the paper's", OWN),
        (BETTER, BETTER, LEARNS),
    ):
        name = f"{what}: fewer routing calls than {rival}"
        calls = Claim("cbr", figure, name, printed, "%", "more", 0.0)
        rows.append(
            Result(calls, streams.improvement(over, of), details=streams.details(),
                   note=f"{len(streams.counted)} streams a point; the limit is Content-Knows",
                   half_interval=half_interval(streams.improvements(over, of)), fitted=fitted,
                   limit=streams.improvement(over, KNOWS))
        )  # fmt: skip
    return rows
