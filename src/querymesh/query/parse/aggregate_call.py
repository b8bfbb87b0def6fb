"""Calls of aggregate functions, found while SELECT, GROUP BY and HAVING are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from querymesh.errors import QueryError, QueryMeshError
from querymesh.query.aggregate import TIME_WINDOWS, GroupColumn
from querymesh.query.expr import Call, Column, Expr, rewritten, walk
from querymesh.query.parse.convert import Converter, Part
from querymesh.query.parse.source import Source, Span
from querymesh.query.parse.syntax import MARK, as_written
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

    `in_groups` tells whether the query has groups: GROUP BY or HAVING, or an aggregate or a time
    window that was met. `qualified` names show their relation.
    """

    def __init__(
        self,
        functions: Mapping[str, Predicate],
        aliases: Collection[str],
        qualified: bool,
        source: Source | None = None,
        in_groups: bool = False,
    ) -> None:
        super().__init__(functions, aliases, source)
        self.qualified = qualified
        self.calls: list[AggregateCall] = []
        self.in_groups = in_groups
        self._of_rows = Converter(functions, aliases, source)

    def convert(self, node: exp.Expr) -> Expr:
        """Our expression for a sqlglot one."""
        if isinstance(node, exp.Filter) and isinstance(node.this, exp.Anonymous):
            column = super().convert(node.this)
            if isinstance(column, GroupColumn):
                _, condition = self._filtered(node)
                where = self._of_rows.read(node.expression.this, condition)
                return self._kept(replace(self.calls.pop(), where=where))
        return super().convert(node)

    def read(self, node: exp.Expr, span: Span | None) -> Expr:
        """As `Converter.read`; aggregates of what is then left to Spark are not kept twice."""
        kept = len(self.calls)
        try:
            return self.convert(node)
        except QueryMeshError as problem:
            del self.calls[kept:]
            return self.left_to_spark(node, span, problem)

    def understood(self, node: exp.Expr, within: exp.Expr | None = None) -> Iterator[Part]:
        """Beside the calls that Spark does not know, the columns: what groups have of them are
        keys, under other names."""
        if isinstance(node, exp.Filter) and self._is_own_call(node.this) and within is None:
            yield node, self._filtered(node)[0]
        elif self.in_groups and isinstance(node, exp.Column) and _is_plain(node):
            assert self.source is not None
            first, last = (int(part.meta["start"]) for part in (node.parts[0], node.parts[-1]))
            yield node, self.source.between(first, last)
        else:
            yield from super().understood(node, within)

    def _filtered(self, node: exp.Filter) -> tuple[Span, Span]:
        assert self.source is not None
        return self.source.filtered_call(int(node.this.meta["start"]))

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
            return Call(name, self._of_rows.arguments_of(node, list(node.expressions)))
        args, distinct = list(node.expressions), False
        if len(args) == 1 and isinstance(args[0], exp.Distinct):
            args, distinct = list(args[0].expressions), True
        if name == "count" and not distinct and len(args) == 1 and isinstance(args[0], exp.Star):
            args = []
        elif not args or any(_is_star(arg) for arg in args):
            raise QueryError(f"{as_written(node)}: say what to aggregate, as in {name}(price)")
        return self._kept(AggregateCall(name, self._of_rows.arguments_of(node, args), distinct))

    def _kept(self, call: AggregateCall) -> GroupColumn:
        self.calls.append(call)
        return GroupColumn(None, f"a{len(self.calls)}", call.text(self.qualified))


def has_aggregate(expr: Expr) -> bool:
    """Whether an aggregate stands in the expression."""
    return any(isinstance(each, GroupColumn) for each in walk(expr))


_UNITS_FIRST = {"date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"}
"""Functions whose first argument may be a unit of time, `DAY`, which looks like a column."""


def _is_plain(node: exp.Column) -> bool:
    """Whether it is the name of a column or of a field within one."""
    parent = node.parent
    if isinstance(parent, exp.Anonymous) and len(parent.expressions) == 3:
        name = str(parent.this).removeprefix(MARK).lower()
        if name in _UNITS_FIRST and parent.expressions[0] is node:
            return False
    return isinstance(node.this, exp.Identifier)


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or isinstance(node.this, exp.Star)
