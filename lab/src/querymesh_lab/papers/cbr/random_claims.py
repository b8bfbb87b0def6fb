"""What CBR's Figures 5, 6, 7 and 10 claim, against what `random_selectivities` measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from querymesh.fabric.core.metrics import Metrics
from querymesh_lab.papers.cbr.eddy_runs import (
    BETTER,
    LEARNED_AFTER,
    LEARNS,
    LOTTERY,
    MOST_ABOVE_KNOWS,
    OWN,
    SBR,
    TIME_CHUNK,
)
from querymesh_lab.papers.cbr.random_selectivities import WRONG, RandomStreams
from querymesh_lab.papers.claim import Claim, Result

FIGURE_6 = {4: (21.2, 12.8), 6: (29.4, 18.8), 8: (35.1, 19.7)}
"""Joins: printed percent of calls and of time saved."""

FIGURE_7 = {0.05: (37.0, 25.4)}
MOST_WRONG = 6.5
MOST_OVERHEAD = 5.0
TIMED = f"keyed hashes, chunks of {TIME_CHUNK}"


def figure_5(found: Sequence[RandomStreams]) -> list[Result]:
    """Figure 5: the wrong classifier is rarely used."""
    rows = []
    for streams in found:
        name = f"{streams.joins} joins: routing calls by a wrong classifier"
        claim = Claim("cbr", "5", name, MOST_WRONG, "%", "at most", 0.0)
        rows.append(Result(claim, streams.breakdown()[WRONG], details=streams.details()))
    return rows


def figure_6(found: Sequence[RandomStreams]) -> list[Result]:
    """Calls and time by joins, and how near to Content-Knows."""
    rows = []
    for streams in found:
        what = f"{streams.joins} joins, random selectivities"
        rows += _gains("6", what, FIGURE_6.get(streams.joins, (None, None)), streams)
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
            details = {"streams": [each.above_knows(of) for each in streams.counted]}
            rows.append(Result(claim, streams.above_knows(of), details=details))
    return rows


def figure_7(found: Sequence[RandomStreams]) -> list[Result]:
    """Figure 7: calls and time saved, by aggregate selectivity."""
    rows = []
    for streams in found:
        share = streams.aggregate or 0.0
        what = f"{streams.joins} joins, aggregate selectivity {share:.0%}"
        rows += _gains("7", what, FIGURE_7.get(share, (None, None)), streams)
    return rows


def _gains(
    figure: str, what: str, printed: tuple[float | None, float | None], streams: RandomStreams
) -> list[Result]:
    rows = []
    for over, rival, of in (
        (LOTTERY, f"{LOTTERY}, the paper's", LEARNS),
        (LOTTERY, f"{LOTTERY}, settings beyond the paper's", OWN),
        (BETTER, BETTER, LEARNS),
    ):
        name = f"{what}: fewer routing calls than {rival}"
        calls = Claim("cbr", figure, name, printed[0], "%", "more", 0.0)
        rows.append(Result(calls, streams.improvement(over, of), details=streams.details()))
    if streams.timings:
        time = Claim(
            "cbr", figure, f"{what}: less time than the better SBR", printed[1], "%", "more", 0.0
        )
        rows.append(Result(time, streams.time_gain, streams.a_a, TIMED, streams.details()))
    return rows


def figure_10(found: Sequence[RandomStreams]) -> list[Result]:
    """Figure 10: the share of the time that routing and learning take."""
    rows = []
    for streams in found:
        for name in (SBR, LEARNS):
            shares = [percent(last[name]) for last in streams.last]
            plain = [percent(last[name]) for last in streams.plain_last]
            text = f"{streams.joins} joins: {name}'s routing and learning, of the whole time"
            claim = Claim("cbr", "10", text, MOST_OVERHEAD, "%", "at most", 0.0)
            details = {
                "us_a_call": us_a_call(name, streams),
                "integer_keys_percent": statistics.fmean(plain),
            }
            rows.append(Result(claim, statistics.fmean(shares), None, TIMED, details))
    return rows


def us_a_call(name: str, streams: RandomStreams) -> dict[str, float]:
    """Microseconds of routing and of learning for each routing call, as Figure 10 draws them."""
    of = [last[name] for last in streams.last]
    return {
        "routing": statistics.fmean(1e6 * m.routing_seconds / m.routing_calls for m in of),
        "learning": statistics.fmean(1e6 * learning_seconds(m) / m.routing_calls for m in of),
    }


def learning_seconds(metrics: Metrics) -> float:
    """Seconds of updating statistics, sampling, and finding the best attributes."""
    return metrics.learning_seconds + metrics.classify_seconds


def percent(metrics: Metrics) -> float:
    """The percentage of the fabric's time that routing and learning take."""
    spent = metrics.routing_seconds + learning_seconds(metrics)
    return 100 * spent / metrics.total_seconds
