"""Calls of aggregate functions, found while SELECT, GROUP BY and HAVING are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from querymesh.errors import QueryError
from querymesh.query.aggregate import TIME_WINDOWS, GroupColumn
from querymesh.query.expr import Call, Column, Expr, rewritten, walk
from querymesh.query.parse.convert import Converter
from querymesh.query.parse.syntax import as_written
from querymesh.query.predicate.predicate import Predicate
from querymesh.query.render import quoted_name, to_text


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A call of an aggregate function over expressions of rows; `count(*)` has no arguments."""

    function: str
    args: tuple[Expr, ...]
    distinct: bool = False
    where: Expr | None = None

    def text(self, qualified: bool) -> str:
        """The call as people write it."""
        args = ", ".join(to_text(arg, qualified=qualified) for arg in self.args) or "*"
        text = f"{self.function}({'DISTINCT ' if self.distinct else ''}{args})"
        if self.where is None:
            return text
        return f"{text} FILTER (WHERE {to_text(self.where, qualified=qualified)})"


class GroupConverter(Converter):
    """Converts what may hold aggregates: each becomes a `Grouped` column, and is kept in `calls`.

    `in_groups` tells whether an aggregate or a time window was met at all. `qualified` names show
    their relation.
    """

    def __init__(
        self, functions: Mapping[str, Predicate], aliases: Collection[str], qualified: bool
    ) -> None:
        super().__init__(functions, aliases)
        self.qualified = qualified
        self.calls: list[AggregateCall] = []
        self.in_groups = False
        self._of_rows = Converter(functions, aliases)

    def convert(self, node: exp.Expr) -> Expr:
        """Our expression for a sqlglot one."""
        if isinstance(node, exp.Filter) and isinstance(node.this, exp.Anonymous):
            column = super().convert(node.this)
            if isinstance(column, GroupColumn):
                where = self._of_rows.convert(node.expression.this)
                return self._kept(replace(self.calls.pop(), where=where))
        return super().convert(node)

    def shown(self, expr: Expr) -> str:
        """The expression as people write it, aggregates and all."""
        texts = {each.text for each in walk(expr) if isinstance(each, GroupColumn)}
        named = rewritten(
            expr, lambda e: Column(None, e.text) if isinstance(e, GroupColumn) else None
        )
        shown = to_text(named, qualified=self.qualified)
        for text in texts:
            shown = shown.replace(quoted_name(text), text)
        return shown

    def _aggregate(self, name: str, node: exp.Expr) -> Expr:
        self.in_groups = True
        if name in TIME_WINDOWS:
            return Call(name, tuple(self._of_rows.convert(arg) for arg in node.expressions))
        args, distinct = list(node.expressions), False
        if len(args) == 1 and isinstance(args[0], exp.Distinct):
            args, distinct = list(args[0].expressions), True
        if name == "count" and not distinct and len(args) == 1 and isinstance(args[0], exp.Star):
            args = []
        elif not args or any(_is_star(arg) for arg in args):
            raise QueryError(f"{as_written(node)}: say what to aggregate, as in {name}(price)")
        return self._kept(AggregateCall(name, tuple(map(self._of_rows.convert, args)), distinct))

    def _kept(self, call: AggregateCall) -> GroupColumn:
        self.calls.append(call)
        return GroupColumn(None, f"a{len(self.calls)}", call.text(self.qualified))


def has_aggregate(expr: Expr) -> bool:
    """Whether an aggregate stands in the expression."""
    return any(isinstance(each, GroupColumn) for each in walk(expr))


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or isinstance(node.this, exp.Star)
