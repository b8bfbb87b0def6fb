"""The native engine: a mesh as one Catalyst expression, run in generated code with no Python.

    CASE WHEN <test> THEN <route of the yes leaf> ELSE <route of the no leaf> END

A route is written as nested CASEs, `CASE WHEN p3 THEN CASE WHEN p1 THEN p2 ELSE false END …`, and
not as `p3 AND p1 AND p2`: Catalyst treats AND as commutative and folds branches that hold the same
predicates in another order into one, so that every class would run the same order again. Nested
CASEs have an order that the optimizer keeps; a test looks at its plans, NULLs possible and not.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from querymesh.classify.tree import Leaf, Tree, as_condition
from querymesh.mesh.mesh import Mesh
from querymesh.query.bind.share import SharedQuery
from querymesh.query.expr import Column, Expr, user_calls_of
from querymesh.query.model import BoundQuery, Filter
from querymesh.query.render import quoted_name, spark_sql
from querymesh.stats.profile import Route


def why_not_native(bound: BoundQuery) -> str | None:
    """What keeps the query from running in Catalyst alone; None where nothing does."""
    if isinstance(bound, SharedQuery):
        return "these queries share one pass"
    for operator in bound.operators:
        if not isinstance(operator, Filter):
            return f"{operator.name} is a look-up"
        if user_calls_of(operator.expr):
            return f"{operator.name} is a Python function"
    for output in bound.outputs:
        if user_calls_of(output.expr):
            return f"the output column {output.name} calls a Python function"
    return None


def run_native(source: DataFrame, bound: BoundQuery, mesh: Mesh) -> DataFrame:
    """The query on a DataFrame, every kind of tuple in its own order."""
    kept = source.filter(F.expr(mesh_condition(bound, mesh))) if bound.operators else source
    return project(kept, bound)


def project(kept: DataFrame, bound: BoundQuery) -> DataFrame:
    """The query's output columns, of the source's rows that passed it."""
    outputs = [(output.name, output.expr) for output in bound.outputs]
    if outputs == [(name, Column(bound.source.alias, name)) for name in kept.columns]:
        return kept
    return kept.select(*(F.expr(native_sql(expr)).alias(name) for name, expr in outputs))


def mesh_condition(bound: BoundQuery, mesh: Mesh) -> str:
    """The condition that is true for the tuples that pass every operator, in Spark SQL."""
    filters = [operator for operator in bound.operators if isinstance(operator, Filter)]
    conditions = [native_sql(operator.expr) for operator in filters]

    def written(tree: Tree) -> str:
        if isinstance(tree, Leaf):
            return _route_condition(mesh.routes[tree.label], conditions)
        test = native_sql(as_condition(tree.test, bound.source.alias))
        return f"CASE WHEN {test} THEN {written(tree.yes)} ELSE {written(tree.no)} END"

    return written(mesh.tree)


def _route_condition(route: Route, conditions: list[str]) -> str:
    first, *rest = route
    if not rest:
        return conditions[first - 1]
    onward = _route_condition(tuple(rest), conditions)
    return f"CASE WHEN {conditions[first - 1]} THEN {onward} ELSE false END"


def native_sql(expr: Expr) -> str:
    """An expression over the one source, as Spark SQL."""
    return spark_sql(expr, column=lambda column: quoted_name(column.name))
