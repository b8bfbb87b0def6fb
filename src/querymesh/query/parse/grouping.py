"""A SELECT with aggregates, to the outputs of a query and what Spark makes of them.

The picture is in `aggregate`: what rows must give becomes the query's outputs `c1, c2, ...`, and
the SELECT list and HAVING become expressions over the keys `g1, ...` and the aggregates `a1, ...`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import TokenType, exp

from querymesh.errors import QueryError
from querymesh.query.aggregate import TIME_WINDOWS, Aggregation, ComputedColumn, GroupColumn
from querymesh.query.expr import Call, Column, Expr, Literal, SparkText, UserCall, rewritten, walk
from querymesh.query.model import Output, Relation, check_output_names
from querymesh.query.parse.aggregate_call import AggregateCall, GroupConverter, has_aggregate
from querymesh.query.parse.group_names import group_keys, having_condition, relations_by_column
from querymesh.query.parse.source import Clauses
from querymesh.query.parse.syntax import tokenize
from querymesh.query.render import quoted_name, spark_literal, to_text


def split(
    select: exp.Select,
    asked: Sequence[Output],
    converter: GroupConverter,
    relations: Sequence[Relation],
    clauses: Clauses,
) -> tuple[tuple[Output, ...], Aggregation]:
    """The outputs the query is to have, and the aggregation that makes the asked ones of them."""
    if any(isinstance(output.expr, Column) and output.expr.name == "*" for output in asked):
        raise QueryError("SELECT * of groups: name the columns that are grouped by")
    check_output_names([output.name for output in asked])
    keys, aliases = group_keys(select, asked, converter, clauses)
    having, having_text = having_condition(select, asked, keys, converter, clauses)
    every = [*(output.expr for output in asked), *keys, *([] if having is None else [having])]
    for call in converter.calls:
        every += [*call.args, *([] if call.where is None else [call.where])]
    splitting = _Splitting(relations_by_column(every, relations), converter)
    for key in keys:
        splitting.add_key(key)
    aggregation = Aggregation(
        keys=tuple(splitting.keys.values()),
        aggregates=tuple(splitting.aggregates(converter.calls)),
        having=None if having is None else splitting.of_groups(having),
        outputs=tuple(Output(each.name, splitting.of_groups(each.expr)) for each in asked),
        having_text=having_text,
        aliases=aliases,
        time=splitting.time,
    )
    return splitting.outputs, aggregation


class _Splitting:
    """One query being split; `relation_of` tells the relations of bare column names."""

    def __init__(self, relation_of: dict[str, str], converter: GroupConverter) -> None:
        self._relation_of = relation_of
        self._converter = converter
        self._columns: dict[str, Output] = {}
        self.keys: dict[str, ComputedColumn] = {}
        self.time: str | None = None

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What the query itself gives. A row that is only counted still needs a column."""
        return tuple(self._columns.values()) or (Output("c1", Literal(True)),)

    def add_key(self, key: Expr) -> None:
        """Group by this expression of rows, too."""
        text = to_text(key, qualified=self._converter.qualified)
        if any(isinstance(each, Call) and each.function in TIME_WINDOWS for each in walk(key)):
            sql = self._window_sql(key, text)
        else:
            sql = quoted_name(self._column(key))
        self.keys.setdefault(
            self._meaning(key), ComputedColumn(f"g{len(self.keys) + 1}", sql, text)
        )

    def aggregates(self, calls: Iterable[AggregateCall]) -> Iterable[ComputedColumn]:
        """The calls as Spark is to compute them, over the query's outputs."""
        for number, call in enumerate(calls, start=1):
            text = call.text(self._converter.qualified)
            yield ComputedColumn(f"a{number}", self._aggregate_sql(call), text)

    def of_groups(self, expr: Expr) -> Expr:
        """The expression over keys and aggregates; QueryError if it needs anything else."""
        return rewritten(expr, self._of_groups)

    def _of_groups(self, expr: Expr) -> Expr | None:
        if isinstance(expr, Literal | GroupColumn):
            return expr
        key = self.keys.get(self._meaning(expr))
        if key is not None:
            return GroupColumn(None, key.name, key.text)
        match expr:
            case Column():
                found = self._of_window(expr)
                if found is None:
                    raise QueryError(_not_grouped(to_text(expr, qualified=True)))
                return found
            case UserCall(name):
                remedy = f"add {to_text(expr, qualified=True)} to GROUP BY, or "
                raise QueryError(
                    f"{name} is a Python function, which runs before groups are made: "
                    f"{'' if has_aggregate(expr) else remedy}apply it to the DataFrame that comes "
                    "out"
                )
            case Call(name) if name in TIME_WINDOWS:
                raise QueryError(
                    f"{to_text(expr)}: time windows are made in GROUP BY; add it there"
                )
        return None

    def _of_window(self, column: Column) -> GroupColumn | None:
        """`window`, `window.start` or `window.end` of a time window that is grouped by."""
        bare = column.relation is None
        wanted = (column.relation or column.name).lower()
        if wanted in TIME_WINDOWS and (bare or column.name.lower() in ("start", "end")):
            for key in self.keys.values():
                if key.sql.startswith(f"{wanted}("):
                    whole = GroupColumn(None, key.name, key.text)
                    return whole if bare else GroupColumn(key.name, column.name.lower())
        return None

    def _window_sql(self, key: Expr, text: str) -> str:
        sizes = key.args[1:] if isinstance(key, Call) and key.function in TIME_WINDOWS else ()
        if not sizes or not all(isinstance(s, Literal) and isinstance(s.value, str) for s in sizes):
            raise QueryError(
                f"GROUP BY {text}: a time window stands by itself and has its sizes in words, as "
                "in window(ts, '1 minute') or window(ts, '1 hour', '5 minutes')"
            )
        assert isinstance(key, Call)
        self.time = self._column(key.args[0])
        return f"{key.function}({', '.join([quoted_name(self.time), *map(_constant, sizes)])})"

    def _aggregate_sql(self, call: AggregateCall) -> str:
        # Spark wants constants where it takes a percentage, a size or a flag: they go as they are.
        args = [
            _constant(arg) if isinstance(arg, Literal) else quoted_name(self._column(arg))
            for arg in call.args
        ]
        sql = f"{call.function}({'DISTINCT ' if call.distinct else ''}{', '.join(args) or '1'})"
        if call.where is None:
            return sql
        return f"{sql} FILTER (WHERE {quoted_name(self._column(call.where))})"

    def _column(self, expr: Expr) -> str:
        """The name of the query's output that gives this expression."""
        output = Output(f"c{len(self._columns) + 1}", rewritten(expr, self._located))
        return self._columns.setdefault(self._meaning(expr), output).name

    def _located(self, expr: Expr) -> Expr | None:
        if isinstance(expr, Column) and expr.relation is None and not isinstance(expr, GroupColumn):
            return Column(self._relation_of.get(expr.name.lower()), expr.name)
        return None

    def _meaning(self, expr: Expr) -> str:
        """Equal for expressions that mean the same; as text, because 1, 1.0 and TRUE are equal."""
        normal = rewritten(rewritten(expr, self._located), _lowered)
        if isinstance(normal, SparkText):
            normal = replace(normal, sql=_spaced(normal.sql))
        return repr(normal)


def _not_grouped(text: str) -> str:
    return (
        f"{text} is neither grouped by nor aggregated: add it to GROUP BY, or take one of its "
        f"values, as in any_value({text})"
    )


def _lowered(expr: Expr) -> Expr | None:
    if not isinstance(expr, Column) or isinstance(expr, GroupColumn):
        return None
    return Column(expr.relation and expr.relation.lower(), expr.name.lower())


def _spaced(sql: str) -> str:
    """Text with one space between its words, which are in lower case."""
    words = (
        repr(token.text) if token.token_type == TokenType.STRING else token.text.lower()
        for token in tokenize(sql)
    )
    return " ".join(words)


def _constant(literal: Expr) -> str:
    """A constant for Spark; whole numbers as Spark reads them, which wants an INT for a size."""
    assert isinstance(literal, Literal)
    return str(literal.value) if type(literal.value) is int else spark_literal(literal.value)
