"""A filter about to run, and all that is known of it beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.cost.catalyst_cost import CostTable
from querymesh.query.costly.account.price import Budget
from querymesh.query.expr import Opaque, opaque_parts_of, user_calls_of
from querymesh.query.model import BoundQuery, Filter, Operator
from querymesh.query.predicate.predicate import Predicate
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.filters.native import CatalystColumns
from querymesh.spark.filters.pushed import LeftToSpark, trees_of
from querymesh.spark.inputs import Data, static_tables
from querymesh.spark.prices.machine_prices import cost_table


@dataclass(frozen=True)
class FilterJob:
    """The whole source, what is `left` to Spark of the conditions and what remains, how Catalyst
    evaluates them, and what was given to learn from.

    `engine` is "auto" where it is yet to be decided; `named` is whether the user did. `data` are
    the look-up tables as they were given, by alias; `budget` is what calls may cost.
    """

    whole: DataFrame
    left: LeftToSpark
    columns: CatalystColumns
    sample: DataFrame | pa.Table | None
    on_error: str
    engine: str = "auto"
    named: bool = False
    data: Mapping[str, Data] = field(default_factory=dict)
    budget: Budget | None = None

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The look-up tables, whole; collected at the first use."""
        return static_tables(self.bound, self.data)

    @property
    def bound(self) -> BoundQuery:
        """The query with the operators that remain."""
        return self.left.bound

    @property
    def functions(self) -> list[Predicate]:
        """The users' functions that it calls."""
        return list(self.bound.query.functions.values())

    @cached_property
    def source(self) -> DataFrame:
        """The source with what is left to Spark below."""
        return self.left.filtered(self.whole, self.columns)

    @cached_property
    def prices(self) -> CostTable:
        """Catalyst's prices on this machine; asked for where a condition has one."""
        return cost_table(self.whole.sparkSession)

    @cached_property
    def trees(self) -> Mapping[int, Node]:
        """How Catalyst reads the operators that it can evaluate, by index."""
        return trees_of(self.whole, self.bound, self.columns)


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
