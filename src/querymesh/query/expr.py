"""Expressions: the small immutable tree that every SQL condition and projection becomes.

One tree, two readings that must agree: `evaluate.py` computes it on Arrow arrays inside the fabric,
`render.py` writes it as Spark SQL for Catalyst. Both go through the one table in `functions/`. What
has no Arrow reading is `Opaque`: Catalyst evaluates it, and nobody else. Before Catalyst has
seen it, it is `SparkText`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pyarrow as pa

from querymesh.errors import QueryMeshError


class SessionZone(dt.tzinfo):
    """The zone of a literal TIMESTAMP '…' that names none: the session's, whichever that is.

    A datetime of it compares as one without a zone. TIMESTAMP_NTZ '…' has none at all.
    """

    def utcoffset(self, when: dt.datetime | None) -> None:
        """Not known here."""

    def dst(self, when: dt.datetime | None) -> None:
        """Not known here."""

    def tzname(self, when: dt.datetime | None) -> None:
        """Not known here."""

    def __repr__(self) -> str:
        return "SessionZone()"


Scalar = bool | int | Decimal | float | str | dt.date | dt.datetime | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation. `relation` is the relation's alias; None until the query is bound."""

    relation: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; None is NULL."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function or operator of `functions/`, by name (`and`, `<=`, `like`, `lower`)."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST(operand AS type), with the type as `types.cast_type` knows it.

    `implicit` casts are those that binding adds (an INT column before an addition in BIGINT):
    computed and rendered like any other, but not shown to people.
    """

    operand: Expr
    type: str
    implicit: bool = False


@dataclass(frozen=True, slots=True)
class UserCall:
    """A call of a user's Python function, by the name it was registered under."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """What only Catalyst evaluates: nested access, a function that we do not know.

    `sql` is how it reads, `columns` are those it reads. On Arrow it is a column of type `type` that
    Catalyst computed beforehand, under the name `key`.
    """

    sql: str
    columns: tuple[Column, ...]
    type: pa.DataType
    key: str

    @property
    def computed(self) -> Column:
        """The column under which its values travel."""
        relation = self.columns[0].relation if self.columns else None
        return Column(relation, self.key)


@dataclass(frozen=True, slots=True)
class SparkText:
    """SQL that our own reader does not understand: Spark is asked once the inputs are known.

    `sql` is as it was written, but for `parts`, which stand in it by the names that `part_name`
    gives them: calls of Python functions, aggregates. `problem` is why our reader gave up: it is
    raised where there is no Spark to ask, or where Spark does not understand it either.
    """

    sql: str
    parts: tuple[Expr, ...]
    problem: QueryMeshError = field(compare=False, repr=False)

    def filled(self, written: Sequence[str]) -> str:
        """The text with its parts written in this way.

        >>> SparkText(f"hex({part_name(0)})", (Literal(1),), QueryMeshError()).filled(["1L"])
        'hex(1L)'
        """
        text = self.sql
        for number, part in enumerate(written):
            text = text.replace(part_name(number), part)
        return text


def part_name(number: int) -> str:
    """The name that a part of a `SparkText` has within it."""
    return f"__querymesh_part_{number}__"


Expr = Column | Literal | Call | Cast | UserCall | Opaque | SparkText


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    match expr:
        case Call(_, args) | UserCall(_, args):
            return args
        case Cast(operand):
            return (operand,)
        case Opaque(_, columns):
            return columns
        case SparkText(_, parts):
            return parts
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything below it, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def rewritten(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with the parts replaced that `change` gives something for, parents first."""
    changed = change(expr)
    if changed is not None:
        return changed
    match expr:
        case Call(name, args):
            return Call(name, tuple(rewritten(arg, change) for arg in args))
        case UserCall(name, args):
            return UserCall(name, tuple(rewritten(arg, change) for arg in args))
        case Cast(operand, target, implicit):
            return Cast(rewritten(operand, change), target, implicit)
        case Opaque():
            read = tuple(rewritten(column, change) for column in expr.columns)
            return replace(expr, columns=tuple(c for c in read if isinstance(c, Column)))
        case SparkText():
            return replace(expr, parts=tuple(rewritten(part, change) for part in expr.parts))
        case Column() | Literal():
            return expr


def columns_of(expr: Expr) -> frozenset[Column]:
    """Every column the expression reads."""
    return frozenset(node for node in walk(expr) if isinstance(node, Column))


def opaque_parts_of(expr: Expr) -> tuple[Opaque, ...]:
    """The parts of the expression that only Catalyst evaluates, each once."""
    return tuple(dict.fromkeys(node for node in walk(expr) if isinstance(node, Opaque)))


def spark_texts_of(expr: Expr) -> tuple[SparkText, ...]:
    """The outermost parts of the expression that Spark has yet to be asked about, each once."""
    if isinstance(expr, SparkText):
        return (expr,)
    found = [text for child in children(expr) for text in spark_texts_of(child)]
    return tuple(dict.fromkeys(found))


def arrow_columns_of(expr: Expr) -> frozenset[Column]:
    """Every column that the expression reads on Arrow: what Catalyst computes for it is one."""
    if isinstance(expr, Column):
        return frozenset({expr})
    if isinstance(expr, Opaque):
        return frozenset({expr.computed})
    return frozenset(column for child in children(expr) for column in arrow_columns_of(child))


def user_calls_of(expr: Expr) -> frozenset[str]:
    """The names of the user functions the expression calls."""
    return frozenset(node.function for node in walk(expr) if isinstance(node, UserCall))


def conjuncts_of(expr: Expr) -> tuple[Expr, ...]:
    """The parts of a condition between its top-level ANDs."""
    return parts_of("and", expr)


def parts_of(operator: str, expr: Expr) -> tuple[Expr, ...]:
    """The operands of a call of this operator; any other expression is one part by itself."""
    return expr.args if isinstance(expr, Call) and expr.function == operator else (expr,)
