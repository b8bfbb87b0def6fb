"""Conditions on a DataFrame, read and bound: what `where` runs and `advise` looks at."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from querymesh.query.model import BoundQuery
from querymesh.query.parse.query import SOURCE, Functions
from querymesh.spark.conditions.given import Condition
from querymesh.spark.conditions.read import read_conditions
from querymesh.spark.filters.native import CatalystColumns
from querymesh.spark.schema import check_classic


def bound_conditions(
    df: DataFrame, conditions: Sequence[Condition], functions: Functions | None = None
) -> tuple[BoundQuery, CatalystColumns]:
    """The query that keeps the rows for which all conditions hold, and how Catalyst evaluates the
    parts that only it can."""
    check_classic(df)
    read = read_conditions(df, conditions, functions)
    bound = read.query.bind({SOURCE: read.schema})
    return bound, CatalystColumns(read.columns, read.remote, read.guarded, read.trees, read.whole)
