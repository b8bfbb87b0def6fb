"""Which equalities link each static table to the source, directly or through other tables::

source ── a = b ── T ── c = d ── U        T is found first, then U
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from querymesh.errors import QueryError
from querymesh.query.expr import Call, Expr, columns_of


@dataclass(frozen=True)
class BoundCondition:
    """A conjunct with its names resolved and its types made explicit; `text` is as written."""

    expr: Expr
    text: str

    @cached_property
    def reads(self) -> frozenset[str]:
        """The aliases of the relations whose columns it reads."""
        return relations_of(self.expr)


@dataclass(frozen=True)
class StaticJoin:
    """A table to look up, with the places of the conjuncts that make its keys."""

    alias: str
    positions: tuple[int, ...]
    probe_keys: tuple[Expr, ...]
    build_keys: tuple[Expr, ...]

    @property
    def reads(self) -> frozenset[str]:
        """The aliases of the relations that the probe keys read."""
        return frozenset().union(*(relations_of(key) for key in self.probe_keys))


def place_lookups(
    conditions: Sequence[BoundCondition], source: str, tables: Sequence[str]
) -> list[StaticJoin]:
    """For each static table, the equalities that link it to the source or to earlier tables.

    QueryError if a table has none: a cross join is hardly ever meant.
    """
    joins: list[StaticJoin] = []
    placed = {source}
    waiting = list(tables)
    while waiting:
        found = [join for table in waiting if (join := _join(conditions, table, placed))]
        if not found:
            raise QueryError(
                f"no equality links {', '.join(waiting)} to {', '.join(sorted(placed))}: "
                f"add one, such as {source}.key = {waiting[0]}.key, to WHERE or ON"
            )
        joins += found
        placed |= {join.alias for join in found}
        waiting = [table for table in waiting if table not in placed]
    return joins


def _join(conditions: Sequence[BoundCondition], table: str, placed: set[str]) -> StaticJoin | None:
    links = [
        (position, *link)
        for position, condition in enumerate(conditions)
        if (link := _link(condition.expr, table, placed)) is not None
    ]
    if not links:
        return None
    positions, probe_keys, build_keys = zip(*links, strict=True)
    return StaticJoin(table, positions, probe_keys, build_keys)


def _link(expr: Expr, table: str, placed: set[str]) -> tuple[Expr, Expr] | None:
    """(probe key, build key) if the expression is an equality between placed tables and this."""
    if not isinstance(expr, Call) or expr.function != "=":
        return None
    for probe, build in (expr.args, expr.args[::-1]):
        reads = relations_of(probe)
        if reads and reads <= placed and relations_of(build) == {table}:
            return probe, build
    return None


def relations_of(expr: Expr) -> frozenset[str]:
    """The aliases of the relations whose columns an expression reads."""
    return frozenset(column.relation or "" for column in columns_of(expr))
