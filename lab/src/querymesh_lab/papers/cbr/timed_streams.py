"""What Content-Learns takes beside both forms of SBR: the times of CBR's Figures 3, 4, 6, 7 and 10.

Look-ups go by keyed hashes, some 2 µs each; integer keys are in the details of 3, 4 and 6.
All is processor time, by chunks of `TIME_CHUNK` tuples. In chunks a lottery pays for spreading each
of them over all subsets of operators, which the paper's Eddy, deciding tuple by tuple, did not.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from querymesh.fabric.core.metrics import Metrics
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import Timing
from querymesh_lab.papers.cbr.counting import ROWS
from querymesh_lab.papers.cbr.eddy_runs import (
    LEARNS,
    LOTTERY,
    SBR,
    TIME_CHUNK,
    half_interval,
    star_case,
    time,
    time_gain,
)
from querymesh_lab.papers.cbr.random_selectivities import (
    AGGREGATE_JOINS,
    AGGREGATES,
    JOINS,
    drawn_matrix,
)
from querymesh_lab.papers.cbr.skew import DRAWN
from querymesh_lab.papers.cbr.stream_star import Matrix, StreamStar, skewed
from querymesh_lab.papers.claim import Claim, Result

TIMED_A = (0.05, 0.95)
STREAMS = 3
ROUNDS = 3
QUICK_ROWS = 3_000
PRINTED = {("6", 4): 12.8, ("6", 6): 18.8, ("6", 8): 19.7, ("7", 0.05): 25.4}
"""The paper's percent of time saved, by figure and point."""

MOST_OVERHEAD = 5.0
RIVALS = {
    LOTTERY: f"{LOTTERY}, the paper's",
    SBR: f"{SBR} to the least selectivity",
}


@dataclass
class TimedStreams:
    """Some streams of one point, timed; `last` is what each rival did in the last round."""

    figure: str
    name: str
    point: float
    timings: list[Timing]
    last: list[dict[str, Metrics]]
    plain: list[Timing]
    """The same streams with integer keys, where they were timed."""

    def gain(self, over: str) -> float:
        """Percent less time than a form of SBR, the mean of the streams."""
        return statistics.fmean(time_gain(timing, over) for timing in self.timings)

    @property
    def a_a(self) -> float:
        """The A/A control: SBR's time over SBR's own, the one furthest from 1."""
        return max((timing.a_a for timing in self.timings), key=lambda a_a: abs(a_a - 1))

    def details(self) -> dict[str, object]:
        """The figures of the point, as `--json` writes them."""
        return {
            "seconds": [timing.median_seconds() for timing in self.timings],
            "calls_a_tuple": [
                {name: m.routing_calls / m.rows_in for name, m in last.items()}
                for last in self.last
            ],
            "integer_keys_percent": {
                over: statistics.fmean(time_gain(each, over) for each in self.plain)
                for over in RIVALS
                if self.plain
            },
            "streams": len(self.timings),
            "chunk": TIME_CHUNK,
        }


def measure(bench: Bench) -> list[TimedStreams]:
    """Every point that has a time in the paper; one of each figure when quick."""
    found = []
    for joins in (2,) if bench.quick else DRAWN:
        for a in TIMED_A[:1] if bench.quick else TIMED_A:
            name = f"{joins} joins, A {a:.0%}"
            found.append(_timed(bench, DRAWN[joins], name, a, [skewed(joins, a)], True))
    numbers = range(bench.rounds(STREAMS, 1))
    for joins in (4,) if bench.quick else JOINS:
        drawn = [drawn_matrix(joins, None, seed) for seed in numbers]
        name = f"{joins} joins, random selectivities"
        found.append(_timed(bench, "6", name, joins, drawn, True))
    for share in AGGREGATES[:1] if bench.quick else AGGREGATES:
        drawn = [drawn_matrix(AGGREGATE_JOINS, share, seed) for seed in numbers]
        name = f"{AGGREGATE_JOINS} joins, aggregate selectivity {share:.0%}"
        found.append(_timed(bench, "7", name, share, drawn, False))
    return found


def _timed(
    bench: Bench, figure: str, name: str, point: float, matrices: Sequence[Matrix], plain: bool
) -> TimedStreams:
    rows, rounds = bench.rows(ROWS, QUICK_ROWS), bench.rounds(ROUNDS, 1)
    found = TimedStreams(figure, name, point, [], [], [])
    for seed, matrix in enumerate(matrices):
        timing, last = time(star_case(StreamStar(matrix, hashed=True), rows, seed), rounds)
        found.timings.append(timing)
        found.last.append(last)
        if plain:
            found.plain.append(time(star_case(StreamStar(matrix), rows, seed), rounds)[0])
    gains = ", ".join(f"{found.gain(over):.1f} % less than {over}" for over in RIVALS)
    bench.log(f"  {name}: time {gains}; A/A {found.a_a:.2f}")
    return found


def results(found: Sequence[TimedStreams]) -> list[Result]:
    """Less time than either form of SBR at every point, and Figure 10's overheads."""
    rows = []
    for streams in found:
        paper = PRINTED.get((streams.figure, streams.point))
        for over, rival in RIVALS.items():
            claim = Claim(
                "cbr", streams.figure, f"{streams.name}: less time than {rival}", paper, "%",
                "more", 0.0,
            )  # fmt: skip
            note = f"keyed hashes, chunks of {TIME_CHUNK}, processor time"
            rows.append(
                Result(claim, streams.gain(over), streams.a_a, note, streams.details(),
                       half_interval([time_gain(timing, over) for timing in streams.timings]))
            )  # fmt: skip
    return [*rows, *_overheads([streams for streams in found if streams.figure == "6"])]


def _overheads(found: Sequence[TimedStreams]) -> list[Result]:
    """Figure 10: the share of the time that routing and learning take."""
    rows = []
    for streams in found:
        for name in (SBR, LOTTERY, LEARNS):
            shares = [percent(last[name]) for last in streams.last]
            text = f"{streams.point} joins: {name}'s routing and learning, of the whole time"
            claim = Claim("cbr", "10", text, MOST_OVERHEAD, "%", "at most", 0.0)
            rows.append(
                Result(claim, statistics.fmean(shares), None, f"{len(shares)} streams",
                       {"us_a_call": us_a_call(name, streams)}, half_interval(shares))
            )  # fmt: skip
    return rows


def us_a_call(name: str, streams: TimedStreams) -> dict[str, float]:
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
