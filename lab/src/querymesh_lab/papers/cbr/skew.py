"""CBR § 6.3, Figures 3 and 4: how much fewer routing calls and how much less time with more skew.

As many classes as joins; class k passes operator k with chance A and all others with chance B, so
that 5 % of all tuples pass everything. The paper draws two and six joins; four and eight are the
forms it left out. A goes from 5 % to 95 % in steps of 10 %.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.cbr.eddy_runs import (
    CHUNK,
    KNOWS,
    LEARNED_AFTER,
    LEARNS,
    MOST_ABOVE_KNOWS,
    OWN,
    TIME_CHUNK,
    CountedRun,
    count,
    mean_and_error,
    star_case,
    time,
    time_gain,
)
from querymesh_lab.papers.cbr.stream_star import StreamStar, skewed
from querymesh_lab.papers.claim import Claim, Result

JOINS = (2, 4, 6, 8)
DRAWN = {2: "3", 6: "4"}
"""Joins by the figure that has them; the others are named after the nearest."""

A_VALUES = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
TIMED_A = (0.05, 0.25, 0.55, 0.95)
STREAMS = 2
ROWS = 100_000


@dataclass(frozen=True)
class SkewPoint:
    """Some streams of one skew; `time_gain` where time was taken."""

    joins: int
    a: float
    counted: tuple[CountedRun, ...]
    time_gain: float | None = None
    plain_time_gain: float | None = None
    a_a: float | None = None

    @property
    def b(self) -> float:
        """The selectivity of the other operators."""
        return skewed(self.joins, self.a)[0][1]

    @property
    def skew(self) -> float:
        """A - B, in percent, as the figures have it."""
        return 100 * (self.a - self.b)

    def improvement(self, of: str = LEARNS) -> float:
        """Percent fewer calls than SBR, the mean of the streams."""
        return statistics.fmean(each.improvement(of) for each in self.counted)

    def above_knows(self, of: str = LEARNS) -> float:
        """Percent more calls than Content-Knows, once learned: the mean of the streams."""
        return statistics.fmean(each.above_knows(of) for each in self.counted)

    def details(self) -> dict[str, object]:
        """The figures of the point, as `--json` writes them."""
        calls = {
            name: round(statistics.fmean(each.calls[name] for each in self.counted), 4)
            for name in self.counted[0].calls
        }
        return {
            "joins": self.joins,
            "A": self.a,
            "B": round(self.b, 4),
            "calls_a_tuple": calls,
            "improvement": mean_and_error([each.improvement() for each in self.counted]),
            "improvement_beyond": mean_and_error([each.improvement(OWN) for each in self.counted]),
            "improvement_knows": round(self.improvement(KNOWS), 2),
            "late_above_knows": round(self.above_knows(), 2),
            "late_above_knows_beyond": round(self.above_knows(OWN), 2),
            "time_gain": self.time_gain,
            "time_gain_integer_keys": self.plain_time_gain,
            "a_a": self.a_a,
        }


def measure(bench: Bench) -> list[SkewPoint]:
    """Measure every point; in a quick run only the ends."""
    rows = bench.rows(ROWS, 6_000)
    points = []
    for joins in (2, 4) if bench.quick else JOINS:
        for a in (0.05, 0.95) if bench.quick else A_VALUES:
            matrix = skewed(joins, a)
            counted = tuple(
                count(star_case(StreamStar(matrix), rows, seed))
                for seed in range(bench.rounds(STREAMS, 1))
            )
            timed = _time(bench, joins, a) if joins in DRAWN and a in TIMED_A else ()
            points.append(SkewPoint(joins, a, counted, *timed))
            bench.log(f"  {joins} joins, A {a:.0%}: {points[-1].improvement():.1f} % fewer calls")
    return points


def _time(bench: Bench, joins: int, a: float) -> tuple[float, float, float]:
    """The gain in time with hidden keys, with integer keys, and the A/A control of the first."""
    rows, rounds = bench.rows(ROWS, 3_000), bench.rounds(3, 1)
    hidden = time(star_case(StreamStar(skewed(joins, a), hashed=True), rows, 0), rounds)[0]
    plain = time(star_case(StreamStar(skewed(joins, a)), rows, 0), rounds)[0]
    return time_gain(hidden), time_gain(plain), hidden.a_a


def results(points: Sequence[SkewPoint]) -> list[Result]:
    """The claims of § 6.3, and our own: how near to Content-Knows."""
    streams = len(points[0].counted)
    note = f"chunks of {CHUNK} tuples (the paper: 1), {streams} streams a point (it says no number)"
    every: dict[str, object] = {"points": [point.details() for point in points]}
    largest = max(points, key=lambda point: (point.joins, -point.a))
    less = [point for point in points if point.a < point.b]
    more = [point for point in points if point.a > point.b]
    found = []
    for what, paper, of_points, details in (
        (f"{largest.joins} joins, largest skew", 67.8, [largest], largest.details()),
        ("A < B, all joins", 26.9, less, every),
        ("A > B, all joins", 10.2, more, every),
    ):
        means = {of: _mean(of_points, of) for of in (LEARNS, OWN, KNOWS)}
        for settings, of in (("", LEARNS), (", settings beyond the paper's", OWN)):
            name = f"{what}{settings}: fewer routing calls than SBR"
            found.append(_calls("3, 4", name, paper, means[of], note, {"means": means, **details}))
    for joins in sorted({point.joins for point in points}):
        figure = DRAWN.get(joins, "3, 4")
        of_joins = [point for point in points if point.joins == joins]
        name = f"{joins} joins, mean over all A: fewer routing calls than SBR"
        means = {of: _mean(of_joins, of) for of in (LEARNS, OWN, KNOWS)}
        found.append(_calls(figure, name, None, means[LEARNS], note, {"means": means}))
        found += _timed(figure, of_joins)
    return [*found, *_above_knows(points)]


def _mean(points: Sequence[SkewPoint], of: str) -> float:
    return statistics.fmean(point.improvement(of) for point in points)


def _above_knows(points: Sequence[SkewPoint]) -> list[Result]:
    """The worst point: a mean over all A would hide where too little is learned."""
    rows = []
    for of in (LEARNS, OWN):
        worst = max(points, key=lambda point: point.above_knows(of))
        name = f"{of}: calls above Content-Knows after {LEARNED_AFTER:,} tuples, worst skew"
        claim = Claim("cbr", "3, 4", name, MOST_ABOVE_KNOWS, "%", "at most", 0.0, "project")
        above = [
            {"joins": point.joins, "A": point.a, "percent": round(point.above_knows(of), 2)}
            for point in points
        ]
        kept = sum(point.above_knows(of) <= MOST_ABOVE_KNOWS for point in points)
        note = f"{worst.joins} joins, A {worst.a:.0%}; kept at {kept} of {len(points)} points"
        rows.append(Result(claim, worst.above_knows(of), note=note, details={"points": above}))
    return rows


def _calls(
    figure: str, name: str, paper: float | None, ours: float, note: str, details: dict[str, object]
) -> Result:
    claim = Claim("cbr", figure, name, paper, "%", "more", 0.0)
    return Result(claim, ours, note=note, details=details)


def _timed(figure: str, points: Sequence[SkewPoint]) -> list[Result]:
    """The least A, whose gain the figures show largest."""
    timed = [point for point in points if point.time_gain is not None]
    if not timed:
        return []
    point = min(timed, key=lambda point: point.a)
    name = f"{point.joins} joins, A {point.a:.0%}: less time than SBR"
    claim = Claim("cbr", figure, name, None, "%", "more", 0.0)
    note = f"keyed hashes, chunks of {TIME_CHUNK}"
    details = {"points": [each.details() for each in timed]}
    return [Result(claim, point.time_gain, point.a_a, note, details)]
