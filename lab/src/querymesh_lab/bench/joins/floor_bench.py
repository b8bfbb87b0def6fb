"""`querymesh bench join --floor`: what our join costs above Spark's own part of the same job.

The floor is the same streaming job whose Python function only takes its batches in
(`on_spark/floor_contestant.py`). Five uniform streams, in micro-batches of 2,000 to 1,000,000 rows;
floor and policies run in turns, the floor twice, which is the control. Time is processor time of
Spark's JVM, its Python workers and the driver. Both policies are held against the columns that
`single` sends; a column that only a mesh asks about counts as the mesh's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.text import Text

from querymesh.errors import SetupError
from querymesh.options import check_name
from querymesh.report.text.figures import table
from querymesh.spark.session import local_session
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.join_data import Design
from querymesh_lab.bench.finding import Direction, Finding, timing_details
from querymesh_lab.bench.joins.join_bench import FLOOR, MESH, SINGLE, JoinContest, scaled
from querymesh_lab.bench.joins.join_case import CORES, Contestant, Outcome, write_case
from querymesh_lab.bench.joins.on_spark.floor_contestant import floor_contestant
from querymesh_lab.bench.joins.on_spark.our_contestant import our_contestant
from querymesh_lab.bench.measure import Log, Timing

BATCH_ROWS = (2_000, 20_000, 200_000, 1_000_000)
"""Rows of all streams in a micro-batch."""

TARGET = 1.25
TARGET_FROM_ROWS = 200_000
"""At most so many times the floor, in batches of so many rows; smaller ones are reported."""

_LIKE = Design("5-way", matches=0.8, rows=240_000, rate=6000.0)
"""What every size is cut from: six batches, windows of one and a half of them."""


def design_of(batch_rows: int) -> Design:
    """Five streams in batches of so many rows, with windows that are as many batches long."""
    share = batch_rows * _LIKE.batches / _LIKE.all_rows
    rows, rate = round(_LIKE.rows * share), _LIKE.rate * share
    return replace(_LIKE, rows=rows, rate=rate, label=f", batches of {batch_rows:,}")


def run_floor(
    quick: bool = False, cases: list[str] | None = None, log: Log = print
) -> list[dict[str, Any]]:
    """A row for the floor and for each policy, at every size of a batch.

    `cases` are names as "5-way uniform, batches of 2,000".
    """
    designs = [design_of(rows) for rows in BATCH_ROWS]
    for name in cases or ():
        check_name("case", name, tuple(design.name for design in designs))
    chosen = [design for design in designs if not cases or design.name in cases]
    if quick:
        chosen = [scaled(chosen[0], quick)]
    start = partial(local_session, CORES, "querymesh bench join --floor", memory="4g")
    bench = Bench(quick, log, start)
    command = "querymesh bench join --floor" + (" --quick" if quick else "")
    rows: list[dict[str, Any]] = []
    for design in chosen:
        found = run_size(bench, design)
        rows += [finding.as_row(command) for finding in found]
        log(_table(rows[-len(found) :]))
    return rows


def run_size(bench: Bench, design: Design) -> list[Finding]:
    """The floor and both policies in turns on one size of a batch."""
    with TemporaryDirectory() as folder:
        case = write_case(design, Path(folder) / "case")
        bench.log(f"{design.name}: {design.all_rows:,} rows, {case.expected[0]:,} results …")
        contestants: dict[str, Contestant] = {
            FLOOR: partial(floor_contestant, bench.session),
            SINGLE: our_contestant(bench.session, SINGLE),
            MESH: our_contestant(bench.session, MESH),
        }
        contest = JoinContest(case, contestants, spent=processor_seconds)
        # Java goes on compiling what it runs for some rounds.
        timing = contest.run(bench.rounds(5, 1), 0 if bench.quick else 2, bench.log)
    return [_finding(design, timing, name) for name in contestants]


def processor_seconds(outcome: Outcome) -> float:
    """The processor time of a run, without which nothing can be said here."""
    if outcome.cpu_seconds is None:
        raise SetupError(
            "processor time is read from /proc, which this system has not: run it on Linux"
        )
    return outcome.cpu_seconds


def _finding(design: Design, timing: Timing, name: str) -> Finding:
    seconds = timing.median_seconds()[name]
    held = name != FLOOR and design.all_rows >= TARGET_FROM_ROWS * design.batches
    direction: Direction = "at most" if held else "report"
    details = {
        "us_a_row": round(1e6 * seconds / design.all_rows, 3),
        "seconds_a_batch": round(seconds / design.batches, 3),
        "rows": design.all_rows,
        "batches": design.batches,
        **timing_details(timing),
    }
    times = round(timing.ratio(name, FLOOR), 3)
    limit = TARGET if held else None
    return Finding(design.name, name, times, "× floor", direction, limit, details, timed=True)


def print_rows(rows: list[dict[str, Any]], console: Console | None = None) -> None:
    """The rows as a table for people."""
    (console or Console()).print(Text(_table(rows)), soft_wrap=True)


def _table(rows: list[dict[str, Any]]) -> str:
    head = ("case", "contestant", "CPU µs/row", "CPU s/batch", "× floor", "target", "A/A")
    lines = [
        (
            row["case"],
            row["claim"],
            f"{row['details']['us_a_row']:.2f}",
            f"{row['details']['seconds_a_batch']:.2f}",
            f"{row['value']:.2f}",
            row["target"],
            f"{row['details']['a_a']:.2f}",
        )
        for row in rows
    ]
    return table(head, lines, left=(0, 1))
