"""Replay a case's files as streams into a sink that folds results into a fingerprint.

Source, trigger and sink are the same for every contestant that runs on Spark; what differs is the
DataFrame between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from querymesh.spark.context import java_process_id
from querymesh_lab.bench.fingerprint import of_ids
from querymesh_lab.bench.joins.join_case import JoinCase, Outcome, combined_id
from querymesh_lab.bench.joins.processor_time import between, cpu_seconds

StreamFrames = Mapping[str, DataFrame]
JoinFrames = Callable[[StreamFrames, Path], DataFrame]
"""Makes the join of the streams; the path is the checkpoint that the sink will use."""

_SETTINGS = {
    "spark.sql.streaming.numRecentProgressUpdates": "10000",  # the peak may be any batch
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # inner joins gain nothing by one
}
_OF_SPARK = {"offsets", "commits", "metadata", "state", "sources"}


def read_streams(session: SparkSession, case: JoinCase) -> dict[str, DataFrame]:
    """Each stream's files, one a micro-batch, in the order they were written."""
    read = {}
    for stream in case.design.graph.streams:
        schema = session.read.parquet(str(case.files(stream))).schema
        source = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        read[stream] = source.parquet(str(case.files(stream)))
    return read


def replay(
    session: SparkSession,
    case: JoinCase,
    join: JoinFrames,
    settings: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a join over all files; the time is from the start of the query to its end.

    Peaks are over all micro-batches, and of Spark's own state operators: a join that keeps its
    state elsewhere knows its own.
    """
    total = [0, 0, 0]
    file_bytes = [0]

    def sink(batch: DataFrame, _: int) -> None:
        folded = batch.selectExpr(combined_id(case.design.graph.ids()))
        for place, number in enumerate(of_ids(folded)):
            total[place] += number
        file_bytes.append(_other_bytes(checkpoint))

    with _with_settings(session, {**_SETTINGS, **(settings or {})}), TemporaryDirectory() as folder:
        checkpoint = Path(folder)
        result = join(read_streams(session, case), checkpoint)
        java = java_process_id(session)
        cpu, own = cpu_seconds(java), process_time()
        started = perf_counter()
        query = (
            result.writeStream.foreachBatch(sink)
            .option("checkpointLocation", folder)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        seconds = perf_counter() - started
        cpu = between(cpu, cpu_seconds(java))
        own = process_time() - own
        progress = [dict(one) for one in query.recentProgress]
    peak_rows, peak_bytes = _state_peaks(progress)
    return Outcome(
        answer=(total[0], total[1], total[2]),
        seconds=seconds,
        state_bytes=peak_bytes or None,
        state_rows=peak_rows or None,
        cpu_seconds=None if cpu is None else cpu + own,
        details={
            "batches": len(progress),
            "most_file_bytes": max(file_bytes),
            "longest_batch_s": max(one["batchDuration"] for one in progress) / 1000,
            "dropped_by_watermark": sum(
                op["numRowsDroppedByWatermark"] for one in progress for op in one["stateOperators"]
            ),
        },
    )


def _state_peaks(progress: list[dict[str, Any]]) -> tuple[int, int]:
    """Rows and bytes of all of Spark's own state operators together, each at its highest batch."""
    rows = [sum(op["numRowsTotal"] for op in one["stateOperators"]) for one in progress]
    used = [sum(op["memoryUsedBytes"] for op in one["stateOperators"]) for one in progress]
    return max(rows, default=0), max(used, default=0)


def _other_bytes(checkpoint: Path) -> int:
    """Bytes in the checkpoint that are not Spark's own: STeMs, and expired ones not yet removed."""
    total = 0
    for folder in checkpoint.iterdir():
        if folder.name in _OF_SPARK:
            continue
        for path in folder.rglob("*"):
            try:
                total += path.stat().st_size if path.is_file() else 0
            except FileNotFoundError:  # expired and removed while we looked
                continue
    return total


@contextmanager
def _with_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Spark settings for one query only."""
    before = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, old)
