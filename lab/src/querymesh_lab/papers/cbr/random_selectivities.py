"""CBR § 6.4 and 6.5, Figures 5, 6, 7 and 10: random selectivities.

The paper says that its selectivities were random, not from which distribution, and that 8 % of the
tuples passed everything on average. Here they are uniform between 0 and 1, each class (as many as
joins) with its own, which gives 6 % with four joins and less with more. Figure 7 keeps that share
at what is asked for.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field

from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.routers.eddy import NO_PAIR, PAIR, PROFILING
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import Timing
from querymesh_lab.papers.cbr.eddy_runs import (
    BETTER,
    CHUNK,
    KNOWS,
    LEARNS,
    LOTTERY,
    OWN,
    SBR,
    CountedRun,
    count,
    drawing,
    mean_and_error,
    star_case,
    time,
    time_gain,
)
from querymesh_lab.papers.cbr.stream_star import CLASSIFIER, StreamStar, random_selectivities

JOINS = (4, 6, 8)
AGGREGATES = (0.05, 0.15, 0.25, 0.35)
AGGREGATE_JOINS = 6
STREAMS = 10
AGGREGATE_STREAMS = 6
TIMED_STREAMS = 3
ROWS = 100_000
RIGHT, WRONG, NONE = "right classifier", "wrong classifier", "no classifier"


@dataclass
class RandomStreams:
    """Several streams of one kind, counted; some of them timed."""

    joins: int
    aggregate: float | None = None
    counted: list[CountedRun] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    plain_timings: list[Timing] = field(default_factory=list)
    last: list[dict[str, Metrics]] = field(default_factory=list)
    """What SBR and Content-Learns did in the last round of each timed stream."""
    plain_last: list[dict[str, Metrics]] = field(default_factory=list)

    def improvements(self, over: str, of: str = LEARNS) -> list[float]:
        """Percent fewer calls than a form of SBR, stream by stream."""
        return [each.improvement(of, over) for each in self.counted]

    def improvement(self, over: str, of: str = LEARNS) -> float:
        """Percent fewer routing calls than SBR, on average over the streams."""
        return statistics.fmean(self.improvements(over, of))

    @property
    def time_gain(self) -> float:
        """Percent less time, the mean over the timed streams."""
        return statistics.fmean(time_gain(timing) for timing in self.timings)

    @property
    def plain_time_gain(self) -> float:
        """Percent less time than SBR with integer keys."""
        return statistics.fmean(time_gain(timing) for timing in self.plain_timings)

    @property
    def a_a(self) -> float:
        """The A/A control: SBR's time over SBR's own."""
        return statistics.fmean(timing.a_a for timing in self.timings)

    def above_knows(self, of: str = LEARNS) -> float:
        """Percent more calls than Content-Knows, once learned: the mean over the streams."""
        return statistics.fmean(each.above_knows(of) for each in self.counted)

    def breakdown(self) -> dict[str, float]:
        """Percent of Content-Learns' routing calls, by what they went by."""
        found: Counter[str] = Counter()
        for each in self.counted:
            for (_, went_by), calls in each.learned.routing.items():
                found[kind_of(went_by)] += calls
        whole = sum(found.values())
        return {kind: 100 * found[kind] / whole for kind in (RIGHT, WRONG, NONE, PROFILING)}

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
            "late_above_knows": mean_and_error([each.above_knows() for each in self.counted]),
            "breakdown": self.breakdown(),
            "time_gain_integer_keys": self.plain_time_gain if self.plain_timings else None,
            "timed_streams": len(self.timings),
            "chunk": CHUNK,
        }


def kind_of(went_by: str) -> str:
    """Figure 5's names: on Stream-Star attrC is the right classifier of every operator."""
    if went_by.startswith(f"{PAIR} "):
        return RIGHT if went_by == f"{PAIR} {CLASSIFIER}" else WRONG
    return PROFILING if went_by == PROFILING else NO_PAIR


def measure(bench: Bench) -> list[RandomStreams]:
    """Measure what Figures 5, 6 and 10 show, by the number of joins."""
    numbers = (4,) if bench.quick else JOINS
    return [_streams(bench, joins, None, bench.rounds(STREAMS, 1)) for joins in numbers]


def by_aggregate(bench: Bench) -> list[RandomStreams]:
    """Figure 7: by the share of tuples that pass everything."""
    joins, shares = (4, (0.05, 0.35)) if bench.quick else (AGGREGATE_JOINS, AGGREGATES)
    count_of = bench.rounds(AGGREGATE_STREAMS, 1)
    return [_streams(bench, joins, share, count_of) for share in shares]


def _streams(bench: Bench, joins: int, aggregate: float | None, number: int) -> RandomStreams:
    rows, rounds = bench.rows(ROWS, 6_000), bench.rounds(3, 1)
    found = RandomStreams(joins, aggregate)
    for seed in range(number):
        rng = drawing(joins, round(100 * (aggregate or 0)), seed)
        matrix = random_selectivities(joins, rng, aggregate)
        found.counted.append(count(star_case(StreamStar(matrix), rows, seed)))
        if seed < TIMED_STREAMS:
            hidden = time(star_case(StreamStar(matrix, hashed=True), rows, seed), rounds)
            plain = time(star_case(StreamStar(matrix), rows, seed), rounds)
            found.timings.append(hidden[0])
            found.last.append(hidden[1])
            found.plain_timings.append(plain[0])
            found.plain_last.append(plain[1])
    what = f"aggregate {aggregate:.0%}" if aggregate else "random"
    bench.log(f"  {joins} joins, {what}: {found.improvement(LOTTERY):.1f} % fewer calls")
    return found
