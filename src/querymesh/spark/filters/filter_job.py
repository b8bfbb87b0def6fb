"""A filter about to run, and all that is known of it beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.query.expr import Opaque, opaque_parts_of, user_calls_of
from querymesh.query.model import BoundQuery, Filter, Operator
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.filters.native import CatalystColumns


@dataclass(frozen=True)
class FilterJob:
    """The source with what is left to Spark below, the operators that remain, how Catalyst reads
    them (`columns`, and `trees` by index), and what was given to learn from."""

    source: DataFrame
    bound: BoundQuery
    columns: CatalystColumns
    trees: Mapping[int, Node]
    sample: DataFrame | pa.Table | None
    on_error: str


def answered_by_spark(bound: BoundQuery, columns: CatalystColumns) -> BoundQuery:
    """The query with functions that only tasks can call as columns that Spark computes."""

    def answered(operator: Operator) -> Operator:
        called = user_calls_of(operator.expr) if isinstance(operator, Filter) else frozenset()
        keys = [columns.remote[name] for name in sorted(called) if name in columns.remote]
        if not isinstance(operator, Filter) or not keys:
            return operator
        return replace(operator, expr=Opaque(operator.name, (), pa.bool_(), keys[0]))

    return replace(bound, operators=tuple(map(answered, bound.operators)))


def is_opaque(operator: Operator) -> bool:
    """Whether the operator reads what only Catalyst computes."""
    return isinstance(operator, Filter) and bool(opaque_parts_of(operator.expr))
