"""`where`: the shortest way in, for a DataFrame and several expensive predicates."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.mesh.mesh import Mesh
from querymesh.policies.policy import Policy
from querymesh.policies.registry import policy_of
from querymesh.query.costly.account.price import Budget, budget_of
from querymesh.query.parse.query import SOURCE
from querymesh.query.predicate.predicate import Predicate
from querymesh.spark.conditions.given import Condition, check_conditions
from querymesh.spark.filters.bound_conditions import bound_conditions
from querymesh.spark.filters.filter_run import run_filter
from querymesh.spark.options import FilterOptions, absolute


def where(
    *conditions: Condition,
    policy: str | Policy = "mesh",
    engine: str = "auto",
    mesh: Mesh | None = None,
    sample: DataFrame | pa.Table | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    on_error: str = "raise",
    functions: Mapping[str, Predicate | Callable[..., object]] | None = None,
    budget: Budget | float | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """Keep the rows that satisfy every condition; for `df.transform(querymesh.where(...))`.

    - `conditions`: each SQL text such as "port IN (22, 445)", a Column, a `udf`, `pandas_udf` or
      `arrow_udf` of yours applied to columns, or a `querymesh.predicate`; conditions joined by AND
      within one text or Column are told apart
    - `policy`, `engine`, `checkpoint`, `on_error`: as `querymesh.run` has them
    - `mesh`: one trained before, which runs as it is
    - `sample`: what to learn from, instead of the DataFrame itself
    - `functions`: Python functions that SQL text calls, by name
    - `budget`: what all calls of functions with a `price=` may cost, in their unit, or a
      `querymesh.Budget` that says what becomes of the rows it cannot pay for

    Each row meets only the predicates it needs, in the order that suits its kind. Rows come out as
    they went in, with the same schema and, within a partition, in the same order. What Spark can
    push down stays Spark's. A batch learns here, from a bounded sample, if that can pay for itself;
    else it runs as written. A stream learns from its first batches and goes on adapting.
    """
    options = FilterOptions(
        policy=policy_of(policy), engine=engine, checkpoint=absolute(checkpoint),
        on_error=on_error, sample=sample, budget=budget_of(budget),
    )  # fmt: skip
    check_conditions(conditions)

    def apply(df: DataFrame) -> DataFrame:
        bound, columns = bound_conditions(df, conditions, functions)
        return run_filter(bound, {SOURCE: df}, mesh, options, columns)

    return apply
