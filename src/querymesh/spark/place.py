"""Where each row of an input stands: windows that count rows go by it, where times are equal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField, StructType

from querymesh.spark.task_mesh import partition_id

PLACE = "__querymesh_place"
"""The column of the place: the partition in the upper bits, the row in the lower ones."""

_BITS = 33


def numbered(frame: DataFrame) -> DataFrame:
    """The rows with their places. Spark numbers those of a batch; a stream's are numbered here.

    A batch that is run again has the same rows in the same partitions, so the same places.
    """
    if not frame.isStreaming:
        return frame.withColumn(PLACE, F.monotonically_increasing_id())
    fields = [*frame.schema.fields, StructField(PLACE, LongType(), False)]
    return frame.mapInArrow(_number, StructType(fields))


def _number(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    place = partition_id() << _BITS
    for batch in batches:
        places = np.arange(place, place + batch.num_rows, dtype=np.int64)
        place += batch.num_rows
        yield batch.append_column(pa.field(PLACE, pa.int64(), False), pa.array(places))
