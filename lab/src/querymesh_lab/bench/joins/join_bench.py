"""`querymesh bench join`: a join of several windowed streams against Spark's chain and Flink.

Every contestant replays the same files, case by case and in turns; every answer, of every run, must
be DuckDB's. What is timed is the query: not the start of Spark or Flink, nor the check. Beside them
runs the floor, Spark's own part of our join, which answers nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.text import Text

from querymesh.options import check_name
from querymesh.report.text.figures import table
from querymesh.spark.session import local_session
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.join_data import Design
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.fingerprint import Fingerprint
from querymesh_lab.bench.joins.flink.flink_contestant import Flink, flink_version, prepare_flink
from querymesh_lab.bench.joins.join_case import CORES, Contestant, JoinCase, Outcome, write_case
from querymesh_lab.bench.joins.on_spark.floor_contestant import floor_contestant
from querymesh_lab.bench.joins.on_spark.our_contestant import our_contestant
from querymesh_lab.bench.joins.on_spark.spark_chain import STORES, orders, spark_chain
from querymesh_lab.bench.measure import Log, RivalsDisagreeError, Timing, interleave

LARGE: dict[str, Any] = {"rows": 240_000, "rate": 6000.0}
"""Where Spark's chain can do it; on skewed streams its state would take gigabytes."""

TRIAL_PART = 5
"""Spark's best settings are found, and all contestants warmed up, on a fifth of the rows."""

DESIGNS: tuple[Design, ...] = (
    Design("3-way", matches=0.8, **LARGE),
    Design("3-way", matches=6.0, rare=0.005),
    Design("5-way", matches=0.8, **LARGE),
    Design("5-way", matches=0.8, label=", batches of 20,000"),
    Design("5-way", matches=0.8, rows=2_400, rate=60.0, label=", batches of 2,000"),
    Design("5-way", matches=3.0, rare=0.002),
    Design("clique", matches=4.0, linked=0.1, rows=96_000, rate=2400.0),
    Design("clique", matches=4.0, linked=0.2, rare=0.05),
    Design("star", matches=0.8, **LARGE),
    Design("star", matches=3.0, rare=0.002),
)
"""The cases in the order they run. A new case is one line. Unless named otherwise, micro-batches of
five uniform streams have 200,000 rows, and windows are one and a half of them at every size."""

MESH, SINGLE, SPARK, FLOOR = "mesh", "single", "spark", "floor"
NOTHING: Fingerprint = (0, 0, 0)
FLINK = {"flink chain": "chain", "flink multi-join": "multi-join"}
CONTESTANTS = (MESH, SINGLE, SPARK, FLOOR, *FLINK)


@dataclass
class JoinContest:
    """One case under way: who takes part, and what each did in each run.

    `spent` says by which of a contestant's times it is timed.
    """

    case: JoinCase
    contestants: Mapping[str, Contestant]
    spent: Callable[[Outcome], float] = attrgetter("seconds")
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    _clock_s: float = 0.0

    def run(self, rounds: int, warm_ups: int, log: Log) -> Timing:
        """All contestants in turns, by the time each says it took.

        The clock is moved by what was run: a Flink job's own time is known to Flink only.
        """
        actions = {name: partial(self._action, name) for name in self.contestants}
        return interleave(
            actions, rounds, warm_ups=warm_ups, same_answer=False, log=log,
            clock=lambda: self._clock_s,
        )  # fmt: skip

    def _action(self, name: str) -> Fingerprint:
        outcome = self.contestants[name](self.case)
        expected = NOTHING if name == FLOOR else self.case.expected
        if outcome.answer != expected:
            raise RivalsDisagreeError(
                f"{self.case.design.name}: {name} answered {outcome.answer}, but the exact "
                f"result has {expected}"
            )
        self._clock_s += self.spent(outcome)
        self.outcomes.setdefault(name, []).append(outcome)
        return outcome.answer


def run_join(
    quick: bool = False,
    cases: list[str] | None = None,
    log: Log = print,
    contestants: list[str] | None = None,
) -> list[dict[str, Any]]:
    """Run the cases one after the other; a row for each case and contestant.

    `cases` are names as "5-way skewed". Quick runs leave Flink out, unless it is asked for. Skewed
    cases are run again on more rows by our policies alone, "5-way skewed, long": on as few rows as
    Spark's chain can do, a batch is mostly Spark's own start.
    """
    longer = [long_form(design) for design in DESIGNS if design.rare]
    names = [design.name for design in (*DESIGNS, *longer)]
    for name in cases or ():
        check_name("case", name, tuple(names))
    for name in contestants or ():
        check_name("contestant", name, CONTESTANTS)
    asked = contestants or [name for name in CONTESTANTS if not (quick and name in FLINK)]
    start = partial(local_session, CORES, "querymesh bench join", memory="4g")
    bench = Bench(quick, log, start)
    command = "querymesh bench join" + (" --quick" if quick else "")
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        flink = _start_flink(stack, log) if set(asked) & set(FLINK) else None
        ours = [name for name in asked if name in (MESH, SINGLE)]
        runs = [(scaled(design, quick), asked, flink) for design in DESIGNS]
        runs += [(design, ours, None) for design in longer if not quick]
        for design, who, with_flink in runs:
            if not cases or design.name in cases:
                found = run_case(bench, design, who, with_flink)
                rows += [finding.as_row(command) for finding in found]
                if found:
                    log(_table(rows[-len(found) :]))
    return rows


def long_form(design: Design) -> Design:
    """A skewed case with longer windows, for policies on our own engine.

    It has three times the matches, of which a tenth as many come to a result: on few matches a
    probe of our engine, a tenth of a microsecond, is not what a run is made of.
    """
    more: dict[str, Any] = {"matches": 3 * design.matches, "rare": design.rare / 10}
    return replace(design, **LARGE, **more, label=", long")


def scaled(design: Design, quick: bool) -> Design:
    """The design, or a small one that only checks that everything runs."""
    if not quick:
        return design
    return replace(design, rows=1200, rate=100.0, window_s=4, batches=3)


def run_case(bench: Bench, design: Design, asked: list[str], flink: Flink | None) -> list[Finding]:
    """One case: its contestants in turns, a finding for each."""
    with TemporaryDirectory() as folder:
        case = write_case(design, Path(folder) / "case")
        bench.log(f"{design.name}: {design.all_rows} rows, {case.expected[0]} results …")
        contestants: dict[str, Contestant] = {}
        for policy in (MESH, SINGLE):
            if policy in asked:
                contestants[policy] = our_contestant(bench.session, policy)
        if FLOOR in asked:
            contestants[FLOOR] = partial(floor_contestant, bench.session)
        for name, way in FLINK.items():
            if name in asked and flink is not None and (way == "chain" or design.graph.common_key):
                contestants[name] = partial(flink.contestant, way=way)
        settings: dict[str, Any] = {}
        if not bench.quick:
            trial = write_case(replace(design, **_smaller(design)), Path(folder) / "trial")
            if contestants:
                JoinContest(trial, contestants).run(0, 1, bench.log)
            settings = best_chain(bench, trial) if SPARK in asked else {}
        if SPARK in asked:
            contestants[SPARK] = partial(spark_chain, bench.session, **settings)
        if not contestants:
            return []
        contest = JoinContest(case, contestants)
        timing = contest.run(bench.rounds(3, 1), 0, bench.log)
    return [_finding(contest, timing, name, settings) for name in contestants]


def _smaller(design: Design) -> dict[str, Any]:
    return {"rows": design.rows // TRIAL_PART, "rate": design.rate / TRIAL_PART}


def best_chain(bench: Bench, trial: JoinCase) -> dict[str, Any]:
    """Spark's best settings for a case: every store, then another anchor with the better store.

    Each runs twice, and the second time counts: the first compiles.
    """
    tried: dict[tuple[str, tuple[str, ...]], float] = {}
    first, *others = orders(trial.design)[:2]

    def attempt(store: str, order: tuple[str, ...]) -> None:
        runs = [spark_chain(bench.session, trial, store, order).seconds for _ in range(2)]
        tried[store, order] = runs[-1]
        bench.log(f"  spark, state in {store}, order {''.join(order)}: {runs[-1]:.1f} s")

    for store in STORES:
        attempt(store, first)
    best_store = min(STORES, key=lambda store: tried[store, first])
    for order in others:
        attempt(best_store, order)
    store, order = min(tried, key=lambda key: tried[key])
    return {"store": store, "order": order}


def _start_flink(stack: ExitStack, log: Log) -> Flink | None:
    found = prepare_flink()
    if isinstance(found, str):
        log(f"Flink is left out: {found}")
        return None
    log(f"Flink {flink_version(found)}")
    return stack.enter_context(Flink(found))


def _finding(contest: JoinContest, timing: Timing, name: str, settings: dict[str, Any]) -> Finding:
    """Rows a second and core, and beside it everything else that was seen."""
    design, done = contest.case.design, contest.outcomes[name]
    seconds = timing.median_seconds()[name]
    details = {
        "results": contest.case.expected[0],
        "rows": design.all_rows,
        "state_bytes": _most(outcome.state_bytes for outcome in done),
        "state_rows": _most(outcome.state_rows for outcome in done),
        "comparisons": done[-1].comparisons,
        "rows_per_cpu_second": _speed(design.all_rows, done),
        "times_the_floor": _times_the_floor(contest.outcomes, name),
        "times_as_fast_as_spark": _ratio(timing, SPARK, name),
        "times_as_fast_as_single": _ratio(timing, SINGLE, name),
        "settings": settings if name == SPARK else {},
        "last_run": done[-1].details,
        **timing_details(timing),
    }
    speed = design.all_rows / seconds / CORES
    return Finding(design.name, name, speed, "rows/s/core", details=details)


def _ratio(timing: Timing, of: str, over: str) -> float | None:
    return round(timing.ratio(of, over), 3) if of in timing.seconds else None


def _times_the_floor(outcomes: Mapping[str, list[Outcome]], name: str) -> float | None:
    """Processor time over that of the floor, by the medians of both."""
    own, floor = (
        [outcome.cpu_seconds for outcome in outcomes.get(who, ()) if outcome.cpu_seconds]
        for who in (name, FLOOR)
    )
    return round(statistics.median(own) / statistics.median(floor), 3) if own and floor else None


def _speed(rows: int, done: list[Outcome]) -> float | None:
    """Rows a second of processor time: what other programs on the machine do not distort."""
    spent = [outcome.cpu_seconds for outcome in done if outcome.cpu_seconds]
    return round(rows / statistics.median(spent), 1) if spent else None


def _most(numbers: Any) -> int | None:
    return max((number for number in numbers if number is not None), default=None)


def print_rows(rows: list[dict[str, Any]], console: Console | None = None) -> None:
    """The rows as a table for people."""
    (console or Console()).print(Text(_table(rows)), soft_wrap=True)


def _table(rows: list[dict[str, Any]]) -> str:
    head = (
        "case", "contestant", "rows/s/core", "rows/cpu s", "results", "comparisons",
        "× floor", "peak state, MB", "× spark", "× single", "A/A",
    )  # fmt: skip
    lines = []
    for row in rows:
        details = row["details"]
        state = details["state_bytes"]
        lines.append((
            row["case"],
            row["claim"],
            f"{row['value']:,.0f}",
            _text(details["rows_per_cpu_second"], ",.0f"),
            f"{details['results']:,}",
            _text(details["comparisons"], ",.0f"),
            _text(details["times_the_floor"], ".2f"),
            _text(None if state is None else state / 1e6, ",.1f"),
            _text(details["times_as_fast_as_spark"], ".2f"),
            _text(details["times_as_fast_as_single"], ".2f"),
            f"{details['a_a']:.2f}",
        ))  # fmt: skip
    return table(head, lines, left=(0, 1))


def _text(number: float | None, style: str) -> str:
    return "" if number is None else format(number, style)
