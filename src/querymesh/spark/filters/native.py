"""What Catalyst evaluates of a mesh: conditions in generated code, with no Python.

    CASE WHEN <test> THEN <route of the yes leaf> ELSE <route of the no leaf> END

A route is written as nested CASEs, `CASE WHEN p3 THEN CASE WHEN p1 THEN p2 ELSE false END …`, and
not as `p3 AND p1 AND p2`: Catalyst treats AND as commutative and folds branches that hold the same
predicates in another order into one, so that every class would run the same order again. Nested
CASEs have an order that the optimizer keeps; a test looks at its plans, NULLs possible and not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from querymesh.classify.tree import Classes, Leaf, Split, Tree, as_condition
from querymesh.errors import UnsupportedError
from querymesh.mesh.mesh import Mesh
from querymesh.query import expr as ours
from querymesh.query.bind.share import SharedQuery
from querymesh.query.expr import Expr, Opaque, user_calls_of
from querymesh.query.model import BoundQuery, Filter
from querymesh.query.render import quoted_name, spark_sql
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.context import analysed, placed_on
from querymesh.stats.profile import Route


@dataclass(frozen=True)
class CatalystColumns:
    """How Catalyst evaluates a query's expressions: its opaque parts, by key, as they were given
    (text, where it is a whole condition), all others as SQL that never raises.

    `remote` has the keys of conditions by the Python function they call, which only tasks can.
    `guarded` has those that may raise as they are evaluated out of their place, for a sample, each
    after the conditions that were written before: it is evaluated only where they hold. `trees`
    are Catalyst's readings of opaque parts, by key. `whole` are conditions as they were given, by
    each of the user's functions over Arrow arrays that they call.
    """

    opaque: Mapping[str, Column | str] = field(default_factory=dict)
    remote: Mapping[str, str] = field(default_factory=dict)
    guarded: Mapping[str, tuple[Column | str, ...]] = field(default_factory=dict)
    trees: Mapping[str, Node] = field(default_factory=dict)
    whole: Mapping[str, Column] = field(default_factory=dict)

    @property
    def sampled(self) -> dict[str, Column]:
        """The opaque parts by key, as they are evaluated on all rows of a sample."""
        guarded = {key: behind(each[:-1], each[-1]) for key, each in self.guarded.items()}
        return {**{key: as_column(each) for key, each in self.opaque.items()}, **guarded}

    def of(self, expr: Expr) -> Column:
        """An expression over the one source, as a Column."""
        if isinstance(expr, Opaque):
            return as_column(self.opaque[expr.key])
        return F.expr(native_sql(expr))

    def all_of(self, conditions: Sequence[Expr]) -> Column:
        """All of the conditions: Spark evaluates an AND from left to right."""
        return as_column(self.filter_by(conditions))

    def filter_by(self, conditions: Sequence[Expr]) -> Column | str:
        """The same for `DataFrame.filter`, which takes text in a single call to the JVM."""
        if not conditions:
            return "true"
        texts = self._texts(conditions)
        if texts is None:
            return reduce(lambda left, right: left & right, map(self.of, conditions))
        return " AND ".join(map(_bracketed, texts))

    def struct_of(self, exprs: Sequence[Expr]) -> Column:
        """A struct with a field for each expression."""
        texts = self._texts(exprs)
        if texts is None:
            return F.struct(*map(self.of, exprs))
        return F.expr(f"struct({', '.join(map(_bracketed, texts))})")

    def on(self, source: DataFrame, other: DataFrame) -> dict[str, Column]:
        """What a sample needs of one DataFrame, for another with its columns."""
        wanted = self.sampled
        found = analysed(source, list(wanted.values())) if wanted else []
        return {
            key: placed_on(other, each, each.tree.attributes)
            for key, each in zip(wanted, found, strict=True)
        }

    def named(self, name: str) -> Column:
        """A column of the source, or one that Catalyst computes for the tasks, under its name."""
        return as_column(self.opaque.get(name, quoted_name(name)))

    def _texts(self, exprs: Sequence[Expr]) -> list[str] | None:
        """The expressions as SQL, if all of them have one: one text is one call to the JVM, and a
        dozen calls are a hundredth of a second."""
        made = [self.opaque[e.key] if isinstance(e, Opaque) else native_sql(e) for e in exprs]
        texts = [each for each in made if isinstance(each, str)]
        return texts if len(texts) == len(made) else None


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


def run_native(
    source: DataFrame,
    bound: BoundQuery,
    mesh: Mesh,
    columns: CatalystColumns,
    below: Sequence[Expr] = (),
) -> DataFrame:
    """The query on a DataFrame, every kind of tuple in its own order, once all of `below` hold.

    Where all tuples take one route it is one filter, as the user would have written it.
    """
    routes = mesh.leaf_routes if bound.operators else ((),)
    if len(set(routes)) == 1:
        every = [*below, *(conditions_of(bound)[index] for index in routes[0])]
        return project(source.filter(columns.filter_by(every)) if every else source, bound)
    kept = source.filter(columns.filter_by(below)) if below else source
    return project(kept.filter(mesh_condition(bound, mesh.tree, routes, columns)), bound)


def can_run_plainly(bound: BoundQuery, columns: CatalystColumns) -> bool:
    """Whether Spark's own filter could take all conditions as given, functions among them."""
    return bool(columns.whole) and all(
        isinstance(operator, Filter) and user_calls_of(operator.expr) <= columns.whole.keys()
        for operator in bound.operators
    )


def run_plainly(
    source: DataFrame, bound: BoundQuery, columns: CatalystColumns, below: Sequence[Expr]
) -> DataFrame:
    """The query as one filter of Spark's own, which calls Python functions by itself."""
    native = conditions_of(bound)
    written = [
        native.get(operator.index) or columns.whole[min(user_calls_of(operator.expr))]
        for operator in bound.operators
        if isinstance(operator, Filter)
    ]
    every = [each if isinstance(each, Column) else columns.of(each) for each in (*below, *written)]
    return project(source.filter(reduce(lambda left, right: left & right, every)), bound)


def project(kept: DataFrame, bound: BoundQuery) -> DataFrame:
    """The query's output columns, of the source's rows that passed it."""
    if bound.query.outputs is None:  # all columns, also those that nobody can select by name
        return kept
    outputs = [(output.name, output.expr) for output in bound.outputs]
    if outputs == [(name, ours.Column(bound.source.alias, name)) for name in kept.columns]:
        return kept
    return kept.select(*(F.expr(native_sql(expr)).alias(name) for name, expr in outputs))


def mesh_condition(
    bound: BoundQuery, tree: Tree, routes: Sequence[Route], columns: CatalystColumns
) -> Column:
    """The condition that is true for the tuples that pass every operator on their leaf's route.

    `routes` are by leaf, left to right. Where all leaves have one route there is nothing to tell
    apart: it is what the user would have written, in that order.
    """
    exprs = conditions_of(bound)
    if len(set(routes)) == 1:
        return columns.all_of([exprs[index] for index in routes[0]])
    conditions = {index: columns.of(expr) for index, expr in exprs.items()}
    remaining = iter(routes)

    def written(node: Tree) -> Column:
        if isinstance(node, Leaf):
            return _in_order([conditions[index] for index in next(remaining)])
        split = _of_tests(node)
        test = F.expr(native_sql(as_condition(split.test, bound.source.alias)))
        yes = written(split.yes)
        return F.when(test, yes).otherwise(written(split.no))

    return written(tree)


def _of_tests(node: Split | Classes) -> Split:
    if isinstance(node, Classes):
        raise UnsupportedError(
            f"classifier {node.classifier.kind} is asked in Python, and engine 'native' runs none: "
            "use engine='fabric' or 'auto', or a mesh whose classifier is a tree"
        )
    return node


def conditions_of(bound: BoundQuery) -> dict[int, Expr]:
    """What Catalyst can evaluate of a query, by operator."""
    return {
        operator.index: operator.expr
        for operator in bound.operators
        if isinstance(operator, Filter) and not user_calls_of(operator.expr)
    }


def leaf_number(bound: BoundQuery, tree: Tree) -> Column:
    """The leaf that a tuple reaches, numbered from 0, left to right."""
    count = 0

    def written(node: Tree) -> Column:
        nonlocal count
        if isinstance(node, Leaf):
            count += 1
            return F.lit(count - 1)
        split = _of_tests(node)
        test = F.expr(native_sql(as_condition(split.test, bound.source.alias)))
        yes = written(split.yes)
        return F.when(test, yes).otherwise(written(split.no))

    return written(tree)


def _in_order(conditions: Sequence[Column]) -> Column:
    """All of them, evaluated in this order whatever Catalyst thinks of it."""
    if not conditions:
        return F.lit(True)
    *first, last = conditions
    return reduce(lambda rest, each: F.when(each, rest).otherwise(False), reversed(first), last)


def _bracketed(text: str) -> str:
    """The text in brackets, which a comment at its end does not swallow."""
    return f"({text}\n)" if "--" in text else f"({text})"


def behind(guards: Sequence[Column | str], given: Column | str) -> Column:
    """A column that is evaluated only where all guards hold, and is NULL elsewhere."""
    column = as_column(given)
    for guard in reversed(guards):
        column = F.when(as_column(guard), column)
    return column


def as_column(given: Column | str) -> Column:
    """SQL text as a Column; a Column as it is."""
    return F.expr(given) if isinstance(given, str) else given


def native_sql(expr: Expr) -> str:
    """An expression over the one source, as Spark SQL."""
    return spark_sql(expr, column=lambda column: quoted_name(column.name))
