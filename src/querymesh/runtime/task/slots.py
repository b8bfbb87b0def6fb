"""How a task takes the rows of several streams apart, which came to it as one table.

`spark/joins/layout.py` has the picture: columns of one type share slots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from querymesh.arrays import Array

TAG = "tag"
"""The column that tells a row's stream and the shard it was sent to, the stream in the lower
`STREAM_BITS`: one number, since each column of each row has its price on the way."""

STREAM_BITS = 7

PLACE = "__querymesh_place"
"""The column that tells where a row stood in its input: the partition in the upper bits, the row in
the lower ones."""

NOW = "__querymesh_now"
"""The column with Spark's time of the micro-batch."""


def stream_numbers(batch: pa.RecordBatch) -> Array:
    """The number of each row's stream."""
    return np.asarray(batch.column(TAG)) & ((1 << STREAM_BITS) - 1)


def shard_numbers(batch: pa.RecordBatch) -> Array:
    """The shard that each row was sent to."""
    return np.asarray(batch.column(TAG)) >> STREAM_BITS


@dataclass(frozen=True)
class SlotMap:
    """For each stream, by number, its columns and the slot that each lies in. Picklable."""

    aliases: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    slots: tuple[tuple[str, ...], ...]
    nullable: tuple[tuple[bool, ...], ...]
    time_slot: str | None = None

    def unpack(self, batch: pa.RecordBatch) -> dict[int, pa.RecordBatch]:
        """The rows of each stream that has any, in the batch's order, under their own names.

        Nothing is copied where the whole batch is of one stream.
        """
        numbers = stream_numbers(batch)
        if not len(numbers):
            return {}
        first = int(numbers[0])
        if (numbers == first).all():
            return {first: self._own(batch, first)}
        return {
            k: self._own(batch, k).filter(pa.array(numbers == k))
            for k in np.flatnonzero(np.bincount(numbers)).tolist()
        }

    def _own(self, batch: pa.RecordBatch, stream: int) -> pa.RecordBatch:
        arrays = [batch.column(slot) for slot in self.slots[stream]]
        names, nullable = self.columns[stream], self.nullable[stream]
        if not arrays:
            # A stream may send nothing but its presence; a batch without columns has no length.
            return batch.select([TAG])
        schema = pa.schema(
            pa.field(name, array.type, null)
            for name, array, null in zip(names, arrays, nullable, strict=True)
        )
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
