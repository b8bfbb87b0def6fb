"""A filter about to run, and all that is known of it beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.query.expr import Opaque, opaque_parts_of, user_calls_of
from querymesh.query.model import BoundQuery, Filter, Operator
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.filters.native import CatalystColumns
from querymesh.spark.inputs import Data, static_tables


@dataclass(frozen=True)
class FilterJob:
    """The source with what is left to Spark below, the operators that remain, how Catalyst reads
    them (`columns`, and `trees` by index), and what was given to learn from.

    `engine` is "auto" where it is yet to be decided; `named` is whether the user did. `data` are
    the look-up tables as they were given, by alias.
    """

    source: DataFrame
    bound: BoundQuery
    columns: CatalystColumns
    trees: Mapping[int, Node]
    sample: DataFrame | pa.Table | None
    on_error: str
    engine: str = "auto"
    named: bool = False
    data: Mapping[str, Data] = field(default_factory=dict)

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The look-up tables, whole; collected at the first use."""
        return static_tables(self.bound, self.data)


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
