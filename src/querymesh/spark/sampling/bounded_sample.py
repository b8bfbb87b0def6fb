"""A sample of bounded size and cost: a few rows of a few partitions, never a scan of the source.

Spark runs the chosen partitions only, each until it has its share of rows, and conditions are
evaluated for them by Catalyst in the same job. Partitions are spread over the source; within one,
rows are its first. Reading a Parquet file begins with a whole row group of the columns asked for,
so how many partitions there are depends on how large those are: about 64 MB for each task that
can run at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from querymesh.errors import TrainingError
from querymesh.query.render import quoted_name
from querymesh.spark.context import (
    arrow_rdd,
    collect_partitions,
    job_description,
    parallelism,
    query_execution,
)
from querymesh.spark.sampling.finer_scan import finer_scan
from querymesh.spark.sampling.physical_plan import PlanNode, physical_plan
from querymesh.spark.sampling.read_bytes import file_reading
from querymesh.spark.sampling.sampled_plan import (
    SampledPlan,
    TooExpensive,
    check_cheap,
    limit_of,
    partition_count,
    sampled_plan,
    with_leaves,
)
from querymesh.spark.schema import arrow_schema

FEWEST_PARTITIONS = 2
MOST_PARTITIONS = 32
TURNS = 4
"""Partitions that are read: for each task that can run at once so many, between those bounds."""

READ_BYTES = 64 << 20
"""Bytes that are read for each task that can run at once, unless two partitions have more."""

ROUNDS = 3
"""So many times partitions are chosen, where those before had hardly any rows."""

ENOUGH = 0.75
"""With this share of the rows asked for no more partitions are read."""


@dataclass(frozen=True)
class Sample:
    """Rows of a DataFrame, and how they were come by.

    - `table`: the columns and conditions asked for
    - `seconds`: what it took, planning included
    - `rows_read`: how many rows the sources gave, of which filters below kept those in the table
    - `partitions`: how many the DataFrame has, and `partitions_read` of them
    - `whole`: these are all the rows there are
    """

    table: pa.Table
    seconds: float
    rows_read: int
    partitions: int
    partitions_read: int
    whole: bool

    @property
    def kept(self) -> float:
        """The share of rows that the DataFrame's own filters keep, as far as was seen."""
        return self.table.num_rows / self.rows_read if self.rows_read else 1.0


@dataclass(frozen=True)
class NoSample:
    """There is no cheap sample, and why."""

    reason: str


def bounded_sample(
    frame: DataFrame,
    rows: int,
    *,
    columns: Sequence[str],
    extra: Mapping[str, Column] | None = None,
    seed: int = 0,
) -> Sample | NoSample:
    """At most `rows` rows of a batch DataFrame, from several places of its sources.

    - `columns`: the columns to take; no others are read
    - `extra`: further columns by name, evaluated by Catalyst: conditions, or single fields of a
      struct that need not be read whole
    - `seed`: of the choice of partitions

    `NoSample` where the plan needs all of its input before it gives a row. Where a filter below
    keeps few rows there are fewer than asked for, because no more are read to find them.
    """
    started = perf_counter()
    if frame.isStreaming:
        raise TrainingError("a stream has no sample before it runs: give a batch DataFrame")
    session = frame.sparkSession
    chosen = [F.col(quoted_name(name)) for name in columns]
    added = [column.alias(name) for name, column in (extra or {}).items()]
    asked = frame.select(*chosen, *added)
    if not query_execution(asked).optimizedPlan().subqueriesAll().isEmpty():
        return NoSample("it holds a subquery, which Spark computes whole")
    plan = physical_plan(asked)
    try:
        check_cheap(plan)
    except TooExpensive as problem:
        return NoSample(str(problem))
    first_read = 0

    def by_file(leaf: PlanNode) -> PlanNode:
        nonlocal first_read
        reading = file_reading(leaf)
        if reading is None:
            return leaf
        first_read = max(first_read, reading.first_read_bytes)
        return finer_scan(session, leaf, reading)

    plan = with_leaves(plan, by_file)
    rows = min(rows, limit_of(plan, rows))
    wanted = max(1, min(partition_count(plan), _affordable(first_read, parallelism(session))))
    limited = sampled_plan(session, plan, max(1, -(-rows // wanted)))
    with job_description(session, f"QueryMesh: a sample of {rows:,} rows"):
        batches = arrow_rdd(asked, limited.plan)
        rounds = spread(int(batches.getNumPartitions()), wanted, seed)
        return _collected(asked, limited, batches, rounds, rows, started)


def _affordable(first_read: int, tasks: int) -> int:
    """How many partitions may be read, if a task begins by reading so many bytes."""
    most = min(MOST_PARTITIONS, max(FEWEST_PARTITIONS, TURNS * tasks))
    return max(FEWEST_PARTITIONS, min(most, READ_BYTES * tasks // max(1, first_read)))


def spread(count: int, wanted: int, seed: int) -> list[list[int]]:
    """Partitions to read, `wanted` of them and then more: by chance, one of each equal stretch.

    >>> [len(each) for each in spread(100, 8, seed=0)]
    [8, 16, 32, 44]
    """
    rng = np.random.default_rng(seed)
    left = list(range(count))
    rounds = []
    while left:
        bounds = np.linspace(0, len(left), min(wanted, len(left)) + 1).astype(int)
        picked = [left[rng.integers(a, b)] for a, b in pairwise(bounds)]
        rounds.append(picked)
        wanted *= 2
        gone = set(picked)
        left = [number for number in left if number not in gone]
    return rounds


def _collected(
    asked: DataFrame,
    limited: SampledPlan,
    batches: Any,
    rounds: Sequence[Sequence[int]],
    rows: int,
    started: float,
) -> Sample:
    """Run round after round, as long as those before had hardly any rows to read."""
    schema = arrow_schema(asked)
    found: list[pa.RecordBatch] = []
    ran: list[int] = []
    full = False
    for chosen in rounds[:ROUNDS]:
        parts = collect_partitions(asked.sparkSession, batches, chosen, schema)
        ran += chosen
        found += parts
        full |= len(parts) > len(chosen) or any(part.num_rows >= limited.share for part in parts)
        if _rows(found) >= ENOUGH * rows or limited.has_searched(rows):
            break
    table = pa.Table.from_batches(found, schema)
    read = max(limited.rows_read(), table.num_rows)
    every = len(ran) == sum(map(len, rounds))
    return Sample(
        table=table.slice(0, rows) if table.num_rows > rows else table,
        seconds=perf_counter() - started,
        rows_read=read,
        partitions=sum(map(len, rounds)),
        partitions_read=len(ran),
        whole=every and not full and limited.reads_all(read),
    )


def _rows(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)
