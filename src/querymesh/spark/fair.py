"""Many streaming queries served fairly, OM § 5.4: none waits for another to be done.

Spark serves jobs first come, first served, by default and within a pool: a light query's batch
waits until every task of a heavy one has at least begun. In pools of their own, under the FAIR
scheduler, queries take turns at free cores: a light one waits for a task to end, not for a batch::

    one pool     H H H H H H H H L L     tasks of a heavy batch, then those of the light ones
    a pool each  H L H L H H H H H H

`fair` starts running queries so. `in_rounds` is the paper's own way, strictly in turn: each query
is run for what is there to be read, and goes to the back of the queue.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from querymesh.errors import QueryError, QueryMeshError, SetupError
from querymesh.optimize.chart.fair_rounds import FairRounds, Turn
from querymesh.spark.context import pool, scheduler_setting

log = logging.getLogger("querymesh")

MODE = "spark.scheduler.mode"


def fair(
    session: SparkSession, writers: Mapping[str, DataStreamWriter]
) -> dict[str, StreamingQuery]:
    """Start streaming queries, each in a pool of its own, so that none starves another.

    `writers` are by name, as `out.writeStream...` makes them, with sink, trigger and checkpoint
    set. The queries are returned by the same names, running. If one cannot be started, those that
    were are stopped.
    """
    _check_mode(scheduler_setting(session, MODE, "FIFO"))
    _check_writers(writers)
    running: dict[str, StreamingQuery] = {}
    try:
        for name, writer in writers.items():
            with pool(session, name):
                running[name] = writer.start()
    except BaseException:
        for query in running.values():
            query.stop()
        raise
    return running


def in_rounds(writers: Mapping[str, DataStreamWriter], turns: int) -> Iterator[Turn]:
    """Serve queries strictly in turn, as OM § 5.4 does, for so many turns in all.

    In its turn a query reads what is there by then (`trigger(availableNow=True)`) and ends; in its
    next it goes on from its checkpoint, so each writer must have one. A turn tells how long the
    query waited and how long it took. A query that fails leaves the rounds, with a warning, and the
    others go on; after the last turn an error says which failed and why.
    """
    _check_writers(writers)
    queue = FairRounds()
    failed: dict[str, Exception] = {}
    for name in writers:
        queue.register(name)

    def serve(name: str) -> float:
        started = time.perf_counter()
        try:
            _run_out(writers[name])
        except Exception as problem:
            log.warning("query %s failed and leaves the rounds: %s", name, problem)
            failed[name] = problem
            queue.remove(name)
        return time.perf_counter() - started

    yield from queue.turns(serve, turns)
    if failed:
        told = "; ".join(f"{name}: {problem}" for name, problem in failed.items())
        raise QueryMeshError(
            f"{len(failed)} of {len(writers)} queries failed and left the rounds, {told}"
        ) from next(iter(failed.values()))


def _run_out(writer: DataStreamWriter) -> None:
    """Run a query for what is there to be read."""
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def _check_mode(mode: str) -> None:
    if mode.upper() != "FAIR":
        raise SetupError(
            f"this Spark session serves jobs in the order they come ({MODE} is {mode}), and that "
            f"is settled when it starts: start it with {MODE}=FAIR, as querymesh.local_session "
            "does, or serve the queries strictly in turn by querymesh.in_rounds"
        )


def _check_writers(writers: object) -> None:
    if not isinstance(writers, Mapping) or not writers:
        raise QueryError(
            "queries to be served fairly are given by name, with their writers, such as "
            '{"orders": out.writeStream.format("delta").option("checkpointLocation", path)}'
        )
    for name, writer in writers.items():
        if not isinstance(name, str) or not name:
            raise QueryMeshError(f"a query's name is text, and its pool's name, not {name!r}")
        if not (hasattr(writer, "start") and hasattr(writer, "trigger")):
            raise QueryMeshError(
                f"query {name} is a {type(writer).__name__}: give out.writeStream with its sink "
                "set, and do not start it"
            )
