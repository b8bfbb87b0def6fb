"""Join trees by their shape, and what one of Spark's own joins cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame

from querymesh.cost.plan_tree import JoinShape
from querymesh.errors import QueryError, SchemaError, UnsupportedError, did_you_mean
from querymesh.query.expr import Expr, user_calls_of
from querymesh.query.join import JoinQuery
from querymesh.query.model import Filter
from querymesh.query.render import to_text


def leaves_of(shape: JoinShape) -> Iterator[str]:
    """The aliases of a shape, from left to right."""
    if isinstance(shape, str):
        yield shape
    elif isinstance(shape, tuple) and len(shape) == 2:
        yield from leaves_of(shape[0])
        yield from leaves_of(shape[1])
    else:
        raise QueryError(
            f"{shape!r} is no part of a join tree: write an alias or a pair of parts, as in "
            '(("a", "b"), "c")'
        )


def check_tree(join: JoinQuery, frames: Mapping[str, DataFrame], shape: JoinShape) -> None:
    """Refuse what Spark's own joins cannot do, and shapes that are not of this query."""
    leaves = list(leaves_of(shape))
    for alias in leaves:
        if alias not in join.aliases:
            static = any(relation.alias == alias for relation in join.statics)
            why = (
                "is a static table, which the tree joins by itself: leave it out" if static else ""
            )
            raise QueryError(
                f"{alias!r} in the join tree {shape!r} "
                + (why or f"is no stream of the query; {did_you_mean(alias, join.aliases)}")
            )
        if leaves.count(alias) > 1:
            raise QueryError(f"{alias!r} is {leaves.count(alias)} times in the join tree {shape!r}")
    if missing := [alias for alias in join.aliases if alias not in leaves]:
        raise QueryError(f"the join tree {shape!r} lacks {', '.join(missing)}: add each once")
    for stream in join.streams:
        if stream.window is not None and stream.window.kind == "rows":
            raise UnsupportedError(
                f"the window [ROWS {stream.window.size}] of {stream.alias} counts arrivals, which "
                "Spark's joins cannot: write [RANGE n SECONDS], or run it on states, with "
                "policy='mesh'"
            )
    for alias in (*join.aliases, *(relation.alias for relation in join.statics)):
        if alias not in frames:
            raise SchemaError(f"no input for {alias!r}: {did_you_mean(alias, frames)}")
    for what, expr in _expressions(join):
        for name in sorted(user_calls_of(expr)):
            raise UnsupportedError(
                f"{name} in {what} {to_text(expr, qualified=True)} is a Python function, which "
                "Spark's joins cannot call: filter the stream by qm.where first, or run the query "
                "on states, with policy='mesh'"
            )
    batch = [alias for alias in join.aliases if not frames[alias].isStreaming]
    if batch and len(batch) < len(join.aliases):
        raise SchemaError(
            f"{', '.join(batch)} is a batch DataFrame, but the other windowed streams are "
            "streaming: read all of them by readStream, or leave the window off a table that does "
            "not change"
        )
    for relation in join.statics:
        if frames[relation.alias].isStreaming:
            raise SchemaError(
                f"{relation.alias} has no window and is read as a static table, but it is "
                "streaming: give it a window, as in [RANGE 60 SECONDS]"
            )


def _expressions(join: JoinQuery) -> Iterator[tuple[str, Expr]]:
    for each in join.classes:
        yield from (("the join key", expr) for expr in each.members.values())
    for compared in join.compared:
        yield from (("the join key", key) for key in (compared.left_key, compared.right_key))
    for view in join.views.values():
        yield from (("the condition", op.expr) for op in view.operators if isinstance(op, Filter))
    for filters in join.static_filters.values():
        yield from (("the condition", expr) for expr in filters)
    yield from (("the output", output.expr) for output in join.outputs)
