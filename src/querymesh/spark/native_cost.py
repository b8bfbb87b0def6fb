"""What SQL operators cost in Catalyst, measured there: Java's regular expressions are not Arrow's.

Each operator is summed over the sample, repeated by a cross join with a range, because a condition
as an aggregate's argument is evaluated for every row and neither pushed down nor folded. The same
sum without the operator is subtracted. Runs are interleaved and the shortest counts, so that the
compiler's warm-up and other work on the machine weigh little. Operators too cheap to be seen are
measured again on more rows.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from querymesh.query.model import BoundQuery, Filter
from querymesh.spark.native import native_sql
from querymesh.stats.profile import Floats

FEW_ROWS, MANY_ROWS = 20_000, 200_000
VISIBLE_US = 2.0
"""Below this, FEW_ROWS take less time than a Spark job's own jitter."""

ROUNDS = 2
LEAST_COST_US = 1e-3
_COPY = "__querymesh_copy"


def native_costs_us(spark: SparkSession, sample: pa.Table, bound: BoundQuery) -> Floats:
    """Microseconds a row of each operator, in generated code on one core."""
    conditions = [
        native_sql(operator.expr) for operator in bound.operators if isinstance(operator, Filter)
    ]
    costs = _measure(spark, sample, conditions, FEW_ROWS)
    cheap = np.flatnonzero(costs < VISIBLE_US)
    if len(cheap):
        costs[cheap] = _measure(spark, sample, [conditions[k] for k in cheap], MANY_ROWS)
    return np.maximum(costs, LEAST_COST_US)


def _measure(spark: SparkSession, sample: pa.Table, conditions: list[str], rows: int) -> Floats:
    copies = max(1, rows // sample.num_rows)
    repeated = spark.range(copies, numPartitions=1).withColumnRenamed("id", _COPY)
    frame = spark.createDataFrame(sample).crossJoin(repeated).coalesce(1)
    measured = [f"`{_COPY}` >= 0", *conditions]
    shortest = np.full(len(measured), np.inf)
    for _ in range(ROUNDS):
        for number, condition in enumerate(measured):
            shortest[number] = min(shortest[number], _seconds(frame, condition))
    return np.asarray(1e6 * (shortest[1:] - shortest[0]) / (sample.num_rows * copies))


def _seconds(frame: DataFrame, condition: str) -> float:
    counted = frame.agg(F.sum(F.expr(f"CASE WHEN {condition} THEN 1 ELSE `{_COPY}` END")))
    started = perf_counter()
    counted.collect()
    return perf_counter() - started
