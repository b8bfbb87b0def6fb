"""What is left to Spark: conditions so cheap that taking them away from it would only cost.

A comparison costs Catalyst some hundredths of a microsecond, and may spare the scan a row group or
a whole partition. Such conditions are an ordinary filter below all others, and no operators.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame

from querymesh.query.bind.share import SharedQuery
from querymesh.query.expr import Expr, columns_of, opaque_parts_of, user_calls_of
from querymesh.query.model import BoundQuery, Filter, Operator
from querymesh.runtime.worker_cache import WorkerCache
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.conditions.facts import is_cheap
from querymesh.spark.context import fields_analysed
from querymesh.spark.filters.native import CatalystColumns, native_sql

KEPT = 256
"""Readings that are kept."""


@dataclass(frozen=True)
class LeftToSpark:
    """A query with the conditions taken out that are settled beforehand.

    `bound` has the operators that remain. `below` is what Spark evaluates first, if anything,
    `above` what must come after a Python function; `names` are how both read. `trees` are
    Catalyst's readings of the operators that remain and have one, by index.
    """

    bound: BoundQuery
    below: Column | None = None
    above: tuple[Column, ...] = ()
    names: tuple[str, ...] = ()
    trees: Mapping[int, Node] = field(default_factory=dict)

    def filtered(self, source: DataFrame) -> DataFrame:
        """The source with what comes first as an ordinary filter."""
        return source if self.below is None else source.filter(self.below)


def left_to_spark(
    source: DataFrame, bound: BoundQuery, columns: CatalystColumns, *, settle: bool
) -> LeftToSpark:
    """Tell the conditions that Spark does best from the operators that are worth ordering.

    To `settle` is to leave all to Spark that only Catalyst can evaluate, in the order as written:
    where what is learned while a query runs cannot move them.
    """
    if isinstance(bound, SharedQuery):
        return LeftToSpark(bound)
    native = {
        operator.index: operator.expr
        for operator in bound.operators
        if isinstance(operator, Filter) and _is_of_source(operator, bound)
    }
    trees = dict(zip(native, _trees(source, bound, columns, [*native.values()]), strict=True))
    below: set[int] = set()
    above: set[int] = set()
    first = _before_functions(bound, trees) if settle else frozenset()
    for operator in bound.operators:
        if operator.index not in trees:
            continue
        opaque = settle and bool(opaque_parts_of(_expr(operator)))
        early = opaque or operator.index in first or is_cheap(trees[operator.index])
        if early and operator.after <= below:
            below.add(operator.index)
        elif opaque:
            above.add(operator.index)
    gone = below | above
    kept = [operator.index for operator in bound.operators if operator.index not in gone]
    return LeftToSpark(
        replace(bound, operators=without(bound.operators, gone)),
        columns.all_of([native[index] for index in sorted(below)]) if below else None,
        tuple(columns.of(native[index]) for index in sorted(above)),
        tuple(operator.name for operator in bound.operators if operator.index in gone),
        {new: trees[old] for new, old in enumerate(kept, start=1) if old in trees},
    )


def _before_functions(bound: BoundQuery, trees: Collection[int]) -> frozenset[int]:
    """The conditions that must be settled below, since one that only Catalyst can evaluate is among
    them and a function is declared to come after it: with it, all that it comes after."""
    functions = [op for op in bound.operators if op.index not in trees]
    awaited = frozenset(index for op in functions for index in op.after if index in trees)
    opaque = [op for op in bound.operators if op.index in awaited and opaque_parts_of(_expr(op))]
    return frozenset(index for op in opaque for index in {op.index, *op.after} if index in trees)


_known: WorkerCache[tuple[object, ...], list[Node]] = WorkerCache(KEPT)
"""Readings of conditions on a schema: it takes Catalyst half a millisecond a node to tell one."""


def _trees(
    source: DataFrame, bound: BoundQuery, columns: CatalystColumns, exprs: Sequence[Expr]
) -> list[Node]:
    """How Catalyst reads the expressions, whose columns are the source's."""
    if not exprs:
        return []
    if any(opaque_parts_of(expr) for expr in exprs):
        return fields_analysed(source, columns.struct_of(exprs))
    ansi = source.sparkSession.conf.get("spark.sql.ansi.enabled")
    schema = str(bound.schemas[bound.source.alias])
    key = (ansi, schema, *map(native_sql, exprs))
    return _known.get_or_make(key, lambda: fields_analysed(source, columns.struct_of(exprs)))


def _expr(operator: Operator) -> Expr:
    assert isinstance(operator, Filter)
    return operator.expr


def without(operators: Collection[Operator], gone: Collection[int]) -> tuple[Operator, ...]:
    """The operators that remain, numbered anew; nothing has to come after what is gone."""
    kept = [operator for operator in operators if operator.index not in gone]
    number = {operator.index: new for new, operator in enumerate(kept, start=1)}
    return tuple(
        replace(
            operator,
            index=number[operator.index],
            after=frozenset(number[k] for k in operator.after if k in number),
        )
        for operator in kept
    )


def _is_of_source(operator: Filter, bound: BoundQuery) -> bool:
    relations = {column.relation for column in columns_of(operator.expr)}
    return not user_calls_of(operator.expr) and relations <= {None, bound.source.alias}
