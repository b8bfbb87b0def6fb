"""What names mean in GROUP BY and HAVING, where outputs have names beside the columns.

Nothing is known of the inputs here but their aliases. A name that is a column's and an output's is
the column in some dialects and the output in others; where the query's text does not tell, it is
refused, here or once the columns are known (`aggregate.check_aliases`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from querymesh.errors import QueryError, UnsupportedError
from querymesh.query.aggregate import GroupColumn
from querymesh.query.expr import Column, Expr, rewritten, walk
from querymesh.query.model import Output, Relation
from querymesh.query.parse.aggregate_call import GroupConverter, has_aggregate
from querymesh.query.parse.source import Clauses, Span
from querymesh.query.parse.syntax import MARK, as_written

_SETS = {"cube", "rollup", "sets"}


def group_keys(
    select: exp.Select, outputs: Sequence[Output], converter: GroupConverter, clauses: Clauses
) -> tuple[list[Expr], tuple[str, ...]]:
    """What GROUP BY lists, and the names in it that were taken for an output's."""
    group = select.args.get("group")
    if group is None:
        return [], ()
    for part, value in group.args.items():
        if value and part != "expressions":
            raise UnsupportedError(
                f"GROUP BY ... {part.upper().replace('_', ' ')}: name the columns to group by, or "
                "group the DataFrame that comes out"
            )
    aliases: list[str] = []
    keys = [
        _key(node, span, outputs, converter, aliases)
        for node, span in zip(group.expressions, clauses.groups, strict=True)
    ]
    return keys, tuple(aliases)


def having_condition(
    select: exp.Select,
    outputs: Sequence[Output],
    keys: Sequence[Expr],
    converter: GroupConverter,
    clauses: Clauses,
) -> tuple[Expr | None, str]:
    """HAVING with the names of outputs replaced by what they stand for, and as written."""
    having = select.args.get("having")
    if having is None:
        return None, ""
    written = converter.read(having.this, clauses.having[0])

    def change(expr: Expr) -> Expr | None:
        named = _output_named(expr, outputs)
        if named is None or not isinstance(expr, Column):
            return None
        if not isinstance(named, Column) and any(_same_name(key, expr) for key in keys):
            raise QueryError(
                f"HAVING {expr.name}: {expr.name} is grouped by, and the name of another output; "
                "write the expression that is meant"
            )
        return named

    return rewritten(written, change), converter.shown(written)


def relations_by_column(exprs: Iterable[Expr], relations: Sequence[Relation]) -> dict[str, str]:
    """The relation that a bare column name belongs to, where the query's text tells.

    Where `s.sector` is written too, a bare `sector` is the same column: if another relation had one
    as well, it would be ambiguous.
    """
    columns = [each for expr in exprs for each in walk(expr) if isinstance(each, Column)]
    if len(relations) == 1:
        return {column.name.lower(): relations[0].alias for column in columns}
    known = {relation.alias.lower(): relation.alias for relation in relations}
    owners: dict[str, set[str]] = {}
    for column in columns:
        if column.relation is not None and column.relation.lower() in known:
            owners.setdefault(column.name.lower(), set()).add(known[column.relation.lower()])
    return {name: min(found) for name, found in owners.items() if len(found) == 1}


def _key(
    node: exp.Expr,
    span: Span,
    outputs: Sequence[Output],
    converter: GroupConverter,
    aliases: list[str],
) -> Expr:
    """What an entry of GROUP BY means: a position, the name of an output, or an expression."""
    if isinstance(node, exp.Literal) and not node.is_string:
        if not node.this.isdigit() or not 1 <= int(node.this) <= len(outputs):
            raise QueryError(
                f"GROUP BY {node.this}: there is no such output column, only 1 to {len(outputs)}"
            )
        expr = outputs[int(node.this) - 1].expr
    else:
        expr = converter.read(node, span)
        named = _output_named(expr, outputs)
        # Where an output is made of a column of its own name, there is such a column: it is meant.
        if named is not None and not any(_same_name(each, expr) for each in walk(named)):
            aliases.append(node.name)
            expr = named
    if isinstance(node, exp.Anonymous) and node.name.removeprefix(MARK).lower() in _SETS:
        raise UnsupportedError(
            f"GROUP BY {as_written(node)}: name the columns to group by, or group the DataFrame "
            "that comes out"
        )
    if has_aggregate(expr):
        raise QueryError(
            f"GROUP BY {as_written(node)}: {converter.shown(expr)} is an aggregate, which is there "
            "once groups are made"
        )
    return expr


def _output_named(expr: Expr, outputs: Sequence[Output]) -> Expr | None:
    """The output that a bare name may mean."""
    if not isinstance(expr, Column) or expr.relation is not None or isinstance(expr, GroupColumn):
        return None
    return next((o.expr for o in outputs if o.name.lower() == expr.name.lower()), None)


def _same_name(one: Expr, other: Expr) -> bool:
    if not isinstance(one, Column) or not isinstance(other, Column):
        return False
    return one.name.lower() == other.name.lower()
