"""The boundary to the JVM: all that touches `sparkContext`, `_jdf` or a task's own context.

Everything else of QueryMesh goes through DataFrames, so that what a session cannot do has one
place to be told apart in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark import Broadcast, TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession

from querymesh.runtime.reports import ipc_bytes
from querymesh.runtime.task.place import TaskPlace

POOL = "spark.scheduler.pool"


def parallelism(session: SparkSession) -> int:
    """How many tasks run at once."""
    return int(session.sparkContext.defaultParallelism)


def active_parallelism() -> int:
    """How many tasks of the active session run at once; 1 if there is none."""
    session = SparkSession.getActiveSession()
    return 1 if session is None else parallelism(session)


def on_one_machine(session: SparkSession) -> bool:
    """Whether driver and tasks share a file system anyway."""
    return str(session.sparkContext.master).startswith("local")


def accumulator(session: SparkSession, param: AccumulatorParam[Any]) -> Accumulator[Any]:
    """An accumulator that starts with nothing."""
    return session.sparkContext.accumulator(None, param)


def counter(session: SparkSession) -> Accumulator[int]:
    """A counter that tasks add to."""
    return session.sparkContext.accumulator(0)


def set_log_level(session: SparkSession, level: str) -> None:
    """How much Spark itself says."""
    session.sparkContext.setLogLevel(level)


def scheduler_setting(session: SparkSession, name: str, default: str) -> str:
    """A setting that holds since the session started."""
    return str(session.sparkContext.getConf().get(name, default))


@contextmanager
def pool(session: SparkSession, name: str) -> Iterator[None]:
    """Jobs and streaming queries that are started within belong to a pool of this name.

    A streaming query keeps the pool in which it was started, all its life.
    """
    context = session.sparkContext
    before = context.getLocalProperty(POOL)
    context.setLocalProperty(POOL, name)
    try:
        yield
    finally:
        # None takes the property away again, which PySpark's hints do not know.
        context.setLocalProperty(POOL, before)  # type: ignore[arg-type]


class SentTables:
    """Static tables on their way to tasks, by alias; a table of several aliases is sent once."""

    def __init__(self, session: SparkSession, tables: Mapping[str, pa.Table]) -> None:
        context = session.sparkContext
        sent = {id(table): context.broadcast(ipc_bytes(table)) for table in tables.values()}
        self._sent: dict[str, Broadcast[bytes]] = {a: sent[id(t)] for a, t in tables.items()}

    def __call__(self) -> dict[str, pa.Table]:
        """The tables by alias, read in a task from what was broadcast."""
        return {
            alias: pa.ipc.open_stream(pa.py_buffer(sent.value)).read_all()
            for alias, sent in self._sent.items()
        }


def task_place() -> TaskPlace:
    """The partition, micro-batch and query of the task that asks."""
    context = TaskContext.get()
    if context is None:
        return TaskPlace()
    batch = context.getLocalProperty("streaming.sql.batchId")
    query = context.getLocalProperty("sql.streaming.queryId")
    return TaskPlace(int(context.partitionId()), int(batch) if batch is not None else None, query)


def java_process_id(session: SparkSession) -> int:
    """The process of the session's JVM, on this machine."""
    jvm = session._jvm
    assert jvm is not None, "a session on this machine has a JVM"
    return int(jvm.java.lang.ProcessHandle.current().pid())


def streaming_leaves(frame: DataFrame) -> list[Any]:
    """The streaming sources that a DataFrame reads, as the JVM has them: only good to compare."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = [leaves.apply(number) for number in range(leaves.size())]
    return [leaf for leaf in found if leaf.isStreaming()]
