"""What SQL operators cost in Catalyst, measured there: Java's regular expressions are not Arrow's.

Each operator is summed over sampled rows, repeated by a cross join with a range, because an
aggregate's argument is evaluated for every row and neither pushed down nor folded; once over rows
it drops, once over rows it lets through. A sum with no operator in it is subtracted. A first round
is left to Java's compiler; after it sums are interleaved and the shortest of each counts, so that
other work on the machine weighs little.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from querymesh.arrays import Floats
from querymesh.query.model import BoundQuery, Filter
from querymesh.spark.filters.native import native_sql
from querymesh.stats.profile import Profile

SUMMED_ROWS = 20_000
ROUNDS = 2
LEAST_COST_US = 1e-3

FEW_OUTCOMES = 30
"""Fewer rows of one outcome than this are measured together with the other outcome's."""

_COPY = "__querymesh_copy"
_NOTHING = f"`{_COPY}` >= 0"


def native_costs_us(
    spark: SparkSession, profile: Profile, bound: BoundQuery
) -> tuple[Floats, Floats]:
    """Microseconds a row of each operator, on rows it drops and on rows it lets through."""
    sums = [(profile.sample, _NOTHING)]
    for number, operator in enumerate(bound.operators):
        assert isinstance(operator, Filter)
        sums += [(rows, native_sql(operator.expr)) for rows in _by_outcome(profile, number)]
    alias = bound.source.alias
    frames = [_summed(spark, table, condition, alias) for table, condition in sums]
    rounds = np.array([[_seconds(frame) for frame in frames] for _ in range(1 + ROUNDS)])
    shortest_us = 1e6 * rounds[1:].min(axis=0) / SUMMED_ROWS
    costs = np.maximum(shortest_us[1:] - shortest_us[0], LEAST_COST_US)
    return costs[0::2], costs[1::2]


def _by_outcome(profile: Profile, number: int) -> tuple[pa.Table, pa.Table]:
    """The sampled rows the operator drops, and those it lets through."""
    passed = profile.outcomes[:, number] > 0
    if min(passed.sum(), (~passed).sum()) < FEW_OUTCOMES:
        return profile.sample, profile.sample
    return profile.sample.filter(pa.array(~passed)), profile.sample.filter(pa.array(passed))


def _summed(spark: SparkSession, sample: pa.Table, condition: str, alias: str) -> DataFrame:
    copies = -(-SUMMED_ROWS // sample.num_rows)
    repeated = spark.range(copies, numPartitions=1).withColumnRenamed("id", _COPY)
    frame = spark.createDataFrame(sample).alias(alias).crossJoin(repeated).limit(SUMMED_ROWS)
    return frame.agg(F.sum(F.expr(f"CASE WHEN {condition} THEN 1 ELSE `{_COPY}` END")))


def _seconds(frame: DataFrame) -> float:
    started = perf_counter()
    frame.collect()
    return perf_counter() - started
