"""Parquet in thirty folders by day, and a condition that needs seven of them.

The condition on the day costs Spark nothing: it never opens the other folders. Who takes it away
reads four times as much.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from querymesh_lab.bench.data import messages
from querymesh_lab.bench.guest.case import GuestCase
from querymesh_lab.bench.guest.cases.durations import (
    MIXED,
    REGEXES,
    log_lines,
    texts_sent,
)
from querymesh_lab.bench.guest.condition import Sql
from querymesh_lab.bench.guest.tables import StoredTable, Workshop

GROUP = "partitioned"
DAYS = 30
WEEK = Sql("day BETWEEN DATE '2024-05-06' AND DATE '2024-05-12'")


def by_day(table: pa.Table) -> pa.Table:
    """The rows spread evenly over the days of a month."""
    days = np.array([f"2024-05-{day:02}" for day in range(1, DAYS + 1)])
    return table.append_column("day", pa.array(days[np.arange(table.num_rows) % DAYS]))


def _table(
    name: str, make: Callable[[int, int], pa.Table], rows: int
) -> Callable[[Workshop], StoredTable]:
    def of(workshop: Workshop) -> StoredTable:
        wanted = workshop.bench.rows(rows, 6_000)

        def write(folder: Path) -> StoredTable:
            pq.write_to_dataset(by_day(make(wanted, 0)), folder, partition_cols=["day"])
            return StoredTable(folder, wanted)

        return workshop.table(f"{GROUP}-{name}-{wanted}", write)

    return of


CASES: tuple[GuestCase, ...] = (
    GuestCase("week regex", GROUP, "regex", _table("lines", log_lines, 1_500_000),
              (WEEK, *REGEXES)),
    GuestCase("week python", GROUP, "python", _table("messages", texts_sent, 300_000),
              (WEEK, *messages.PREDICATES)),
    GuestCase("week mixed", GROUP, "mixed", _table("messages", texts_sent, 300_000),
              (WEEK, *MIXED), sink="noop"),
)  # fmt: skip
