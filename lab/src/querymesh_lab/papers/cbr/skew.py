"""CBR § 6.3, Figures 3 and 4: how much fewer routing calls with more skew.

As many classes as joins; class k passes operator k with chance A and all others with chance B, so
that 5 % of all tuples pass everything. The paper draws two and six joins; four and eight are the
forms it left out. A goes from 5 % to 95 % in steps of 10 %. Times are those of `timed_streams`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.cbr.counting import (
    QUICK_ROWS,
    ROWS,
    STREAMS,
    CountedStream,
    count_streams,
)
from querymesh_lab.papers.cbr.eddy_runs import (
    CHUNK,
    KNOWS,
    LEARNED_AFTER,
    LEARNS,
    MOST_ABOVE_KNOWS,
    OWN,
    CountedRun,
    half_interval,
    mean_and_error,
)
from querymesh_lab.papers.cbr.stream_star import skewed
from querymesh_lab.papers.claim import Claim, Result

JOINS = (2, 4, 6, 8)
DRAWN = {2: "3", 6: "4"}
"""Joins by the figure that has them; the others are named after the nearest."""

A_VALUES = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
BEYOND_STREAMS = 10
"""Streams of a point that are also counted with settings beyond the paper's, which takes as long
as all the rest."""


@dataclass(frozen=True)
class SkewPoint:
    """Some streams of one skew."""

    joins: int
    a: float
    counted: tuple[CountedRun, ...]

    @property
    def b(self) -> float:
        """The selectivity of the other operators."""
        return skewed(self.joins, self.a)[0][1]

    @property
    def skew(self) -> float:
        """A - B, in percent, as the figures have it."""
        return 100 * (self.a - self.b)

    def improvements(self, of: str = LEARNS) -> list[float]:
        """Percent fewer calls than SBR, stream by stream of those that have it."""
        return [each.improvement(of) for each in self.counted if of in each.calls]

    def improvement(self, of: str = LEARNS) -> float:
        """Percent fewer calls than SBR, the mean of the streams."""
        return statistics.fmean(self.improvements(of))

    def above_knows(self, of: str = LEARNS) -> float:
        """Percent more calls than Content-Knows, once learned: the mean of the streams."""
        return statistics.fmean(self.all_above_knows(of))

    def all_above_knows(self, of: str = LEARNS) -> list[float]:
        """The same, stream by stream of those that have it."""
        return [each.above_knows(of) for each in self.counted if of in each.late]

    def details(self) -> dict[str, object]:
        """The figures of the point, as `--json` writes them."""
        calls = {
            name: round(statistics.fmean(e.calls[name] for e in self.counted if name in e.calls), 4)
            for name in self.counted[0].calls
        }
        return {
            "joins": self.joins,
            "A": self.a,
            "B": round(self.b, 4),
            "calls_a_tuple": calls,
            "improvement": mean_and_error(self.improvements()),
            "improvement_beyond": mean_and_error(self.improvements(OWN)),
            "improvement_knows": round(self.improvement(KNOWS), 2),
            "late_above_knows": round(self.above_knows(), 2),
            "late_above_knows_beyond": round(self.above_knows(OWN), 2),
        }


def measure(bench: Bench) -> list[SkewPoint]:
    """Measure every point; in a quick run only the ends."""
    rows, number = bench.rows(ROWS, QUICK_ROWS), bench.rounds(STREAMS, 1)
    points = []
    for joins in (2, 4) if bench.quick else JOINS:
        for a in (0.05, 0.95) if bench.quick else A_VALUES:
            matrix = skewed(joins, a)
            streams = [
                CountedStream(matrix, rows, seed, seed < BEYOND_STREAMS) for seed in range(number)
            ]
            points.append(SkewPoint(joins, a, tuple(count_streams(bench, streams))))
            bench.log(f"  {joins} joins, A {a:.0%}: {points[-1].improvement():.1f} % fewer calls")
    return points


def results(points: Sequence[SkewPoint]) -> list[Result]:
    """The claims of § 6.3, and our own: how near to Content-Knows."""
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
        for settings, of in (("", LEARNS), (", settings beyond the paper's", OWN)):
            name = f"{what}{settings}: fewer routing calls than SBR"
            found.append(_calls("3, 4", name, paper, of_points, of, details))
    for joins in sorted({point.joins for point in points}):
        of_joins = [point for point in points if point.joins == joins]
        name = f"{joins} joins, mean over all A: fewer routing calls than SBR"
        found.append(_calls(DRAWN.get(joins, "3, 4"), name, None, of_joins, LEARNS, {}))
    return [*found, *_above_knows(points)]


def _calls(
    figure: str, name: str, paper: float | None, points: Sequence[SkewPoint], of: str,
    details: dict[str, object],
) -> Result:  # fmt: skip
    """A row for the mean over some points; the bound is what Content-Knows reaches there."""
    means = {rival: _mean(points, rival) for rival in (LEARNS, OWN, KNOWS)}
    by_stream = [
        statistics.fmean(values)
        for values in zip(*(p.improvements(of) for p in points), strict=True)
    ]
    note = (
        f"chunks of {CHUNK} tuples (the paper: 1), {len(by_stream)} streams a point; the limit is "
        "Content-Knows"
    )
    claim = Claim("cbr", figure, name, paper, "%", "more", 0.0)
    return Result(
        claim, means[of], note=note, details={"means": means, **details},
        half_interval=half_interval(by_stream), limit=means[KNOWS],
    )  # fmt: skip


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
        rows.append(Result(
            claim, worst.above_knows(of), note=note, details={"points": above},
            half_interval=half_interval(worst.all_above_knows(of)),
        ))  # fmt: skip
    return rows
