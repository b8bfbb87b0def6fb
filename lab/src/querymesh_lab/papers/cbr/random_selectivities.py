"""CBR § 6.4 and 6.5, Figures 5, 6 and 7: calls with random selectivities.

The paper says that its selectivities were random, not from which distribution, and that 8 % of the
tuples passed everything on average. Here they are uniform between 0 and 1, each class (as many as
joins) with its own, which gives 6 % with four joins and less with more. Figure 7 keeps that share
at what is asked for. Times are those of `timed_streams`.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field

from querymesh.fabric.routers.eddy import NO_PAIR, PAIR, PROFILING
from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.cbr.counting import (
    QUICK_ROWS,
    ROWS,
    STREAMS,
    CountedStream,
    count_streams,
)
from querymesh_lab.papers.cbr.eddy_runs import (
    BETTER,
    CHUNK,
    KNOWS,
    LEARNS,
    LOTTERY,
    OWN,
    SBR,
    CountedRun,
    drawing,
    mean_and_error,
)
from querymesh_lab.papers.cbr.stream_star import CLASSIFIER, Matrix, random_selectivities

JOINS = (4, 6, 8)
AGGREGATES = (0.05, 0.15, 0.25, 0.35)
AGGREGATE_JOINS = 6
RIGHT, WRONG, NONE = "right classifier", "wrong classifier", "no classifier"


@dataclass
class RandomStreams:
    """Several streams of one kind, counted."""

    joins: int
    aggregate: float | None = None
    counted: list[CountedRun] = field(default_factory=list)

    def improvements(self, over: str, of: str = LEARNS) -> list[float]:
        """Percent fewer calls than a form of SBR, stream by stream."""
        return [each.improvement(of, over) for each in self.counted]

    def improvement(self, over: str, of: str = LEARNS) -> float:
        """Percent fewer routing calls than SBR, on average over the streams."""
        return statistics.fmean(self.improvements(over, of))

    def above_knows(self, of: str = LEARNS) -> list[float]:
        """Percent more calls than Content-Knows, once learned, stream by stream."""
        return [each.above_knows(of) for each in self.counted]

    def breakdown(self) -> dict[str, float]:
        """Percent of Content-Learns' routing calls, by what they went by."""
        return _shares(self.counted)

    def wrong(self) -> list[float]:
        """Percent of Content-Learns' routing calls by a wrong classifier, stream by stream."""
        return [_shares([each])[WRONG] for each in self.counted]

    def details(self) -> dict[str, object]:
        """The figures of these streams, as `--json` writes them."""
        passed = [each.learned.rows_out / each.learned.rows_in for each in self.counted]
        return {
            "joins": self.joins,
            "aggregate_asked": self.aggregate,
            "aggregate_selectivity": statistics.fmean(passed),
            "calls_a_tuple": {
                name: statistics.fmean(each.calls[name] for each in self.counted)
                for name in (SBR, LOTTERY, LEARNS, OWN, KNOWS)
            },
            "improvement": {
                over: mean_and_error(self.improvements(over)) for over in (LOTTERY, BETTER)
            },
            "improvement_knows": {
                over: self.improvement(over, KNOWS) for over in (LOTTERY, BETTER)
            },
            "late_above_knows": mean_and_error(self.above_knows()),
            "breakdown": self.breakdown(),
            "chunk": CHUNK,
        }


def _shares(counted: list[CountedRun]) -> dict[str, float]:
    found: Counter[str] = Counter()
    for each in counted:
        for (_, went_by), calls in each.learned.routing.items():
            found[kind_of(went_by)] += calls
    whole = sum(found.values())
    return {kind: 100 * found[kind] / whole for kind in (RIGHT, WRONG, NONE, PROFILING)}


def kind_of(went_by: str) -> str:
    """Figure 5's names: on Stream-Star attrC is the right classifier of every operator."""
    if went_by.startswith(f"{PAIR} "):
        return RIGHT if went_by == f"{PAIR} {CLASSIFIER}" else WRONG
    return PROFILING if went_by == PROFILING else NO_PAIR


def measure(bench: Bench) -> list[RandomStreams]:
    """Measure what Figures 5 and 6 show, by the number of joins."""
    numbers = (4,) if bench.quick else JOINS
    return [_streams(bench, joins, None) for joins in numbers]


def by_aggregate(bench: Bench) -> list[RandomStreams]:
    """Figure 7: by the share of tuples that pass everything."""
    joins, shares = (4, (0.05, 0.35)) if bench.quick else (AGGREGATE_JOINS, AGGREGATES)
    return [_streams(bench, joins, share) for share in shares]


def drawn_matrix(joins: int, aggregate: float | None, seed: int) -> Matrix:
    """The selectivities of one stream of Figures 5 to 7."""
    rng = drawing(joins, round(100 * (aggregate or 0)), seed)
    return random_selectivities(joins, rng, aggregate)


def _streams(bench: Bench, joins: int, aggregate: float | None) -> RandomStreams:
    rows = bench.rows(ROWS, QUICK_ROWS)
    streams = [
        CountedStream(drawn_matrix(joins, aggregate, seed), rows, seed)
        for seed in range(bench.rounds(STREAMS, 1))
    ]
    found = RandomStreams(joins, aggregate, count_streams(bench, streams))
    what = f"aggregate {aggregate:.0%}" if aggregate else "random"
    bench.log(f"  {joins} joins, {what}: {found.improvement(LOTTERY):.1f} % fewer calls")
    return found
