"""Filters of wide rows: send a task the columns it asks about, and get booleans back.

`mapInArrow` moves every column of every row to Python and the survivors back. A query that only
filters does not need that: as an Arrow function inside a Catalyst filter, the fabric is sent the
columns that its predicates and its classifier read, and the rows themselves stay in the JVM.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType

from querymesh.classify.tree import attributes_of
from querymesh.mesh.mesh import Mesh
from querymesh.query.bind.share import SharedQuery
from querymesh.query.expr import columns_of, user_calls_of
from querymesh.query.model import BoundQuery, Filter
from querymesh.query.render import quoted_name
from querymesh.runtime.task.filter_task import FilterTask
from querymesh.spark.context import task_place
from querymesh.spark.filters.native import project

_by_hints: Any = arrow_udf
"""PySpark's own types ask for a kind of function, where the hints of a function say it."""


def columns_to_send(bound: BoundQuery, mesh: Mesh) -> list[str] | None:
    """The columns that decide, where sending only these is possible and saves something.

    None where rows must travel whole: look-ups add columns, outputs may need Python, and a mesh
    that is still to be learned may ask about any column.
    """
    if not bound.operators or isinstance(bound, SharedQuery):
        return None
    if any(user_calls_of(output.expr) for output in bound.outputs):
        return None
    read = set(attributes_of(mesh.tree))
    for operator in bound.operators:
        if not isinstance(operator, Filter):
            return None
        read |= {column.name for column in columns_of(operator.expr)}
    every = bound.schemas[bound.source.alias].names
    worth_it = 0 < len(read) <= len(every) // 2  # Spark queues the rows meanwhile, at a price
    return [name for name in every if name in read] if worth_it else None


def filter_by(source: DataFrame, task: FilterTask, names: Sequence[str]) -> DataFrame:
    """The rows of the source that pass, with the query's output columns."""

    def passes(parts: Iterator[Any]) -> Iterator[pa.Array]:
        return task.passes(names, parts, task_place())

    # PySpark reads from the hints that batches come as an iterator, and knows typing's names only.
    columns = pa.Array if len(names) == 1 else typing.Tuple[pa.Array, ...]  # noqa: UP006
    passes.__annotations__ = {
        "parts": typing.Iterator[columns],  # type: ignore[valid-type]
        "return": typing.Iterator[pa.Array],
    }
    # Nothing random is in it, but Catalyst would otherwise merge it with the user's own functions
    # in one node, or move it below a filter or join that is meant to come first.
    keeps = _by_hints(passes, BooleanType()).asNondeterministic()
    kept = source.filter(keeps(*(F.col(quoted_name(name)) for name in names)))
    return project(kept, task.bound)
