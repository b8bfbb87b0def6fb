"""One SELECT statement, or one condition, as sqlglot reads it, to a Query or an expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from querymesh.errors import QueryError, UnsupportedError
from querymesh.query.aggregate import AGGREGATES, TIME_WINDOWS, GroupColumn
from querymesh.query.expr import Call, Column, Expr, SparkText, conjuncts_of
from querymesh.query.model import Output, Query, Relation
from querymesh.query.parse.aggregate_call import GroupConverter
from querymesh.query.parse.convert import Converter
from querymesh.query.parse.grouping import split
from querymesh.query.parse.source import Clauses, Source, Span
from querymesh.query.parse.syntax import MARK, as_written, parse
from querymesh.query.parse.windows import SqlWithoutWindows, without_windows
from querymesh.query.predicate.predicate import Predicate
from querymesh.query.render import to_text

_ON_THE_DATAFRAME = {
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "distinct": "DISTINCT",
    "qualify": "QUALIFY",
    "windows": "WINDOW ... AS",
    "pivots": "PIVOT",
}
_UNDERSTOOD = {
    "expressions",
    "from_",
    "from",
    "joins",
    "where",
    "group",
    "having",
    "kind",
    "hint",
    "operation_modifiers",
}


def read_select(sql: str, time: str | None, functions: Mapping[str, Predicate]) -> Query:
    """The query that the text of a SELECT asks; `functions` are by lower-case name."""
    text = without_windows(sql)
    select = _one_select(text.sql, parse(text.sql, functions, shown=sql))
    tables = _tables(select)
    relations = tuple(_relation(table, text, tables) for table in tables)
    _check_aliases(relations)
    source = Source(text.sql)
    clauses = source.clauses()
    converter = Converter(functions, [relation.alias for relation in relations], source)
    conditions = _conditions(select, relations, converter, clauses)
    selecting = GroupConverter(
        functions, converter.aliases, len(relations) > 1, source, _has_groups(select)
    )
    asked = tuple(_outputs(select, selecting, clauses.outputs))
    outputs, aggregate = None if _is_star(select) else asked, None
    if selecting.in_groups:
        outputs, aggregate = split(select, asked, selecting, relations, clauses)
    return Query(
        sql, relations, conditions.conjuncts, outputs, time, functions, conditions.using, aggregate,
        texts=conditions.texts,
    )  # fmt: skip


def read_condition(text: str, functions: Mapping[str, Predicate], aliases: Sequence[str]) -> Expr:
    """The expression that the text of one condition means."""
    statements = parse(text, functions)
    if len(statements) != 1:
        raise QueryError(f"expected one condition, found {len(statements)}: {text!r}")
    (node,) = statements
    if isinstance(node, (exp.Query, exp.Command, exp.DDL, exp.DML, exp.Alias)):
        raise QueryError(f"expected a condition such as port IN (22, 445), not {text!r}")
    return Converter(functions, aliases).convert(node)


@dataclass(frozen=True)
class _Conditions:
    """The conjuncts of ON, USING and WHERE, how each was written, and the (alias, column) pairs
    that USING merges."""

    conjuncts: tuple[Expr, ...]
    texts: tuple[str, ...]
    using: frozenset[tuple[str, str]]


def _conditions(
    select: exp.Select, relations: Sequence[Relation], converter: Converter, clauses: Clauses
) -> _Conditions:
    found: list[tuple[Expr, str]] = []
    using: set[tuple[str, str]] = set()
    spans = iter(clauses.joins)
    for position, join in enumerate(select.args.get("joins") or [], start=1):
        if join.args.get("on") is not None:
            found += _conjuncts(join.args["on"], next(spans), converter)
        for name in join.args.get("using") or []:
            equality = _using(name.name, relations, position, using)
            found.append((equality, to_text(equality, qualified=True)))
    if (where := select.args.get("where")) is not None:
        found += _conjuncts(where.this, clauses.where[0], converter)
    conjuncts, texts = tuple(each for each, _ in found), tuple(text for _, text in found)
    return _Conditions(conjuncts, texts, frozenset(using))


def _conjuncts(condition: exp.Expr, span: Span, converter: Converter) -> list[tuple[Expr, str]]:
    """The parts of a condition between its top-level ANDs, and how each was written."""
    assert converter.source is not None
    nodes, spans = _between_ands(condition), converter.source.conjuncts(span)
    if len(nodes) != len(spans):
        nodes, spans = [condition], [span]
    found = []
    for node, each in zip(nodes, spans, strict=True):
        parts = conjuncts_of(converter.read(node, each))
        alone = [converter.source.text(each)] if len(parts) == 1 else []
        texts = alone or [to_text(part, qualified=True) for part in parts]
        found += list(zip(parts, texts, strict=True))
    return found


def _between_ands(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _between_ands(node.this)
    if isinstance(node, exp.And):
        return [*_between_ands(node.this), *_between_ands(node.expression)]
    return [node]


def _has_groups(select: exp.Select) -> bool:
    """Whether the query makes groups: by GROUP BY or HAVING, or by an aggregate in its outputs."""
    if select.args.get("group") or select.args.get("having"):
        return True
    calls = (call for output in select.expressions for call in output.find_all(exp.Anonymous))
    names = {str(call.this).removeprefix(MARK).lower() for call in calls}
    return bool(names & (AGGREGATES | TIME_WINDOWS))


def _one_select(sql: str, statements: list[exp.Expr]) -> exp.Select:
    if not statements:
        raise QueryError("the query is empty: write SELECT ... FROM ... WHERE ...")
    if len(statements) > 1:
        raise UnsupportedError(f"one statement at a time, not {len(statements)}: {sql.strip()!r}")
    (select,) = statements
    if isinstance(select, exp.SetOperation):
        raise UnsupportedError(
            f"{select.key.upper()}: run each part by itself and combine the DataFrames"
        )
    if not isinstance(select, exp.Select):
        raise QueryError(f"a query is a SELECT, not {as_written(select)[:60]!r}")
    if select.args.get("with_") or select.args.get("with"):
        raise UnsupportedError("WITH: make each common table expression an input of its own")
    for part, words in _ON_THE_DATAFRAME.items():
        if select.args.get(part):
            raise UnsupportedError(f"{words}: do it on the DataFrame that comes out")
    for part, node in select.args.items():
        if node and part not in _UNDERSTOOD:
            shown = as_written(node[0] if isinstance(node, list) else node)
            raise UnsupportedError(f"{shown.strip()} is not supported in a QueryMesh query")
    return select


def _tables(select: exp.Select) -> list[exp.Table]:
    source = select.args.get("from_") or select.args.get("from")
    if source is None:
        raise QueryError("the query has no FROM: name the relation it reads")
    tables = [source.this]
    for join in select.args.get("joins") or []:
        kind = " ".join(
            str(join.args[part]) for part in ("method", "side", "kind") if join.args.get(part)
        ).upper()
        if kind not in ("", "CROSS", "INNER"):
            raise UnsupportedError(
                f"{kind} JOIN: only inner equi-joins are routed; do this one on the DataFrame"
            )
        tables.append(join.this)
    for table in tables:
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise UnsupportedError(
                f"{as_written(table)} in FROM: give it as an input of its own, by a name"
            )
        for part, node in table.args.items():
            if node and part not in ("this", "alias"):
                raise UnsupportedError(
                    f"{as_written(table)} in FROM: a relation is one name and an alias"
                )
        if table.args.get("alias") is not None and table.args["alias"].args.get("columns"):
            raise UnsupportedError(f"{as_written(table)}: columns cannot be renamed in FROM")
    return tables


def _relation(table: exp.Table, text: SqlWithoutWindows, tables: list[exp.Table]) -> Relation:
    starts = sorted(_start(other) for other in tables)
    following = [start for start in starts if start > _start(table)]
    end = following[0] if following else len(text.sql)
    own = [window for at, window in text.at.items() if _start(table) < at < end]
    if len(own) > 1:
        raise QueryError(f"{table.alias_or_name} has {len(own)} windows; one is enough")
    window = own[0] if own else text.trailing
    return Relation(table.name, table.alias_or_name, window)


def _start(table: exp.Table) -> int:
    return int(table.this.meta["start"])


def _check_aliases(relations: Sequence[Relation]) -> None:
    seen: set[str] = set()
    for relation in relations:
        if relation.alias.lower() in seen:
            raise QueryError(
                f"{relation.alias} stands twice in FROM: give one an alias of its own, "
                f"as in {relation.name} AS {relation.alias}2"
            )
        seen.add(relation.alias.lower())


def _using(
    name: str, relations: Sequence[Relation], position: int, using: set[tuple[str, str]]
) -> Expr:
    left = [r.alias for r in relations[:position] if (r.alias, name) not in using]
    earlier = any(column == name for _, column in using)
    if len(left) > 1 and not earlier:
        raise UnsupportedError(
            f"JOIN ... USING ({name}) beside several relations: write ON with their aliases"
        )
    using.add((relations[position].alias, name))
    return Call("=", (Column(left[0], name), Column(relations[position].alias, name)))


def _is_star(select: exp.Select) -> bool:
    return len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star)


def _outputs(select: exp.Select, converter: GroupConverter, spans: Sequence[Span]) -> list[Output]:
    assert converter.source is not None
    outputs = []
    for node, span in zip(select.expressions, spans, strict=True):
        inner = node.this if isinstance(node, exp.Alias) else node
        star = inner.this if isinstance(inner, exp.Column) else inner
        if isinstance(star, exp.Star):
            if any(star.args.values()):
                raise UnsupportedError(f"{as_written(node)}: name the columns that are wanted")
            relation = inner.table if isinstance(inner, exp.Column) else ""
            outputs.append(Output("*", Column(relation or None, "*")))
            continue
        own = converter.source.unnamed(span) if isinstance(node, exp.Alias) else span
        expr = converter.read(inner, own)
        name = node.alias if isinstance(node, exp.Alias) else _name(expr, inner, converter)
        outputs.append(Output(name, expr, converter.source.text(own)))
    return outputs


def _name(expr: Expr, node: exp.Expr, converter: GroupConverter) -> str:
    """The name of an output that was given none."""
    if isinstance(expr, Column) and not isinstance(expr, GroupColumn):
        return expr.name
    if isinstance(expr, Call) and expr.function in TIME_WINDOWS:
        return expr.function
    if isinstance(expr, SparkText) and isinstance(node, exp.Column | exp.Dot):
        return node.name or as_written(node)  # a field of a nested column has its own, as in Spark
    return converter.shown(expr)
