"""Jobs of one, ten and sixty seconds of plain Spark's time: regular expressions, Python, both.

How many rows that takes is found by running plain Spark, as written and with UDFs in PySpark's
default form, on two tables of known size; the rows are stated with the result. In the quick form
nothing is calibrated: all three have the rows of `QUICK_ROWS`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import pyarrow as pa

from querymesh_lab.bench.data import classed, lines, messages
from querymesh_lab.bench.guest.case import GuestCase, Kind
from querymesh_lab.bench.guest.condition import (
    Condition,
    Sql,
    as_written,
    default_way,
    matches,
)
from querymesh_lab.bench.guest.tables import StoredTable, Workshop, stored_by_parts

GROUP = "durations"
SECONDS = (1, 10, 60)
QUICK_ROWS = 2_000
MOST_ROWS = 20_000_000
CALIBRATION_RUNS = 3


@dataclass(frozen=True)
class Family:
    """A kind of rows and the conditions on them; `base_rows` are for the calibration."""

    name: str
    kind: Kind
    make: Callable[[int, int], pa.Table]
    conditions: tuple[Condition, ...]
    base_rows: int


def log_lines(rows: int, seed: int) -> pa.Table:
    """Log lines of three classes, each dropped by another expression."""
    return lines.lines(rows, lines.OPPOSITE, seed).table


def texts_sent(rows: int, seed: int) -> pa.Table:
    """Messages of three classes, each dropped by another function."""
    return messages.messages(rows, classed.OPPOSITE, seed).table


REGEXES: tuple[Condition, ...] = tuple(matches("line", p) for _, p in lines.PATTERNS)
KNOWN_SENDER, VALID_CARD, GOOD_TONE, LOOKALIKE = messages.PREDICATES
MIXED: tuple[Condition, ...] = (
    Sql("amount > 20"),
    matches("sender", "^[a-z]+[.][a-z]+[0-9]+@(mail|post|relay)[.]example$"),
    VALID_CARD,
    matches("words", "(fin[0-9]+ ?){2,}"),
    LOOKALIKE,
)

FAMILIES = (
    Family("regex", "regex", log_lines, REGEXES, 100_000),
    Family("python", "python", texts_sent, messages.PREDICATES, 8_000),
    Family("mixed", "mixed", texts_sent, MIXED, 20_000),
)


def rows_for(seconds: float, sizes: tuple[int, int], took: tuple[float, float]) -> int:
    """The rows of a job of so many seconds, by a line through two; in two digits.

    >>> rows_for(10, (1000, 3000), (0.4, 0.6))
    97000
    """
    slope = max((took[1] - took[0]) / (sizes[1] - sizes[0]), 1e-9)
    rows = (seconds - took[0]) / slope + sizes[0]
    digits = 10 ** max(0, len(str(int(rows))) - 2)
    return int(min(max(round(rows / digits) * digits, sizes[0]), MOST_ROWS))


def _stored(workshop: Workshop, family: Family, rows: int) -> StoredTable:
    def write(folder: Path) -> StoredTable:
        return stored_by_parts(family.make, rows, folder)

    return workshop.table(f"{GROUP}-{family.name}-{rows}", write)


def _plain_seconds(workshop: Workshop, family: Family, rows: int) -> float:
    df = _stored(workshop, family, rows).read(workshop.session)
    plain = as_written(df, family.conditions, default_way(family.conditions))
    took = []
    for _ in range(1 + CALIBRATION_RUNS):
        started = perf_counter()
        plain.count()
        took.append(perf_counter() - started)
    return statistics.median(took[1:])


def _calibrated(family: Family, seconds: int) -> Callable[[Workshop], StoredTable]:
    def of(workshop: Workshop) -> StoredTable:
        if workshop.bench.quick:
            return _stored(workshop, family, QUICK_ROWS)
        sizes = (family.base_rows, 3 * family.base_rows)
        took = (
            _plain_seconds(workshop, family, sizes[0]),
            _plain_seconds(workshop, family, sizes[1]),
        )
        rows = rows_for(seconds, sizes, took)
        workshop.bench.log(f"  {seconds} s of plain Spark are {rows:,} rows")
        table = _stored(workshop, family, rows)
        calibration = {"sizes": sizes, "seconds": [round(s, 3) for s in took], "asked_s": seconds}
        return StoredTable(table.folder, table.rows, {"calibration": calibration})

    return of


CASES: tuple[GuestCase, ...] = tuple(
    GuestCase(
        f"{seconds} s {family.name}", GROUP, family.kind, _calibrated(family, seconds),
        family.conditions,
    )
    for seconds in SECONDS
    for family in FAMILIES
)  # fmt: skip
