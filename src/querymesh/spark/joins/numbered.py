"""Where each row of an input stands: windows that count rows go by it, where times are equal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField, StructType

from querymesh.runtime.task.slots import PLACE

_BITS = 33


def numbered(frame: DataFrame) -> DataFrame:
    """The rows with their places. Spark numbers those of a batch; a stream's are numbered here.

    A batch that is run again has the same rows in the same partitions, so the same places. The
    partition is that of the input itself: a task's own number counts those of other streams too,
    once they are one union.
    """
    if not frame.isStreaming:
        return frame.withColumn(PLACE, F.monotonically_increasing_id())
    fields = [*frame.schema.fields, StructField(PLACE, LongType(), False)]
    in_partitions = frame.withColumn(PLACE, F.spark_partition_id().cast("long"))
    return in_partitions.mapInArrow(_number, StructType(fields))


def _number(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    row = 0
    for batch in batches:
        partition = np.asarray(batch.column(PLACE), np.int64)
        places = (partition << _BITS) + np.arange(row, row + batch.num_rows)
        row += batch.num_rows
        field = pa.field(PLACE, pa.int64(), False)
        yield batch.set_column(batch.schema.get_field_index(PLACE), field, pa.array(places))
