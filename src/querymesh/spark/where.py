"""`where`: the shortest way in, for a DataFrame and several expensive predicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.fabric.routers.routing import Routing
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import where as where_query
from querymesh.query.predicate.predicate import Predicate
from querymesh.spark.run import run


def where(
    *conditions: Predicate | str,
    mesh: Mesh | None = None,
    policy: str = "mesh",
    engine: str = "auto",
    checkpoint: str | None = None,
    on_error: str = "raise",
    sample: DataFrame | pa.Table | None = None,
    functions: Mapping[str, Predicate | Callable[..., Any]] | None = None,
    training: Training | None = None,
    adapt: bool | Adaptation = True,
    routing: Routing | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """Keep the rows that satisfy every condition; for `df.transform(querymesh.where(...))`.

    A condition is a `querymesh.predicate` or SQL text such as "port IN (22, 445)". Each row meets
    only the predicates it needs, in the order that suits its kind. Rows come out as they went in,
    with the same schema and, within a partition, in the same order. Conditions joined by AND within
    one text are told apart. For a batch DataFrame the mesh is trained here, on a sample
    (one scan; `sample=` gives another, `mesh=` one trained before). A stream learns from
    its first batches and goes on adapting, as `run` tells. With policy "eddy" or "cbr" nothing is
    trained: rows are routed by what was learned from those before them, as `routing` says.
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
            training=training,
            adapt=adapt,
            routing=routing,
        )

    return apply
