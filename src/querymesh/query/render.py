"""An expression as text: Spark SQL for Catalyst, and short normalised SQL for people."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Decimal

from querymesh.errors import UnsupportedError
from querymesh.query.expr import (
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    Opaque,
    Scalar,
    SparkText,
    UserCall,
)
from querymesh.query.functions import FUNCTIONS
from querymesh.query.functions.cast import spark_cast

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ATOM, _NOT, _TEST = 9, 3, 4
_INFIX = {"or": 1, "and": 2, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "div": 6}
_INFIX |= dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>", "like", "ilike", "rlike"), _TEST)
_WIDEST = {"bigint", "double", "boolean"}
_NEGATABLE = {"in", "between", "like", "ilike", "rlike"}


def quoted_name(name: str) -> str:
    """The name in backquotes, as Spark always accepts it."""
    return "`" + name.replace("`", "``") + "`"


def spark_column(column: Column) -> str:
    """A column with its relation, if it has one."""
    name = quoted_name(column.name)
    return name if column.relation is None else f"{quoted_name(column.relation)}.{name}"


def spark_sql(expr: Expr, column: Callable[[Column], str] = spark_column) -> str:
    """A bound expression as Spark SQL that means the same in ANSI mode and out of it."""
    match expr:
        case Column():
            return column(expr)
        case Opaque(sql):
            return f"({sql})"
        case SparkText(_, parts):
            return f"({expr.filled([spark_sql(part, column) for part in parts])})"
        case Literal(value):
            return spark_literal(value)
        case Cast(operand, target, implicit):
            inner = spark_sql(operand, column)
            # An implicit cast of a column widens; a plain CAST is one that Spark can still push
            # down. What is computed may be wider than Spark's own type of it.
            plain = implicit and (isinstance(operand, Column) or target in _WIDEST)
            return f"CAST({inner} AS {target.upper()})" if plain else spark_cast(inner, target)
        case Call(name, args):
            function = FUNCTIONS[name]
            texts = [spark_sql(arg, column) for arg in args]
            if function.java is not None and isinstance(args[1], Literal):
                texts[1] = _spark_string(function.java(str(args[1].value)))
            return function.spark(*texts)
        case UserCall(name):
            raise UnsupportedError(
                f"{name} is a Python function, which Spark SQL cannot call: "
                'use engine="fabric" or engine="auto"'
            )


def spark_literal(value: Scalar) -> str:
    """A constant with its type spelled out, so that Spark computes in the types we do."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value}L"
        case Decimal():
            return f"{value:f}BD"
        case float():
            if math.isfinite(value):
                return f"{value!r}D".upper()
            name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return f"CAST('{name}' AS DOUBLE)"
        case str():
            return _spark_string(value)
        case dt.datetime():
            if value.utcoffset() is None:
                return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"
            return f"TIMESTAMP'{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ')} UTC'"
        case dt.date():
            return f"DATE'{value.isoformat()}'"


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def _spark_string(value: str) -> str:
    escaped = "".join(_ESCAPES.get(character, character) for character in value)
    # Spark replaces ${...} by the value of a setting even inside a string.
    return "'" + escaped.replace("${", "\\u0024{") + "'"


def to_text(expr: Expr, *, qualified: bool = False) -> str:
    """The expression as people write it, for names, errors and explain.

    `qualified` shows the relation of each column, which one needs when there are several.

    >>> to_text(Call("in", (Column("p", "port"), Literal(22), Literal(445))))
    'port IN (22, 445)'
    """
    return _text(expr, qualified)[0]


def _text(expr: Expr, qualified: bool) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match expr:
        case Column(relation, name):
            shown = _shown_name(name)
            if qualified and relation is not None:
                shown = f"{_shown_name(relation)}.{shown}"
            return shown, _ATOM
        case Opaque(sql):
            return sql, 0
        case SparkText(_, parts):
            return expr.filled([_text(part, qualified)[0] for part in parts]), 0
        case Literal(value):
            return _literal_text(value), _ATOM
        case Cast(operand, target, implicit):
            if implicit:
                return _text(operand, qualified)
            return f"CAST({_text(operand, qualified)[0]} AS {target.upper()})", _ATOM
        case UserCall(name, args):
            return f"{name}({', '.join(_text(arg, qualified)[0] for arg in args)})", _ATOM
        case Call(name, args):
            return _call_text(name, args, qualified)


def _call_text(name: str, args: tuple[Expr, ...], qualified: bool) -> tuple[str, int]:
    name = name.removesuffix(" decimal")

    def within(arg: Expr, level: int) -> str:
        text, binds = _text(arg, qualified)
        return text if binds >= level else f"({text})"

    match name, args:
        case "not", (Call(inner, operands),) if inner in _NEGATABLE:
            return _test_text(f"NOT {inner.upper()}", inner, operands, within), _TEST
        case "not", (operand,):
            return f"NOT {within(operand, _NOT)}", _NOT
        case (("is null" | "is not null"), (operand,)):
            return f"{within(operand, _TEST + 1)} {name.upper()}", _TEST
        case "negative", (operand,):
            return f"-{within(operand, 7)}", 7
        case "case", _:
            return _case_text(args, lambda arg: within(arg, 0)), _ATOM
        case (("in" | "between"), _):
            return _test_text(name.upper(), name, args, within), _TEST
    if name not in _INFIX:
        return f"{name}({', '.join(within(arg, 0) for arg in args)})", _ATOM
    binds = _INFIX[name]
    # Only AND and OR may be regrouped; the others read from the left, comparisons not at all.
    first = within(args[0], binds + 1 if binds == _TEST else binds)
    rest = [within(arg, binds if binds < _NOT else binds + 1) for arg in args[1:]]
    return f" {name.upper()} ".join([first, *rest]), binds


def _test_text(
    words: str, name: str, args: tuple[Expr, ...], within: Callable[[Expr, int], str]
) -> str:
    operand = within(args[0], _TEST + 1)
    if name == "in":
        return f"{operand} {words} ({', '.join(within(arg, 0) for arg in args[1:])})"
    others = " AND ".join(within(arg, _TEST + 1) for arg in args[1:])
    return f"{operand} {words} {others}"


def _case_text(args: tuple[Expr, ...], shown: Callable[[Expr], str]) -> str:
    pairs = zip(args[0::2], args[1::2], strict=False)
    arms = " ".join(f"WHEN {shown(condition)} THEN {shown(value)}" for condition, value in pairs)
    otherwise = f" ELSE {shown(args[-1])}" if len(args) % 2 else ""
    return f"CASE {arms}{otherwise} END"


def _shown_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted_name(name)


def _literal_text(value: Scalar) -> str:
    match value:
        case bool() | None:
            return {True: "TRUE", False: "FALSE", None: "NULL"}[value]
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
            return f"'{escaped}'"
        case dt.datetime():
            zoneless = "" if value.tzinfo else "_NTZ"
            return f"TIMESTAMP{zoneless} '{value.isoformat(' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case Decimal():
            return f"{value:f}"
        case float() if math.isfinite(value):
            return f"{value!r}D"
        case _:
            return repr(value)
