"""`where`: the shortest way in, for a DataFrame and several expensive predicates."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.mesh.mesh import Mesh
from querymesh.policies.policy import Policy
from querymesh.query.parse.query import where as where_query
from querymesh.query.predicate.predicate import Predicate
from querymesh.spark.run import run


def where(
    *conditions: Predicate | str,
    policy: str | Policy = "mesh",
    engine: str = "auto",
    mesh: Mesh | None = None,
    sample: DataFrame | pa.Table | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    on_error: str = "raise",
    functions: Mapping[str, Predicate | Callable[..., Any]] | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """Keep the rows that satisfy every condition; for `df.transform(querymesh.where(...))`.

    - `conditions`: each a `querymesh.predicate` or SQL text such as "port IN (22, 445)";
      conditions joined by AND within one text are told apart
    - `policy`, `engine`, `checkpoint`, `on_error`: as `querymesh.run` has them
    - `mesh`: one trained before, which runs as it is
    - `sample`: what to learn from, instead of the DataFrame itself
    - `functions`: Python functions that SQL text calls, by name

    Each row meets only the predicates it needs, in the order that suits its kind. Rows come out as
    they went in, with the same schema and, within a partition, in the same order. For a batch
    DataFrame the mesh is trained here, on a sample (one scan). A stream learns from its first
    batches and goes on adapting.
    """
    query = where_query(conditions, functions)

    def apply(df: DataFrame) -> DataFrame:
        return run(
            mesh or query,
            df,
            policy=policy,
            engine=engine,
            checkpoint=checkpoint,
            on_error=on_error,
            sample=sample,
        )

    return apply
