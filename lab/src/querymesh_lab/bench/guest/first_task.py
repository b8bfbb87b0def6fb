"""From the call to the first task: how long a user waits before Spark works on the whole table.

A table of 50 million rows, conditions in SQL. The row that comes out first carries the clock of the
task that made it (Spark's `reflect` calls Java's `currentTimeMillis` there), so the time includes
whatever `where` does before, planning, the start of the task and its first batch. `first()` stops
the job once it has one row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import querymesh as qm
from querymesh.errors import QueryMeshError
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.guest.tables import StoredTable, Workshop
from querymesh_lab.bench.measure import interleave

ROWS, QUICK_ROWS = 50_000_000, 50_000
MOST_S = 1.0
CLOCK = "CAST(reflect('java.lang.System', 'currentTimeMillis') AS BIGINT) AS task_ms"
CONDITIONS = (
    "bucket < 200",
    "note RLIKE 'order [0-9]*7 of'",
    "length(note) > 12",
    "substr(note, -2) <> 'zz'",
)
PLAIN, OURS = "plain Spark", "where"


@dataclass(frozen=True)
class FirstTaskCase:
    """The one case of its kind in the grid."""

    name: str = "first task"
    group: str = "first task"


CASES = (FirstTaskCase(),)


def table(workshop: Workshop) -> StoredTable:
    """Rows that Spark makes itself: a number, a bucket below 1,000 and a short note."""
    rows = workshop.bench.rows(ROWS, QUICK_ROWS)

    def write(folder: Path) -> StoredTable:
        made = workshop.session.range(rows).selectExpr(
            "id", "id % 1000 AS bucket", "concat('order ', id % 9973, ' of shop ', id % 89) AS note"
        )
        made.write.parquet(str(folder))
        return StoredTable(folder, rows)

    return workshop.table(f"first-task-{rows}", write)


def plain(df: DataFrame) -> DataFrame:
    """The conditions as written, in plain Spark."""
    return df.filter(reduce(lambda a, b: a & b, map(F.expr, CONDITIONS)))


def ours(df: DataFrame) -> DataFrame:
    """The same through `where`, with its defaults."""
    return df.transform(qm.where(*CONDITIONS))


def seconds_to_first_task(df: DataFrame, build: Callable[[DataFrame], DataFrame]) -> float:
    """From the call until a task has its first row."""
    started = time.time()
    row = build(df).selectExpr(CLOCK).first()
    if row is None:
        raise QueryMeshError("no row was left: the first task cannot be seen")
    return float(row[0]) / 1000 - started


def run_case(case: FirstTaskCase, workshop: Workshop) -> Finding:
    """How much later the first task starts with `where` than without."""
    stored = table(workshop)
    clock_s = 0.0

    def contender(build: Callable[[DataFrame], DataFrame]) -> Callable[[], None]:
        def action() -> None:
            nonlocal clock_s
            with stored.linked() as path:
                df = workshop.session.read.parquet(str(path))
                clock_s += seconds_to_first_task(df, build)

        return action

    timing = interleave(
        {PLAIN: contender(plain), OURS: contender(ours)},
        workshop.bench.rounds(7, 1),
        log=workshop.bench.log,
        clock=lambda: clock_s,
    )
    medians = timing.median_seconds()
    details: dict[str, Any] = {
        "group": case.group,
        "rows": stored.rows,
        "conditions": list(CONDITIONS),
        **timing_details(timing),
    }
    return Finding(
        case.name, f"where after plain Spark, on {stored.rows:,} rows",
        round(medians[OURS] - medians[PLAIN], 4), "s", "at most", MOST_S, details,
    )  # fmt: skip
