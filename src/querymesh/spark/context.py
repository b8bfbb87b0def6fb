"""The boundary to the JVM: all that touches `sparkContext`, `_jdf` or a task's own context.

Everything else of QueryMesh goes through DataFrames, so that what a session cannot do has one
place to be told apart in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import pyarrow as pa
from py4j.java_gateway import JavaClass
from pyspark import Broadcast, SparkContext, TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.errors import IllegalArgumentException
from pyspark.serializers import NoOpSerializer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType, _parse_datatype_json_string
from pyspark.util import _load_from_socket

from querymesh.errors import UnsupportedError
from querymesh.runtime.reports import ipc_bytes
from querymesh.runtime.task.place import TaskPlace
from querymesh.spark.conditions.catalyst import Node, node_from_json

POOL = "spark.scheduler.pool"
DESCRIPTION = "spark.job.description"


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


def driver_host(session: SparkSession) -> str:
    """The driver's address as its tasks reach it."""
    return scheduler_setting(session, "spark.driver.host", "127.0.0.1")


def driver_bind_address(session: SparkSession) -> str | None:
    """The same as the driver's machine has it, where it is another."""
    return scheduler_setting(session, "spark.driver.bindAddress", "") or None


def worker_executable(session: SparkSession) -> str:
    """The Python that the session's workers run: a path, or a name to look for."""
    return str(session.sparkContext.pythonExec)


def accumulator(session: SparkSession, param: AccumulatorParam[Any]) -> Accumulator[Any]:
    """An accumulator that starts with nothing."""
    return session.sparkContext.accumulator(None, param)


def counter(session: SparkSession) -> Accumulator[int]:
    """A counter that tasks add to."""
    return session.sparkContext.accumulator(0)


def running_session() -> SparkSession | None:
    """The session of this process; None if there is none, or none any more.

    The active session is that of a thread of the JVM, and a call that was broken off leaves its
    thread behind.
    """
    session = SparkSession._instantiatedSession
    if session is None or SparkContext._active_spark_context is None:
        return None
    return session


def cancel_all_jobs(session: SparkSession) -> None:
    """End all that runs in the session."""
    session.sparkContext.cancelAllJobs()


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
    with _local_property(session, POOL, name):
        yield


@contextmanager
def job_description(session: SparkSession, text: str) -> Iterator[None]:
    """Jobs that are started within have this text in Spark's UI; afterwards what was there."""
    with _local_property(session, DESCRIPTION, text):
        yield


@contextmanager
def _local_property(session: SparkSession, name: str, value: str) -> Iterator[None]:
    context = session.sparkContext
    before = context.getLocalProperty(name)
    context.setLocalProperty(name, value)
    try:
        yield
    finally:
        # None takes the property away again, which PySpark's hints do not know.
        context.setLocalProperty(name, before)  # type: ignore[arg-type]


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


def task_attempt() -> int | None:
    """In a task: the number that no other task and no second attempt has; None on the driver."""
    context = TaskContext.get()
    return None if context is None else int(context.taskAttemptId())


def java_process_id(session: SparkSession) -> int:
    """The process of the session's JVM, on this machine."""
    return int(java(session).java.lang.ProcessHandle.current().pid())


def java(session: SparkSession) -> Any:
    """The session's JVM: its classes by their full names."""
    jvm = session._jvm
    assert jvm is not None, "a session on this machine has a JVM"
    return jvm


def java_class(session: SparkSession, name: str) -> Any:
    """A class of the JVM's by its full name. To look for it package by package is a call each."""
    return JavaClass(name, java(session)._gateway_client)


def java_session(session: SparkSession) -> Any:
    """The session as the JVM has it."""
    return session._jsparkSession


def hidden_frame(session: SparkSession, schema: Any) -> DataFrame:
    """A DataFrame of a schema of the JVM's, of whose rows Catalyst knows nothing."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    owner, any_kind = java_session(session), java(session).scala.reflect.ClassTag.Any()
    rows = owner.sparkContext().emptyRDD(any_kind)
    return ClassicDataFrame(owner.internalCreateDataFrame(rows, schema, False), session)


def query_execution(frame: DataFrame) -> Any:
    """How Spark would execute a DataFrame: its plans from analysed to physical, made when asked."""
    return frame._jdf.queryExecution()


def lineage(scan: Any) -> str:
    """What the RDD that a physical scan reads is made of, as text."""
    return str(scan.rdd().toDebugString())


def arrow_rdd(frame: DataFrame, physical: Any) -> Any:
    """The rows of a physical plan that has a DataFrame's columns, as Arrow batches by partition."""
    return frame._jdf.toArrowBatchRdd(physical)


def collect_partitions(
    session: SparkSession, batches: Any, partitions: Sequence[int], schema: pa.Schema
) -> list[pa.RecordBatch]:
    """Run some partitions of what `arrow_rdd` gave, and no others: their batches, in order."""
    jvm = java(session)
    chosen = jvm.java.util.ArrayList()
    for number in partitions:
        chosen.add(number)
    served = jvm.org.apache.spark.api.python.PythonRDD.runJob(
        session.sparkContext._jsc.sc(), batches.toJavaRDD(), chosen
    )
    with _load_from_socket(served, NoOpSerializer()) as stream:
        return [pa.ipc.read_record_batch(pa.py_buffer(part), schema) for part in stream]


def streaming_leaves(frame: DataFrame) -> list[Any]:
    """The streaming sources that a DataFrame reads, as the JVM has them: only good to compare."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = [leaves.apply(number) for number in range(leaves.size())]
    return [leaf for leaf in found if leaf.isStreaming()]


_TYPED = frozenset({"AttributeReference", "Literal", "PythonUDF", "Cast"})
"""Nodes that have the type of their value written in them."""


@dataclass(frozen=True)
class AnalysedExpression:
    """An expression that Catalyst resolved against a DataFrame.

    `tree` is all of it as data; `expression` is the JVM's own, to be taken apart or put into
    another plan. The JVM is asked for all else when that is first wanted.
    """

    expression: Any
    tree: Node

    @cached_property
    def sql(self) -> str:
        """Text that Spark reads back, but for lambdas."""
        return str(self.expression.sql())

    @cached_property
    def deterministic(self) -> bool:
        """Whether it has one value for a row, whenever it is evaluated."""
        return bool(self.expression.deterministic())

    @cached_property
    def type(self) -> DataType:
        """The type of its value."""
        if self.tree.kind in _TYPED:
            return _parse_datatype_json_string(json.dumps(self.tree.fields["dataType"]))
        return _parse_datatype_json_string(str(self.expression.dataType().json()))

    def part(self, way: Sequence[int]) -> AnalysedExpression:
        """A part of it: the child of this number, its child of that number, and so on."""
        expression, tree = self.expression, self.tree
        for number in way:
            expression, tree = expression.children().apply(number), tree.children[number]
        return AnalysedExpression(expression, tree) if way else self


def analysed(frame: DataFrame, columns: Sequence[Column]) -> list[AnalysedExpression]:
    """Columns as Catalyst resolves them on a DataFrame; Spark's own error if it cannot."""
    plan = frame.select(*map(_named, columns))._jdf.queryExecution().analyzed()
    found = []
    for number in range(len(columns)):
        # Aggregates, window functions and explode() are taken out of the list, into other plans.
        made = plan.projectList().apply(number) if plan.nodeName() == "Project" else None
        if made is None or made.nodeName() != "Alias":
            raise UnsupportedError(
                "aggregates, window functions and functions that make rows, such as explode, have "
                "no value for a single row: use them on the DataFrame that comes out"
            )
        expression = made.child()
        found.append(AnalysedExpression(expression, node_from_json(str(expression.toJSON()))))
    return found


def _named(column: Column) -> Column:
    """The Column under a name, which nobody reads. PySpark's own `alias` also notes where it was
    called, in eight calls to the JVM."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(cast(Any, column)._jc.alias("c"))


def fields_analysed(frame: DataFrame, struct: Column) -> list[Node]:
    """The fields of a struct as Catalyst resolves them on a DataFrame: all of them in one call."""
    made = frame.select(struct)._jdf.queryExecution().analyzed().projectList().apply(0).child()
    return list(node_from_json(str(made.toJSON())).children[1::2])  # the others are names


def attribute_numbers(frame: DataFrame) -> dict[int, str]:
    """The names of a DataFrame's columns, by the numbers that tell them apart in a plan."""
    return {int(each.exprId().id()): str(each.name()) for each in _attributes(frame)}


def placed_on(frame: DataFrame, analysed: AnalysedExpression, names: Mapping[int, str]) -> Column:
    """What was analysed on one DataFrame as a Column of another.

    `names` are the other's columns, by the numbers of those that the expression reads.
    """
    session = frame.sparkSession
    by_name = {str(each.name()): each for each in _attributes(frame)}
    converters = java(session).scala.jdk.javaapi.CollectionConverters

    def moved(expression: Any, tree: Node) -> Any:
        if tree.kind == "AttributeReference":
            return by_name[names[int(tree.fields["exprId"]["id"])]]
        if not tree.attributes:
            return expression
        children = java(session).java.util.ArrayList()
        for number, child in enumerate(tree.children):
            children.add(moved(expression.children().apply(number), child))
        return expression.withNewChildren(converters.asScala(children).toSeq())

    return column_of(session, moved(analysed.expression, analysed.tree))


def _attributes(frame: DataFrame) -> list[Any]:
    output = frame._jdf.queryExecution().analyzed().output()
    return [output.apply(number) for number in range(output.size())]


def is_java_pattern(session: SparkSession, pattern: str) -> bool:
    """Whether Java, and so Spark, takes the text for a regular expression."""
    try:
        java(session).java.util.regex.Pattern.compile(pattern)
    except IllegalArgumentException:
        return False
    return True


def column_of(session: SparkSession, expression: Any) -> Column:
    """An expression of the JVM's as a Column, to be used in another plan."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(
        java_class(session, "org.apache.spark.sql.classic.ExpressionUtils").column(expression)
    )


def has_python_filter(frame: DataFrame) -> bool:
    """Whether the DataFrame's plan holds a filter of ours that runs in Python."""
    plan = frame._jdf.queryExecution().analyzed()
    patterns = java_class(frame.sparkSession, "org.apache.spark.sql.catalyst.trees.TreePattern")
    if not plan.containsPattern(patterns.PYTHON_UDF()):
        return False
    conditions = plan.toString()  # which takes long where there are many columns
    return any(
        "Filter" in line and "#" in line and "querymesh(" in line
        for line in str(conditions).splitlines()
    )


def python_worker_settings(session: SparkSession) -> dict[str, str]:
    """The settings that Spark gives its Python workers: the time zone, how values are converted."""
    runner = java_class(session, "org.apache.spark.sql.execution.python.ArrowPythonRunner")
    found = runner.getPythonRunnerConfMap(session._jsparkSession.sessionState().conf())
    listed = java_class(session, "scala.jdk.javaapi.CollectionConverters").asJava(found)
    writer = java_class(session, "com.fasterxml.jackson.databind.ObjectMapper")()
    text = writer.writeValueAsString(listed)  # one call
    return {str(name): str(value) for name, value in json.loads(text).items()}
