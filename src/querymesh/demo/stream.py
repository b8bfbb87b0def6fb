"""The streaming half of the demo: a query that starts with nothing known, and learns as it runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from querymesh.demo import market
from querymesh.demo.predicates import FUNCTIONS
from querymesh.errors import QueryMeshError
from querymesh.mesh.mesh import Mesh
from querymesh.query.parse.query import query
from querymesh.report.live.progress import BatchProgress, batch_progress
from querymesh.runtime.run import Run
from querymesh.spark.context import set_log_level
from querymesh.spark.remembered import inspect
from querymesh.spark.run import run

ROWS_PER_BATCH = 8_000
POLL_SECONDS = 0.1

PATIENCE_SECONDS, QUIET_SECONDS = 3.0, 0.5
"""How long to wait for a moment between two batches, and for Spark's last words after stopping."""

LEARN_SECONDS = 20.0
"""How long a mesh that is still being trained may take after the stream has ended."""

MOST_SECONDS = 60.0
"""A stream that has not switched yet may go on until then: a busy machine takes long to learn."""

AFTER_SWITCH = 5
"""Batches to show on the learned mesh at least."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """The run of the stream, and what each of its batches did."""

    run: Run
    batches: list[BatchProgress]


def stream(
    spark: SparkSession,
    seconds: float,
    seed: int,
    on_batch: Callable[[BatchProgress], None],
    on_mesh: Callable[[Mesh], None],
) -> Streamed:
    """Run the stocks query for so many seconds; `on_mesh` hears of a mesh once a batch used it."""
    inputs = {
        "Stock": market.tick_stream(spark, ROWS_PER_BATCH, seed),
        "News": market.news(seed),
        "StreetResearch": market.research(seed),
    }
    with tempfile.TemporaryDirectory(prefix="querymesh-demo-") as checkpoint:
        found = run(query(market.SQL, functions=FUNCTIONS), inputs, checkpoint=checkpoint)
        live = inspect(found)
        running = (
            found.writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime="1 second")
            .start()
        )
        try:
            batches = _watch(running, live, seconds, on_batch, on_mesh)
        finally:
            _stop(spark, running)
        live.wait_until_learned(LEARN_SECONDS)  # a mesh still in training goes to the checkpoint
    return Streamed(live, batches)


def _stop(spark: SparkSession, running: StreamingQuery) -> None:
    """Stop quietly, between two batches if there is such a moment.

    A stream that lags behind has none; its tasks are killed, and would say so at length.
    """
    patience = monotonic() + PATIENCE_SECONDS
    while running.isActive and running.status["isTriggerActive"] and monotonic() < patience:
        sleep(POLL_SECONDS / 5)
    level = spark.conf.get("spark.log.level", "ERROR") or "ERROR"
    set_log_level(spark, "OFF")
    running.stop()
    sleep(QUIET_SECONDS)
    set_log_level(spark, level)


def _watch(
    running: StreamingQuery,
    live: Run,
    seconds: float,
    on_batch: Callable[[BatchProgress], None],
    on_mesh: Callable[[Mesh], None],
) -> list[BatchProgress]:
    """Follow Spark's progress reports until a batch ends after so many seconds, and has learned.

    The clock starts when the first batch is done: before, workers start and modules are imported.
    """
    batches: list[BatchProgress] = []
    meter = _Meter(live)
    started: float | None = None
    while True:
        problem = running.exception()
        if problem is not None:
            raise QueryMeshError(f"the demo's stream stopped: {problem}")
        for report in running.recentProgress:
            if report["batchId"] < len(batches) or not report["numInputRows"]:
                continue
            version, evaluations_per_row = meter.since_last()
            mesh = dict(live.view.versions)[version]
            if batches and version != batches[-1].version:
                on_mesh(mesh)
            batches.append(batch_progress(report, evaluations_per_row, version, len(mesh.routes)))
            on_batch(batches[-1])
            started = started or monotonic()
            if _enough(batches, monotonic() - started, seconds):
                return batches
        sleep(POLL_SECONDS)


def _enough(batches: list[BatchProgress], elapsed: float, seconds: float) -> bool:
    switched = sum(batch.version > 0 for batch in batches) >= AFTER_SWITCH
    return elapsed >= (seconds if switched else max(seconds, MOST_SECONDS))


class _Meter:
    """What the run did since it was last asked."""

    def __init__(self, live: Run) -> None:
        self._live = live
        self._rows = 0
        self._evaluations = 0
        self._version = 0

    def since_last(self) -> tuple[int, float | None]:
        """The newest mesh version that met rows, and evaluations a row."""
        counts = self._live.counts
        evaluations = counts.evaluations
        rows = sum(counts.leaf_rows.values())
        self._version = max((version for version, _ in counts.leaf_rows), default=0)
        new_rows, new_evaluations = rows - self._rows, evaluations - self._evaluations
        self._rows, self._evaluations = rows, evaluations
        return self._version, new_evaluations / new_rows if new_rows else None
