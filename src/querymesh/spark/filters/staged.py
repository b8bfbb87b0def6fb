"""A filter with a Python stage: an Arrow function inside an ordinary Filter of Spark's plan.

::

    rows ─> before (Catalyst) ─> Arrow function: sent the columns that decide, booleans back ─┐
                                  rows themselves stay in the JVM                             │
    out  <─ after (Catalyst, only where the function said yes) <──────────────────────────────┘

Declared deterministic, as Spark's own UDFs are, such a filter lets Spark prune columns and push
later filters below it into the scan. It is a barrier only where it has to be: see `_is_barrier`.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType, DataType, StringType

from querymesh.classify.tree import attributes_of
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.stages import LEAF, python_part
from querymesh.query.bind.share import SharedQuery
from querymesh.query.expr import Expr, arrow_columns_of, user_calls_of
from querymesh.query.model import BoundQuery, Filter, Lookup, Operator
from querymesh.query.types import Kind, kind_of
from querymesh.runtime.task.filter_task import SENT, FilterTask
from querymesh.runtime.task.place import TaskPlace
from querymesh.spark.context import has_python_filter, task_place
from querymesh.spark.filters.filter_job import FilterJob
from querymesh.spark.filters.gates import ColumnGates
from querymesh.spark.filters.native import (
    CatalystColumns,
    conditions_of,
    leaf_number,
    mesh_condition,
    project,
)
from querymesh.spark.workers.task_edge import at_the_edge

_by_hints: Any = arrow_udf
"""PySpark's own types ask for a kind of function, where the hints of a function say it."""

MOST_TELLING = 8
"""Columns that no operator reads and that a stream sends while it looks for kinds of rows, since
they may differ by them. Each costs 0.03 to 0.1 microseconds a row, on two cores."""

_TELLING = {Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT, Kind.STRING, Kind.DATE, Kind.TIMESTAMP}


@dataclass(frozen=True)
class Sent:
    """The columns that a Python stage is sent: names as tasks see them, and how they are made."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]


def must_travel_whole(bound: BoundQuery) -> bool:
    """Whether rows go to Python with all their columns: look-ups add some, outputs may need it."""
    if not bound.operators or isinstance(bound, SharedQuery):
        return True
    if any(user_calls_of(output.expr) for output in bound.outputs):
        return True
    return not all(isinstance(operator, Filter) for operator in bound.operators)


def read_by(bound: BoundQuery, operators: Collection[int]) -> set[str]:
    """The names of the source's columns that these operators read in Python."""
    own = {None, bound.source.alias}
    return {
        column.name
        for operator in bound.operators
        if operator.index in operators
        for expr in exprs_of(operator)
        for column in arrow_columns_of(expr)
        if column.relation in own
    }


def exprs_of(operator: Operator) -> tuple[Expr, ...]:
    """What an operator evaluates on the rows that come to it."""
    if isinstance(operator, Filter):
        return (operator.expr,)
    return operator.probe_keys if isinstance(operator, Lookup) else ()


def tellable(bound: BoundQuery, most: int = MOST_TELLING) -> tuple[str, ...]:
    """The columns by which kinds of rows might be told apart while a stream runs: those the
    operators read, and a few others that are cheap to send, `most` of them."""
    schema = bound.schemas[bound.source.alias]
    read = read_by(bound, {operator.index for operator in bound.operators})
    others = [f.name for f in schema if f.name not in read and kind_of(f.type) in _TELLING]
    others.sort(key=lambda name: kind_of(schema.field(name).type) is Kind.STRING)
    return (*sorted(read & set(schema.names)), *others[:most])


def gated(bound: BoundQuery) -> tuple[str, ...]:
    """Those of them that no operator reads: they come only while kinds are looked for."""
    read = read_by(bound, {operator.index for operator in bound.operators})
    return tuple(name for name in tellable(bound) if name not in read)


def columns_to_send(
    bound: BoundQuery,
    mesh: Mesh,
    columns: CatalystColumns,
    *,
    extra: Collection[str] = (),
    gates: ColumnGates | None = None,
) -> Sent:
    """What the Python stage of a mesh reads: its operators, its classifier, what is `extra`, and
    what is behind `gates`."""
    inside = mesh.stages.in_python(mesh) if mesh.stages else {op.index for op in bound.operators}
    read = read_by(bound, inside) | set(extra) | attributes_of(python_part(mesh).tree)
    every = [*bound.schemas[bound.source.alias].names, *columns.opaque, LEAF]
    names = tuple(name for name in every if name in read) or tuple(every[:1])
    made = [leaf_number(bound, mesh.tree) if n == LEAF else columns.named(n) for n in names]
    if gates is None or not gates.names:
        return Sent(names, tuple(made))
    free = [(n, column) for n, column in zip(names, made, strict=True) if n not in gates.names]
    behind = [(name, gates.column(name)) for name in gates.names]
    every_column = [*free, *behind, (SENT, gates.state)]
    return Sent(tuple(n for n, _ in every_column), tuple(c for _, c in every_column))


def staged_filter(job: FilterJob, task: FilterTask, sent: Sent, mesh: Mesh) -> DataFrame:
    """The rows of the source that pass every stage, with the query's output columns."""
    bound, stages, columns = task.bound, mesh.stages, job.columns
    source = _first_filtered(job, bound, mesh)
    later = [columns.of(expr) for expr in job.left.above]
    if stages is not None and any(stages.after(mesh)):
        later.insert(0, mesh_condition(bound, mesh.tree, stages.after(mesh), columns))
    barrier = _is_barrier(source, bound, mesh, later=bool(later))
    if not later:
        return project(
            source.filter(_python_stage(task.passes, sent, BooleanType(), barrier)), bound
        )
    # A row on which a function raised is an error only if no later condition drops it.
    verdict = _python_stage(task.verdicts, sent, StringType(), barrier)
    keeps = F.when(verdict == "", True).otherwise(F.raise_error(verdict).cast("boolean"))
    for condition in reversed(later):
        keeps = F.when(condition, keeps).otherwise(False)
    return project(source.filter(F.when(verdict.isNotNull(), keeps).otherwise(False)), bound)


def _first_filtered(job: FilterJob, bound: BoundQuery, mesh: Mesh) -> DataFrame:
    """The source with what is left to Spark below, and with what the mesh has Catalyst evaluate
    first: one filter, where that is one order."""
    before = mesh.stages.before(mesh) if mesh.stages is not None else ()
    if not any(before):
        return job.source
    if len(set(before)) == 1:
        exprs = conditions_of(bound)
        every = [*job.left.below, *(exprs[index] for index in before[0])]
        return job.whole.filter(job.columns.filter_by(every))
    return job.source.filter(mesh_condition(bound, mesh.tree, before, job.columns))


Stage = Callable[[Sequence[str], Iterator[Any], TaskPlace], Iterator[pa.Array]]
"""What a task does with the columns it is sent: an array for each batch of them."""


def _python_stage(run: Stage, sent: Sent, returns: DataType, barrier: bool) -> Column:
    """The Arrow function on the columns that it is sent."""
    names = sent.names

    def querymesh(parts: Iterator[Any]) -> Iterator[pa.Array]:
        return at_the_edge(run(names, parts, task_place()))

    # PySpark reads from the hints that batches come as an iterator, and knows typing's names only.
    arrays = pa.Array if len(names) == 1 else typing.Tuple[pa.Array, ...]  # noqa: UP006
    querymesh.__annotations__ = {
        "parts": typing.Iterator[arrays],  # type: ignore[valid-type]
        "return": typing.Iterator[pa.Array],
    }
    function = _by_hints(querymesh, returns)
    if barrier:
        function = function.asNondeterministic()
    return typing.cast(Column, function(*sent.columns))


def _is_barrier(source: DataFrame, bound: BoundQuery, mesh: Mesh, *, later: bool) -> bool:
    """Whether later conditions must not move below this filter.

    Under ANSI a later `cast(s as int) > 3` would be pushed below a SQL condition that guards it, if
    that condition now stands in Python, or after it (`later`): plain Spark finishes, and this would
    fail. And of two Python filters Spark would make one, which meets all rows: the first may be the
    other's guard.
    """
    inside = mesh.stages.in_python(mesh) if mesh.stages else {op.index for op in bound.operators}
    moved = later or any(
        isinstance(operator, Filter) and not user_calls_of(operator.expr)
        for operator in bound.operators
        if operator.index in inside
    )
    ansi = source.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"
    return (moved and ansi) or has_python_filter(source)
