"""The edge between a task of ours and Spark: what leaves it is readable, and nothing is left open.

Spark shows the text of an error in a task with all frames of the task's Python above it. Our own
errors say in their text what was wrong and where, with the frames of the user's function, so that
the frames of the fabric would only hide it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TypeVar

from querymesh.errors import QueryMeshError

T = TypeVar("T")


def at_the_edge(results: Iterator[T]) -> Iterator[T]:
    """The results of a task. Its iterator UDFs come to their end with it, as they do in Spark."""
    try:
        yield from results
    except QueryMeshError as error:
        problem = error
    else:
        _end_udfs()
        return
    raise problem.with_traceback(None) from None


def _end_udfs() -> None:
    # Where the module was never imported, no UDF ran; importing it needs PySpark 4.3.
    functions = sys.modules.get("querymesh.spark.udfs.loaded_function")
    if functions is not None:
        functions.end_task()
