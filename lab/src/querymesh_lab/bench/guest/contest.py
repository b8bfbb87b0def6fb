"""One case measured: plain Spark in its best form against `df.transform(qm.where(...))`.

Both are timed from the call to the end of the action, so that sampling, training and planning are
in our time. Reading a table's schema (`spark.read.parquet`) is in nobody's.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from itertools import count
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import querymesh as qm
from querymesh.errors import QueryMeshError
from querymesh_lab.bench import fingerprint
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.guest.case import GuestCase
from querymesh_lab.bench.guest.condition import (
    Order,
    as_written,
    default_way,
    for_where,
    in_order,
    label,
    ways,
)
from querymesh_lab.bench.guest.orders import (
    Outcomes,
    fastest_order,
    order_text,
    outcomes_of,
    worst_order,
)
from querymesh_lab.bench.guest.other_orders import orders_of_others
from querymesh_lab.bench.guest.tables import StoredTable, Workshop
from querymesh_lab.bench.measure import RivalsDisagreeError, Timing, interleave

WRITTEN, BEST, WORST = "plain as written", "plain, best order", "plain, worst order"
OURS, AGAIN = "where", "where, called again"
OWN_ENGINES = {"native": "where, engine native", "fabric": "where, engine fabric"}

SHORT_S, LONG_S = 5.0, 25.0
SHORT_ROUNDS, MIDDLE_ROUNDS, LONG_ROUNDS = 5, 3, 2
TOO_SLOW, TOO_LONG_S = 10, 20.0
"""Another engine of ours that takes so many times plain Spark's time, and so long, runs once."""

Action = Callable[[], int]
Build = Callable[[DataFrame], DataFrame]
_PRUNED = re.compile(r"PartitionFilters: \[(?!\])")
_round_numbers = count()


@dataclass
class GuestContest:
    """A case ready to run, and what its runs told about themselves."""

    case: GuestCase
    workshop: Workshop
    table: StoredTable
    way: str
    cached: DataFrame | None = None
    clock_s: float = 0.0
    call_seconds: list[float] = field(default_factory=list)
    engine: str = ""
    explained: str = ""

    def plain(self, order: Order | None = None) -> Action:
        """Plain Spark, as written or in a forced order."""
        at = self.case.conditions

        def build(df: DataFrame) -> DataFrame:
            if order is None:
                return as_written(df, at, self.way)
            return in_order(df, at, order, self.way)

        return lambda: self._timed(build, known=False)

    def where(self, engine: str = "auto", *, again: bool = False) -> Action:
        """`qm.where` with its defaults, or with an engine asked for; `again` on the same path."""
        ours = engine == "auto" and not again

        def build(df: DataFrame) -> DataFrame:
            started = perf_counter()
            out = df.transform(self.filter_by_where(engine))
            if ours:
                self.call_seconds.append(perf_counter() - started)
            return out

        def action() -> int:
            return self._timed(build, known=again, note=ours)

        return action

    def filter_by_where(self, engine: str = "auto") -> Build:
        """What a user writes."""
        given = for_where(self.case.conditions, self.case.given)
        return qm.where(*given) if engine == "auto" else qm.where(*given, engine=engine)

    @contextmanager
    def frame(self, *, known: bool = False) -> Iterator[DataFrame]:
        """The input of a run: under a path (or a plan) of its own, unless it may be known."""
        if self.cached is not None:
            number = 0 if known else 1 + next(_round_numbers)
            yield self.cached.withColumn("run_number", F.lit(number))
        elif known:
            yield self.table.read(self.workshop.session)
        else:
            with self.table.linked() as path:
                yield self.workshop.session.read.parquet(str(path))

    def _timed(self, build: Build, *, known: bool, note: bool = False) -> int:
        with self.frame(known=known) as df:
            started = perf_counter()
            out = build(df)
            answer = self._act(out)
            self.clock_s += perf_counter() - started
            if note:
                run = qm.inspect(out)
                self.engine, self.explained = run.engine, str(run.explain())
        return answer

    def _act(self, out: DataFrame) -> int:
        if self.case.sink == "count":
            return out.count()
        out.write.format("noop").mode("overwrite").save()
        return 0

    def check_rows(self) -> None:
        """For a sink that answers nothing: the rows of both must be the same."""
        with self.frame() as df:
            expected = fingerprint.of_rows(as_written(df, self.case.conditions, self.way))
            got = fingerprint.of_rows(df.transform(self.filter_by_where()))
        if got != expected:
            raise RivalsDisagreeError(
                f"where gives {got[0]} rows with hash {got[1]}, plain Spark {expected[0]} with "
                f"{expected[1]}"
            )

    def partitions_pruned(self) -> bool:
        """Whether the physical plan of `where` reads only the partitions it must."""
        with self.frame() as df, redirect_stdout(StringIO()) as said:
            df.transform(self.filter_by_where()).explain()
        return _PRUNED.search(said.getvalue()) is not None


def rounds_for(seconds: float, quick: bool) -> int:
    """How many rounds a job of this length gets.

    >>> rounds_for(1.0, quick=False), rounds_for(10.0, quick=False), rounds_for(60.0, quick=False)
    (5, 3, 2)
    """
    if quick:
        return 1
    if seconds < SHORT_S:
        return SHORT_ROUNDS
    return MIDDLE_ROUNDS if seconds < LONG_S else LONG_ROUNDS


def fastest_way(case: GuestCase, df: DataFrame, rounds: int) -> tuple[str, dict[str, float]]:
    """The fastest form of the Python conditions in plain Spark, and the seconds of each form.

    A form that answers otherwise than the usual one is no rival: pandas has floating-point numbers
    where a column of integers has NULLs.
    """
    usual, names = default_way(case.conditions), ways(case.conditions)
    if len(names) < 2:
        return usual, {}

    def attempt(way: str) -> Action:
        return lambda: as_written(df, case.conditions, way).count()

    expected = attempt(usual)()
    names = [way for way in names if way == usual or attempt(way)() == expected]
    timing = interleave({way: attempt(way) for way in names}, rounds)
    medians = timing.median_seconds()
    return timing.fastest(names), {name: round(medians[name], 4) for name in names}


def run_case(case: GuestCase, workshop: Workshop) -> Finding:
    """Measure a case; `AbsentError` where its table cannot be made here."""
    bench = workshop.bench
    table = case.table(workshop)
    small = workshop.small(table).read(workshop.session)
    tries = bench.rounds(2, 1)
    way, ways_seconds = fastest_way(case, small, tries)
    outcomes = outcomes_of(small, case.conditions, way)
    best, orders_seconds = fastest_order(small, case.conditions, way, outcomes, tries)
    contest = GuestContest(case, workshop, table, way)
    if case.cached:
        contest.cached = table.read(workshop.session).cache()
        contest.cached.count()
    try:
        timing, once = _interleaved(contest, *_contenders(contest, best, outcomes))
        if case.sink == "noop":
            contest.check_rows()
    finally:
        if contest.cached is not None:
            contest.cached.unpersist()
    details: dict[str, Any] = {
        "group": case.group,
        "kind": case.kind,
        "rows": table.rows,
        **table.details,
        "conditions": [label(c) for c in case.conditions],
        "given": case.given,
        "sink": case.sink,
        "cached": case.cached,
        "selectivities": outcomes.selectivities().round(5).tolist(),
        "cost_us": outcomes.cost_us.round(3).tolist(),
        "plain_way": way if ways_seconds else "SQL",
        "plain_ways_seconds": ways_seconds,
        "best_order": order_text(best),
        "orders_seconds": orders_seconds,
        **timing_details(timing),
        **_ratios(timing, once),
        "engine": contest.engine,
        "seconds_until_where_returned": round(statistics.median(contest.call_seconds), 4),
        "explained": contest.explained,
    }
    if case.group == "partitioned":
        details["partitions_pruned"] = contest.partitions_pruned()
    if case.orders_of_others:
        details["worst_to_chosen"] = {
            "where": round(timing.ratio(WORST, OURS), 4),
            **orders_of_others(table.folder, case.conditions, bench),
        }
    return Finding(
        case.name, "plain Spark in its best form over where", details["ratio_best"], "×",
        "at least", case.target, details, timed=True,
    )  # fmt: skip


def _contenders(
    contest: GuestContest, best: Order, outcomes: Outcomes
) -> tuple[dict[str, Action], dict[str, Action]]:
    """Everybody who runs, and our own other engines, which may refuse."""
    actions = {WRITTEN: contest.plain(), BEST: contest.plain(best)}
    if contest.case.orders_of_others:
        actions[WORST] = contest.plain(worst_order(outcomes))
    actions |= {OURS: contest.where(), AGAIN: contest.where(again=True)}
    return actions, {called: contest.where(engine) for engine, called in OWN_ENGINES.items()}


def _interleaved(
    contest: GuestContest, actions: dict[str, Action], engines: dict[str, Action]
) -> tuple[Timing, dict[str, float | str]]:
    """All contenders in rounds; also what is known of engines that cannot run, or ran only once.

    Everybody runs once before, to warm up; in a long job that is done on a part of the rows.
    """
    bench, whole = contest.workshop.bench, contest.table
    took = {WRITTEN: _seconds(contest, actions[WRITTEN])}
    if took[WRITTEN] >= LONG_S:
        contest.table = contest.workshop.small(whole)
    for name in actions:
        if name not in took:
            took[name] = _seconds(contest, actions[name])
    once: dict[str, float | str] = {}
    running = dict(actions)
    for name, action in engines.items():
        try:
            took[name] = _seconds(contest, action)
        except QueryMeshError as refused:
            once[name] = str(refused).splitlines()[0]
            continue
        if took[name] > max(TOO_LONG_S, TOO_SLOW * took[WRITTEN]):
            once[name] = took[name]
        else:
            running[name] = action
    contest.table = whole
    contest.call_seconds.clear()
    bench.log("  once: " + ", ".join(f"{name} {s:.2f} s" for name, s in took.items()))
    rounds = rounds_for(max(took[WRITTEN], took[OURS]), bench.quick)
    timing = interleave(
        running, rounds, control=WRITTEN, warm_ups=0, log=bench.log, clock=lambda: contest.clock_s
    )
    return timing, once


def _seconds(contest: GuestContest, action: Action) -> float:
    before = contest.clock_s
    action()
    return contest.clock_s - before


def _ratios(timing: Timing, once: dict[str, float | str]) -> dict[str, Any]:
    """Plain Spark over ours, in its best form and as written; ours over our own other engines."""
    rival = timing.fastest([WRITTEN, BEST])
    ours_s = timing.median_seconds()[OURS]
    own: dict[str, Any] = {}
    for engine, called in OWN_ENGINES.items():
        known = once.get(called)
        if called in timing.seconds:
            own[engine] = round(timing.ratio(OURS, called), 4)
        elif isinstance(known, float):
            own[engine] = round(ours_s / known, 4)
        else:
            own[engine] = known
    return {
        "rival": rival,
        "ratio_best": round(timing.ratio(rival, OURS), 4),
        "ratio_written": round(timing.ratio(WRITTEN, OURS), 4),
        "ratio_again": round(timing.ratio(rival, AGAIN), 4),
        "ours_over_own": own,
        "own_run_once": sorted(e for e, c in OWN_ENGINES.items() if isinstance(once.get(c), float)),
    }
