"""Samples: a uniform few thousand rows of a DataFrame or an Arrow table, in arrival order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from querymesh.errors import TrainingError
from querymesh.spark.context import job_description
from querymesh.spark.schema import arrow_schema, conform

_ORDER = "__querymesh_order"


def take_sample(data: DataFrame | pa.Table, rows: int, seed: int) -> pa.Table:
    """At most `rows` rows, each with the same chance.

    For a DataFrame this is one scan: the rows with the smallest random numbers, which Spark keeps
    per partition without a shuffle. Arrival order is restored afterwards, because an id that only
    grows is recognised by it.
    """
    if isinstance(data, pa.Table):
        if data.num_rows <= rows:
            return data
        picked = np.random.default_rng(seed).choice(data.num_rows, rows, replace=False)
        return data.take(pa.array(np.sort(picked)))
    if data.isStreaming:
        raise TrainingError(
            "a stream has no sample before it runs: give a batch DataFrame or an Arrow table, or "
            "run the query untrained and it learns from its first batches"
        )
    numbered = data.withColumn(_ORDER, F.monotonically_increasing_id())
    with job_description(data.sparkSession, f"QueryMesh: a sample of {rows:,} rows of all"):
        picked_rows = numbered.orderBy(F.rand(seed)).limit(rows).toArrow()
    return conform(picked_rows.sort_by(_ORDER).drop_columns([_ORDER]), arrow_schema(data))


def whole_table(data: DataFrame | pa.Table, name: str) -> pa.Table:
    """A table, whole, on the driver: one to look up in, or a stretch of a stream."""
    if isinstance(data, pa.Table):
        return data
    if data.isStreaming:
        raise TrainingError(
            f"{name} is looked up by key and must be static, but a streaming DataFrame was given"
        )
    with job_description(data.sparkSession, f"QueryMesh: the rows of {name}"):
        return conform(data.toArrow(), arrow_schema(data))
