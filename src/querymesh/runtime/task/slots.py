"""How a task takes the rows of several streams apart, which came to it as one table.

`spark/joins/layout.py` has the picture: columns of one type share slots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

STREAM = "stream"
"""The column with the number of a row's stream."""

SHARD = "shard"
"""The column with the shard that a row was sent to."""

PLACE = "__querymesh_place"
"""The column that tells where a row stood in its input: the partition in the upper bits, the row in
the lower ones."""

NOW = "__querymesh_now"
"""The column with Spark's time of the micro-batch."""


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
        numbers = batch.column(STREAM)
        present = np.unique(np.asarray(numbers))
        if len(present) == 1:
            return {int(present[0]): self._own(batch, int(present[0]))}
        return {
            int(k): self._own(batch, int(k)).filter(pc.equal(numbers, pa.scalar(k, pa.int8())))
            for k in present
        }

    def _own(self, batch: pa.RecordBatch, stream: int) -> pa.RecordBatch:
        arrays = [batch.column(slot) for slot in self.slots[stream]]
        names, nullable = self.columns[stream], self.nullable[stream]
        if not arrays:
            # A stream may send nothing but its presence; a batch without columns has no length.
            return batch.select([STREAM])
        schema = pa.schema(
            pa.field(name, array.type, null)
            for name, array, null in zip(names, arrays, nullable, strict=True)
        )
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
