"""What is left to Spark: conditions so cheap that taking them away from it would only cost.

A comparison costs Catalyst some hundredths of a microsecond, and may spare the scan a row group or
a whole partition. Such conditions are an ordinary filter below all others, and no operators.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from querymesh.query.bind.share import SharedQuery
from querymesh.query.expr import Expr, Opaque, columns_of, opaque_parts_of, user_calls_of
from querymesh.query.model import BoundQuery, Filter, Operator
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.conditions.comparisons import is_comparison
from querymesh.spark.conditions.facts import is_cheap
from querymesh.spark.context import fields_analysed
from querymesh.spark.filters.native import CatalystColumns, native_sql
from querymesh.worker_cache import WorkerCache

KEPT = 256
"""Readings that are kept."""


@dataclass(frozen=True)
class LeftToSpark:
    """A query with the conditions taken out that are settled beforehand.

    `bound` has the operators that remain. `below` is what Spark evaluates first, `above` what must
    come after a Python function; `names` are how both read.
    """

    bound: BoundQuery
    below: tuple[Expr, ...] = ()
    above: tuple[Expr, ...] = ()
    names: tuple[str, ...] = ()

    def filtered(self, source: DataFrame, columns: CatalystColumns) -> DataFrame:
        """The source with what comes first as an ordinary filter."""
        return source.filter(columns.filter_by(self.below)) if self.below else source


def left_to_spark(bound: BoundQuery, columns: CatalystColumns, *, settle: bool) -> LeftToSpark:
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
    below: set[int] = set()
    above: set[int] = set()
    first = _before_functions(bound, native) if settle else frozenset()
    for operator in bound.operators:
        if operator.index not in native:
            continue
        expr = native[operator.index]
        opaque = settle and bool(opaque_parts_of(expr))
        early = opaque or operator.index in first or _is_cheap(expr, columns)
        if early and operator.after <= below:
            below.add(operator.index)
        elif opaque:
            above.add(operator.index)
    gone = below | above
    return LeftToSpark(
        replace(bound, operators=without(bound.operators, gone)),
        tuple(native[index] for index in sorted(below)),
        tuple(native[index] for index in sorted(above)),
        tuple(operator.name for operator in bound.operators if operator.index in gone),
    )


def _before_functions(bound: BoundQuery, native: Mapping[int, Expr]) -> frozenset[int]:
    """The conditions that must be settled below, since one that only Catalyst can evaluate is among
    them and a function is declared to come after it: with it, all that it comes after."""
    functions = [op for op in bound.operators if op.index not in native]
    awaited = frozenset(index for op in functions for index in op.after if index in native)
    opaque = [
        op for op in bound.operators if op.index in awaited and opaque_parts_of(native[op.index])
    ]
    return frozenset(index for op in opaque for index in {op.index, *op.after} if index in native)


_known: WorkerCache[tuple[object, ...], list[Node]] = WorkerCache(KEPT)
"""Readings of conditions on a schema: it takes Catalyst half a millisecond a node to tell one."""


def trees_of(source: DataFrame, bound: BoundQuery, columns: CatalystColumns) -> dict[int, Node]:
    """How Catalyst reads the operators that it can evaluate, by index."""
    found: dict[int, Node] = {}
    asked: dict[int, Expr] = {}
    for operator in bound.operators:
        if not isinstance(operator, Filter) or not _is_of_source(operator, bound):
            continue
        expr = operator.expr
        if isinstance(expr, Opaque) and expr.key in columns.trees:
            found[operator.index] = columns.trees[expr.key]
        else:
            asked[operator.index] = expr
    trees = _analysed(source, bound, columns, list(asked.values()))
    return found | dict(zip(asked, trees, strict=True))


def _analysed(
    source: DataFrame, bound: BoundQuery, columns: CatalystColumns, exprs: Sequence[Expr]
) -> list[Node]:
    if not exprs:
        return []
    if any(opaque_parts_of(expr) for expr in exprs):
        return fields_analysed(source, columns.struct_of(exprs))
    ansi = source.sparkSession.conf.get("spark.sql.ansi.enabled")
    key = (ansi, bound.schemas[bound.source.alias], *map(native_sql, exprs))
    return _known.get_or_make(key, lambda: fields_analysed(source, columns.struct_of(exprs)))


def _is_cheap(expr: Expr, columns: CatalystColumns) -> bool:
    if isinstance(expr, Opaque):
        return expr.key in columns.trees and is_cheap(columns.trees[expr.key])
    return is_comparison(expr)


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
