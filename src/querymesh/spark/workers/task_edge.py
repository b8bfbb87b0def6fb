"""The edges of QueryMesh: errors leave it readable, and tasks leave nothing open.

Spark shows the text of an error in a task with all frames of the task's Python above it. Our own
errors say in their text what was wrong and where, with the frames of the user's function, so that
the frames of the fabric would only hide it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from querymesh.errors import PredicateError, QueryMeshError
from querymesh.spark.context import task_attempt

P = ParamSpec("P")
T = TypeVar("T")

_modules_set_aside = 0
"""How many modules there were when the collector of garbage was last told to leave them alone."""


def at_the_edge(results: Iterator[T]) -> Iterator[T]:
    """The results of a task. Its iterator UDFs come to their end with it, as they do in Spark."""
    try:
        yield from results
    except QueryMeshError as error:
        problem = error
    else:
        _end_udfs()
        _set_modules_aside()
        return
    raise problem.with_traceback(None) from None


def tells_plainly(call: Callable[P, T]) -> Callable[P, T]:
    """The same function, but an error in a user's function comes out of it without our frames.

    It arises on the driver too, where a sample is profiled.
    """

    @wraps(call)
    def told(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except PredicateError as error:
            problem = error
        raise problem.with_traceback(None) from None

    return told


def _end_udfs() -> None:
    # Where the module was never imported, no UDF ran; importing it needs PySpark 4.3.
    functions = sys.modules.get("querymesh.spark.udfs.loaded_function")
    if functions is not None:
        functions.end_task()


def _set_modules_aside() -> None:
    """Take what a worker has imported out of the collector's sight, whenever there is more of it.

    A worker of PySpark's collects after every task, and looked through all of our modules: 40
    milliseconds for a filter, 100 with the kernels of a join.
    """
    global _modules_set_aside
    if len(sys.modules) > _modules_set_aside and task_attempt() is not None:
        _modules_set_aside = len(sys.modules)
        gc.collect()  # what is set aside stays: no garbage shall be among it
        gc.freeze()
