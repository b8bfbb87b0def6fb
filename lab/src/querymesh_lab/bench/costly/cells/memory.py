"""Memory is bounded by batch and concurrency, not by the table: large texts, few or many rows.

Workers get a thousand rows at a time here (`maxRecordsPerBatch`): what Spark hands over at once is
its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import SparkSession

from querymesh_lab.bench.costly import rivals, workers
from querymesh_lab.bench.costly.cell import Cell, Ground
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.costly.rivals import Question
from querymesh_lab.bench.finding import Finding

GROUP = "memory"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
AT_A_TIME = 1_000
TEXT_BYTES = 10_000
FEW, MANY = 16_000, 48_000
QUICK = (400, 800)
"""Even the few are many batches for each worker: its first ones fill what it keeps anyway."""

MOST_SHARE = 0.1
"""Of the bytes that a worker reads more, so many may be in its memory."""


@contextmanager
def rows_at_a_time(session: SparkSession, rows: int) -> Iterator[None]:
    """How many rows Spark hands to a worker at once."""
    before = session.conf.get(BATCH_ROWS) or "10000"
    session.conf.set(BATCH_ROWS, str(rows))
    try:
        yield
    finally:
        session.conf.set(BATCH_ROWS, before)


def _peak(ground: Ground, rows: int) -> int:
    texts = [f"{row:09d} ".ljust(TEXT_BYTES, "x") for row in range(rows)]
    table = ground.stored(pa.table({"id": range(rows), "text": texts}))
    question = Question(ground.endpoint.address, "share 50 memory", ("text",), at_once=50)
    ground.endpoint.behave(Manners())
    with rows_at_a_time(ground.bench.session, AT_A_TIME), workers.peaks() as seen:
        rivals.where(ground.frame(table.folder), question.predicate()).count()
    return max(seen.values(), default=0)


def run(ground: Ground) -> list[Finding]:
    """How much a worker grows with the table. It keeps its highest mark, so few rows run first."""
    few, many = QUICK if ground.bench.quick else (FEW, MANY)
    small, large = _peak(ground, few), _peak(ground, many)
    more = (many - few) / 2 * TEXT_BYTES
    details = {"group": GROUP, "few_rows_mib": small / 2**20, "many_rows_mib": large / 2**20}
    claim = f"a worker's peak from {few:,} to {many:,} rows of {TEXT_BYTES:,} bytes: of the bytes"
    return [Finding("memory", claim, (large - small) / more, "×", "at most", MOST_SHARE, details)]


CASES = (Cell(GROUP, "memory", run),)
