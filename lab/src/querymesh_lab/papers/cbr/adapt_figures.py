"""CBR § 6.6: Figure 8, how Content-Learns follows the Lab data, and the averages of Q2."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.fabric.core.metrics import Metrics
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import Timing
from querymesh_lab.papers.cbr.cbr_lab import KNOWN, MEASURED, q1, q2, random_bounds
from querymesh_lab.papers.cbr.eddy_runs import (
    BETTER,
    COUNTING,
    LEARNS,
    LOTTERY,
    SBR,
    EddyCase,
    drawing,
    half_interval,
    mean_and_error,
    time,
    time_gain,
)
from querymesh_lab.papers.claim import Claim, Result

QUERIES = 50
TIMED_QUERIES = 6
LOTTERY_CHUNK = 1000


@dataclass(frozen=True)
class Moment:
    """What a profile of light > 500 found: the best attribute, or None, and the sensor's gain."""

    hours: float
    selectivity: float
    best: str | None
    sensor_gain: float


def figure_8(batch: pa.RecordBatch) -> list[Moment]:
    """Q1 over the days there are; hours since midnight of the first.

    What tells about light may be any attribute but light.
    """
    attributes = (*KNOWN, *(name for name in MEASURED if name != "light"))
    case = q1(batch, attributes)
    router = case.learns(COUNTING)
    case.run(router)
    bright = np.asarray(pc.greater(batch.column("light"), 500))
    day, hour, minute = (np.asarray(batch.column(name)) for name in ("day", "hour", "minute"))
    hours = 24.0 * (day - day[0]) + hour + minute / 60
    found, before = [], 0
    for event in router.learning.events:
        end = min(event.rows, len(bright))
        if end <= before:
            continue
        gains = {candidate.attributes[0]: candidate.gain for candidate in event.gains}
        best = max(gains, key=lambda name: gains[name], default=None)
        tells = best is not None and gains[best] > COUNTING.threshold
        share = float(bright[before:end].mean())
        found.append(
            Moment(float(hours[end - 1]), share, best if tells else None, gains.get("sensor", 0.0))
        )
        before = end
    return found


@dataclass(frozen=True)
class Answered:
    """One random Q2: routing calls a tuple by rival, in all and for tuples that were dropped."""

    calls: dict[str, float]
    until_dropped: dict[str, float]
    passed: float

    def improvement(self, over: str, dropped: bool = False) -> float:
        """Percent fewer calls of Content-Learns."""
        of = self.until_dropped if dropped else self.calls
        rival = min(of[SBR], of[LOTTERY]) if over == BETTER else of[over]
        return 100 * (1 - of[LEARNS] / rival) if rival else 0.0


def answer(case: EddyCase) -> Answered:
    """Count the calls of every rival."""
    rows = case.batch.num_rows
    lottery = replace(COUNTING, choice="lottery", chunk=LOTTERY_CHUNK)
    routers = {
        SBR: case.sbr(COUNTING), LOTTERY: case.sbr(lottery), LEARNS: case.learns(COUNTING)
    }  # fmt: skip
    calls, dropped, passed = {}, {}, 0.0
    for name, router in routers.items():
        done = case.run(router)
        passed = done.rows_out / rows
        calls[name] = done.routing_calls / rows
        dropped[name] = calls[name] - len(case.bound.operators) * passed
    return Answered(calls, dropped, passed)


@dataclass
class Queries:
    """What came out for the random queries Q2."""

    answered: list[Answered]
    timings: list[Timing]
    operator_gains: dict[str, list[float]]
    """Percent less time in operators, by rival and timed query."""

    def improvements(self, over: str, dropped: bool = False) -> list[float]:
        """Percent fewer calls, query by query."""
        return [each.improvement(over, dropped) for each in self.answered]


def ask(bench: Bench, batch: pa.RecordBatch) -> Queries:
    """Count the calls of all queries, and time some of them."""
    found = Queries([], [], {LOTTERY: [], SBR: []})
    batch = batch.slice(0, bench.rows(batch.num_rows, 8_000))
    for number in range(bench.rounds(QUERIES, 2)):
        case = q2(batch, random_bounds(batch, drawing(number)))
        found.answered.append(answer(case))
        if number < bench.rounds(TIMED_QUERIES, 1):
            timing, last = time(case, bench.rounds(3, 1))
            found.timings.append(timing)
            spent = {name: _operator_seconds(metrics) for name, metrics in last.items()}
            for over, gains in found.operator_gains.items():
                gains.append(100 * (1 - spent[LEARNS] / spent[over]))
    return found


def _operator_seconds(metrics: Metrics) -> float:
    return sum(visits.seconds for visits in metrics.visits.values())


def results_8(moments: Sequence[Moment]) -> list[Result]:
    """The sensor is almost always the best classifier attribute, where there is one."""
    best = [moment.best for moment in moments if moment.best is not None]
    untold = [moment for moment in moments if moment.best is None]
    share = 100 * best.count("sensor") / max(1, len(best))
    claim = Claim(
        "cbr", "8", "Q1: profiles with a classifier attribute whose best is the sensor",
        None, "%", "more", 50.0,
    )  # fmt: skip
    extreme = sum(min(m.selectivity, 1 - m.selectivity) < 0.05 for m in untold)
    details = {
        "profiles": len(moments),
        "with_an_attribute": len(best),
        "without_selectivity_within_5_percent_of_an_end": extreme / max(1, len(untold)),
        "best": {name: best.count(name) for name in set(best)},
        "selectivity_least_and_most": [
            min(m.selectivity for m in moments),
            max(m.selectivity for m in moments),
        ],
    }
    return [Result(claim, share, note="the paper: almost always", details=details)]


def results_q2(found: Queries) -> list[Result]:
    """The averages over random queries, against the paper's SBR and against the better one."""
    details = {
        "queries": len(found.answered),
        "passed": statistics.fmean(each.passed for each in found.answered),
        "calls_a_tuple": {
            name: statistics.fmean(each.calls[name] for each in found.answered)
            for name in (SBR, LOTTERY, LEARNS)
        },
        "calls": mean_and_error([each.improvement(BETTER) for each in found.answered]),
        "calls_over_lottery": mean_and_error([e.improvement(LOTTERY) for e in found.answered]),
    }
    rows = []
    for over, rival in ((LOTTERY, f"{LOTTERY}, the paper's"), (BETTER, BETTER)):
        for dropped, what, paper in (
            (False, "fewer routing calls", 8.0),
            (True, "fewer routing calls until a tuple is dropped", 18.0),
        ):
            claim = Claim("cbr", "Q2", f"Q2: {what} than {rival}", paper, "%", "more", 0.0)
            gains = found.improvements(over, dropped)
            rows.append(
                Result(claim, statistics.fmean(gains), details=details,
                       half_interval=half_interval(gains))
            )  # fmt: skip
    return [*rows, *_timed_q2(found)]


def _timed_q2(found: Queries) -> list[Result]:
    """Time in all and in operators alone, less than that of either form of SBR."""
    a_a = max((timing.a_a for timing in found.timings), key=lambda each: abs(each - 1))
    note = f"{len(found.timings)} of the queries, plain SQL filters, processor time"
    rows = []
    for over, rival in (
        (LOTTERY, f"{LOTTERY}, the paper's"),
        (SBR, "SBR to the least selectivity"),
    ):
        whole = [time_gain(timing, over) for timing in found.timings]
        for name, paper, gains in (
            ("less time evaluating operators", 7.0, found.operator_gains[over]),
            ("less time", 5.0, whole),
        ):
            claim = Claim("cbr", "Q2", f"Q2: {name} than {rival}", paper, "%", "more", 0.0)
            rows.append(
                Result(claim, statistics.fmean(gains), a_a, note,
                       half_interval=half_interval(gains))
            )  # fmt: skip
    return rows
