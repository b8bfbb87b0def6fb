"""A running join, line by line: Spark's figures of a batch and ours beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from querymesh.runtime.run import Run
from querymesh.runtime.run_counts import BatchCounts

HEAD = (
    f"{'batchId':>7}  {'numInputRows':>12}  {'processedRowsPerSecond':>22}  {'results':>9}  "
    f"{'probes':>9}  {'comparisons':>11}  {'stateRows':>9}  {'stateBytes':>11}  {'late':>6}  mesh"
)


def join_line(spark: Mapping[str, Any], batch: BatchCounts | None) -> str:
    """One batch; ours is missing until its tasks have reported."""
    rate = float(spark.get("processedRowsPerSecond") or 0.0)
    line = f"{int(spark['batchId']):>7}  {int(spark['numInputRows']):>12,}  {rate:>22,.0f}"
    if batch is None:
        return line
    versions = ",".join(str(max(seen)) for seen in batch.versions.values() if seen)
    return (
        f"{line}  {batch.rows_out:>9,}  {batch.probes:>9,}  {batch.comparisons:>11,}  "
        f"{batch.state_rows:>9,}  {batch.state_bytes:>11,}  {batch.late:>6,}  {versions}"
    )


class BatchLines:
    """The lines of a running join's batches, each once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._shown = -1

    def new(self, recent: Sequence[Mapping[str, Any]]) -> list[str]:
        """Lines for the batches that Spark has told of since the last call; at first a head."""
        fresh = [each for each in recent if int(each["batchId"]) > self._shown]
        if not fresh:
            return []
        head = [HEAD] if self._shown < 0 else []
        ours = {(batch.query_id, batch.batch_id): batch for batch in self._run.batches}
        self._shown = int(fresh[-1]["batchId"])
        return head + [
            join_line(each, ours.get((str(each["id"]), int(each["batchId"])))) for each in fresh
        ]
