"""A UDF in a Python worker: unpickled, with Spark's own conversions around it.

PySpark's worker makes of a pickled UDF a function from Arrow batches to Arrow batches, with all
conversions of arguments and results in it. That function is called here, so that no rule of
Spark's is written down a second time. Only UDFs without Arrow have their results converted in the
JVM: `pickled_results` has those rules.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import Broadcast, worker
from pyspark.serializers import CPickleSerializer
from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.util import PythonEvalType
from pyspark.worker import EvalConf, RunnerConf
from pyspark.worker_message import UDFInfo

from querymesh.spark.context import task_attempt
from querymesh.spark.udfs.batch_feed import FedFunction
from querymesh.spark.udfs.pickled_results import results_of_pickle
from querymesh.spark.udfs.spark_function import SparkFunction
from querymesh.worker_cache import WorkerCache

Loop = Callable[[int, Iterator[Any]], Iterator[Any]]
"""Spark's own loop around a UDF, from the number of a partition and its batches or rows."""

_ITERATORS = (
    PythonEvalType.SQL_SCALAR_PANDAS_ITER_UDF,
    PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF,
)
_MOST_OF_A_BROADCAST = 200
"""In bytes: the command of a function that is sent as a broadcast is no more than its name."""

_log = logging.getLogger("querymesh")
_pickle = CPickleSerializer()
_read_udfs: Callable[..., tuple[Loop, Any, Any, Any]] = worker.read_udfs


class LoadedFunction:
    """An unpickled UDF; `results` gives for a batch of arguments its values, in parts."""

    def __init__(self, function: SparkFunction, task: int | None) -> None:
        self.task = task
        self.accumulates = any(map(accumulates, function.commands))
        self.results: Callable[[pa.RecordBatch], list[pa.RecordBatch]]
        call = _spark_loop(function)
        self._fed = None
        if function.eval_type == PythonEvalType.SQL_BATCHED_UDF:
            self.results = _with_pickled_results(function, call)
        elif function.eval_type in _ITERATORS:
            self._fed = FedFunction(call)
            self.results = self._fed
        else:
            self.results = lambda batch: list(call(0, iter([batch])))

    def end_task(self) -> None:
        """Let an iterator UDF come to its end; it is started anew by the next batch."""
        if self._fed is None:
            return
        try:
            self._fed.end()
        except Exception:
            _log.warning("a UDF raised after its last batch", exc_info=True)


_functions: WorkerCache[str, LoadedFunction] = WorkerCache(64)
"""By its key, a function that was unpickled before."""


def loaded(function: SparkFunction) -> LoadedFunction:
    """The function as this worker has it, unpickled at its first use.

    One that adds to an accumulator is unpickled in every task, since Spark brings back what was
    added to accumulators that were unpickled in that task.
    """
    task = task_attempt()
    found = _functions.get(function.key)
    if found is not None and found.task != task:
        found.end_task()
        found.task = task
        if found.accumulates:
            found = None
    if found is None:
        found = LoadedFunction(function, task)
    _functions.put(function.key, found)
    return found


def end_task() -> None:
    """At the end of a task: let its iterator UDFs come to theirs, as Spark does."""
    task = task_attempt()
    for key in list(_functions):
        found = _functions.get(key)
        if found is not None and found.task == task:
            found.end_task()


def accumulates(command: bytes) -> bool:
    """Whether a pickled function adds to an accumulator."""
    whole = command
    if len(command) < _MOST_OF_A_BROADCAST:
        sent = pickle.loads(command)
        whole = sent.value if isinstance(sent, Broadcast) else command
    return b"_deserialize_accumulator" in whole


def _spark_loop(
    function: SparkFunction,
) -> Loop:
    """Spark's own loop around the function: batches or, without Arrow, rows of arguments."""
    numbered = list(enumerate(function.keywords))
    info = UDFInfo(
        udfs=[memoryview(command) for command in function.commands],
        args=[number for number, keyword in numbered if keyword is None],
        kwargs={keyword: number for number, keyword in numbered if keyword is not None},
        result_id=0,
    )
    loop, *_ = _read_udfs(
        _pickle,
        [info],
        function.eval_type,
        RunnerConf(dict(function.settings)),
        EvalConf({"input_type": function.arguments.json()}),
    )
    return loop


def _with_pickled_results(
    function: SparkFunction, loop: Loop
) -> Callable[[pa.RecordBatch], list[pa.RecordBatch]]:
    """A UDF without Arrow: rows of Python values in, values that the JVM would take out."""
    as_bytes = RunnerConf(dict(function.settings)).binary_as_bytes
    converters = [
        ArrowTableToRowsConversion._create_converter(field.dataType, binary_as_bytes=as_bytes)
        for field in function.arguments
    ]

    def results(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        columns = [
            [convert(value) for value in column.to_pylist()]
            for convert, column in zip(converters, batch.itercolumns(), strict=True)
        ]
        values = loop(0, zip(*columns, strict=True))
        array = results_of_pickle(values, function.returns, function.returns_arrow)
        return [pa.RecordBatch.from_arrays([array], ["_0"])]

    return results
