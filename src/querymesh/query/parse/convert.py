"""One visitor from sqlglot's tree to ours; what it does not know is left to Spark, as written."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import TypeAlias

from sqlglot import exp

from querymesh.errors import QueryError, QueryMeshError, UnsupportedError, did_you_mean
from querymesh.query.aggregate import AGGREGATES, TIME_WINDOWS
from querymesh.query.decimal_types import MOST_DIGITS, literal_digits
from querymesh.query.expr import (
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    SessionZone,
    SparkText,
    UserCall,
    parts_of,
)
from querymesh.query.functions import ALIASES, CALLABLE, FUNCTIONS
from querymesh.query.functions.like import with_backslash
from querymesh.query.parse.source import Source, Span
from querymesh.query.parse.syntax import MARK, as_written
from querymesh.query.predicate.predicate import Predicate

_BINARY: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.RegexpLike: "rlike",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "concat",
}
_FLATTENED = {"and", "or", "concat"}

_CAST_TO = {
    "BIGINT": "bigint",
    "INT": "int",
    "SMALLINT": "smallint",
    "TINYINT": "tinyint",
    "DOUBLE": "double",
    "FLOAT": "float",
    "TEXT": "string",
    "VARCHAR": "string",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
}
_READ_ARGS = {
    *("this", "expression", "expressions", "negate", "low", "high", "ifs", "default", "true"),
    *("to", "safe", "is_string", "table", "db"),
}
"""What the visitor reads of a node. Anything else would be silently ignored, so it is refused."""

_NOT_OF_A_ROW = (
    *(exp.Query, exp.Window, exp.Order, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls),
    *(exp.Rollup, exp.Cube, exp.GroupingSets),
)
"""What has no value for a single row, or belongs to an aggregate: refused, never left to Spark."""

_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME"}


Part: TypeAlias = tuple[exp.Expr, Span]
"""A part of a tree, and where it stands in the text."""


class Converter:
    """Converts the expressions of one query.

    `aliases` tell `s.data` among a predicate's columns from a column whose name has a dot. `source`
    is the text, out of which what is not understood is handed on; without it, it is refused.
    """

    def __init__(
        self,
        functions: Mapping[str, Predicate],
        aliases: Collection[str],
        source: Source | None = None,
    ) -> None:
        self.functions = functions
        self.aliases = {alias.lower() for alias in aliases}
        self.source = source

    def read(self, node: exp.Expr, span: Span | None) -> Expr:
        """Our expression for a sqlglot one; its text, at `span`, if only Spark understands it."""
        try:
            return self.convert(node)
        except QueryMeshError as problem:
            return self.left_to_spark(node, span, problem)

    def left_to_spark(self, node: exp.Expr, span: Span | None, problem: QueryMeshError) -> Expr:
        """The text of what is not understood; the problem itself where Spark cannot help."""
        if self.source is None or span is None:
            raise problem
        if (part := node.find(*_NOT_OF_A_ROW)) is not None:
            raise problem if isinstance(problem, UnsupportedError) else _unsupported(part)
        known = [
            (self._part(each, cut), cut)
            for each, cut in self.understood(node)
            if each is not node or not isinstance(node, exp.Column)
        ]
        known.sort(key=lambda each: each[1].first)
        text = self.source.text(span, [cut for _, cut in known])
        return SparkText(text, tuple(part for part, _ in known), problem)

    def understood(self, node: exp.Expr, within: exp.Expr | None = None) -> Iterator[Part]:
        """The parts of what is left to Spark that Spark does not know: outermost calls of Python
        functions and aggregates; `within` is the lambda around them."""
        if self._is_own_call(node):
            if within is not None:
                raise UnsupportedError(
                    f"{as_written(node)} within {as_written(within)}: Spark calls a lambda for "
                    "each element, and cannot call a Python function or an aggregate there"
                )
            assert self.source is not None
            yield node, self.source.call(int(node.meta["start"]))
            return
        around = node if isinstance(node, exp.Lambda) else within
        for child in node.iter_expressions():
            yield from self.understood(child, around)

    def _part(self, node: exp.Expr, span: Span) -> Expr:
        try:
            return self.convert(node)
        except QueryMeshError as problem:
            if self.source is None or not isinstance(node, exp.Column):
                raise
            return SparkText(self.source.text(span), (), problem)

    def _is_own_call(self, node: exp.Expr) -> bool:
        if not isinstance(node, exp.Anonymous):
            return False
        name = str(node.this).removeprefix(MARK).lower()
        return name in self.functions or name in AGGREGATES or name in TIME_WINDOWS

    def arguments_of(self, node: exp.Expr, nodes: list[exp.Expr]) -> tuple[Expr, ...]:
        """The arguments of a call, each for itself left to Spark where it is not understood."""
        spans = self.source.arguments(int(node.meta["start"])) if self.source else []
        if len(spans) != len(nodes):
            return self._all(nodes)
        return tuple(self.read(each, span) for each, span in zip(nodes, spans, strict=True))

    def convert(self, node: exp.Expr) -> Expr:
        """Our expression for a sqlglot one; an error where it is not understood."""
        if any(value and name not in _READ_ARGS for name, value in node.args.items()):
            raise _unsupported(node)
        operator = _BINARY.get(type(node))
        if operator is not None:
            return self._binary(operator, node)
        match node:
            case exp.Paren():
                return self.convert(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Null():
                return Literal(None)
            case exp.Boolean():
                return Literal(bool(node.this))
            case exp.Literal():
                return Literal(node.this) if node.is_string else _number(node.this)
            case exp.RawString():
                return Literal(node.this)
            case exp.Not():
                return negation(self.convert(node.this))
            case exp.Neg():
                return self._negative(node)
            case exp.Is():
                return self._is(node)
            case exp.NullSafeNEQ():
                pair = (self.convert(node.this), self.convert(node.expression))
                return negation(Call("<=>", pair))
            case exp.In() if node.expressions and not node.args.get("query"):
                return Call("in", self._all([node.this, *node.expressions]))
            case exp.Between():
                return Call("between", self._all([node.this, node.args["low"], node.args["high"]]))
            case exp.Escape():
                return self._escape(node)
            case exp.Case():
                return self._case(node)
            case exp.Cast():  # and TRY_CAST, which is one
                return self._cast(node)
            case exp.Anonymous():
                return self._call(node)
        raise _unsupported(node)

    def _all(self, nodes: list[exp.Expr]) -> tuple[Expr, ...]:
        return tuple(self.convert(node) for node in nodes)

    def _binary(self, operator: str, node: exp.Expr) -> Expr:
        args = self._all([node.this, node.expression])
        if operator in _FLATTENED:
            args = tuple(part for arg in args for part in parts_of(operator, arg))
        call = self._checked(operator, args, node)
        return negation(call) if node.args.get("negate") else call

    def _column(self, node: exp.Column) -> Expr:
        if node.args.get("db") or isinstance(node.this, exp.Star):
            raise UnsupportedError(
                f"{as_written(node)}: fields of nested columns are not supported; "
                "select them into columns of their own beforehand"
            )
        return Column(node.table or None, node.name)

    def _negative(self, node: exp.Neg) -> Expr:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _number(f"-{node.this.this}")
        return Call("negative", self._all([node.this]))

    def _is(self, node: exp.Is) -> Expr:
        operand = self.convert(node.this)
        match node.expression:
            case exp.Null():
                return Call("is null", (operand,))
            case exp.Boolean():
                return Call("<=>", (operand, Literal(bool(node.expression.this))))
        raise _unsupported(node)

    def _escape(self, node: exp.Escape) -> Expr:
        match, escape = node.this, self.convert(node.expression)
        pattern = self.convert(match.expression)
        name = _BINARY.get(type(match))
        if not (name and isinstance(pattern, Literal) and isinstance(pattern.value, str)):
            raise _unsupported(node)
        if not (isinstance(escape, Literal) and isinstance(escape.value, str) and escape.value):
            raise _unsupported(node)
        rewritten = Literal(with_backslash(pattern.value, escape.value))
        call = self._checked(name, (self.convert(match.this), rewritten), node)
        return negation(call) if match.args.get("negate") else call

    def _case(self, node: exp.Case) -> Expr:
        subject = node.args.get("this")
        args: list[Expr] = []
        for arm in node.args["ifs"]:
            condition = self.convert(arm.this)
            if subject is not None:
                condition = Call("=", (self.convert(subject), condition))
            args += [condition, self.convert(arm.args["true"])]
        if node.args.get("default") is not None:
            args.append(self.convert(node.args["default"]))
        return Call("case", tuple(args))

    def _cast(self, node: exp.Cast) -> Expr:
        operand = self.convert(node.this)
        target = str(node.to.this.name)
        match operand:
            case Literal(str() as text) if target in _TIMESTAMPS or target == "DATE":
                return _moment(node, text, target)
            # sqlglot reads 5L and 2.5D as casts of numbers; TRUE is an int in Python, not in SQL.
            case Literal(int() as value) if target == "BIGINT" and not isinstance(value, bool):
                return operand
            case Literal(int() | Decimal() | float() as value) if (
                target == "DOUBLE" and not isinstance(value, bool)
            ):
                return Literal(float(value))
            case Literal(int() as value) if target == "FLOAT" and not isinstance(value, bool):
                return Cast(Literal(Decimal(value)), "float")
        if target == "DECIMAL":
            return Cast(operand, _decimal_name(node))
        if target not in _CAST_TO:
            raise UnsupportedError(
                f"{as_written(node)}: cast to a number, DECIMAL, STRING, BOOLEAN, DATE or TIMESTAMP"
            )
        return Cast(operand, _CAST_TO[target])

    def _call(self, node: exp.Anonymous) -> Expr:
        name = str(node.this).removeprefix(MARK)
        lowered = name.lower()
        if lowered in self.functions:
            return UserCall(lowered, self._user_arguments(self.functions[lowered], node))
        if lowered in AGGREGATES or lowered in TIME_WINDOWS:
            return self._aggregate(lowered, node)
        if lowered not in CALLABLE:
            names = CALLABLE | AGGREGATES | set(self.functions)
            raise QueryError(f"unknown function {name}: {did_you_mean(name, names)}")
        return self._checked(ALIASES.get(lowered, lowered), self._all(node.expressions), node)

    def _aggregate(self, name: str, node: exp.Expr) -> Expr:
        """What holds of single rows has no aggregates; see `aggregate_call` for what may."""
        what = f"aggregate {as_written(node)}" if name in AGGREGATES else as_written(node)
        place = "SELECT and HAVING" if name in AGGREGATES else "SELECT and GROUP BY"
        raise QueryError(
            f"{what} is of groups of rows: it may stand in {place}, and not in a condition on "
            "single rows or inside an aggregate"
        )

    def _user_arguments(self, function: Predicate, node: exp.Expr) -> tuple[Expr, ...]:
        if node.expressions or not function.columns:
            return self.arguments_of(node, node.expressions)
        return tuple(self._named_column(name) for name in function.columns)

    def _named_column(self, name: str) -> Column:
        relation, dot, column = name.partition(".")
        if dot and relation.lower() in self.aliases:
            return Column(relation, column)
        return Column(None, name)

    def _checked(self, name: str, args: tuple[Expr, ...], node: exp.Expr) -> Expr:
        function = FUNCTIONS[name]
        least, most = function.arity
        if len(args) < least or (most is not None and len(args) > most):
            wanted = str(least) if least == most else f"{least} to {most or 'any number of'}"
            raise QueryError(
                f"{as_written(node)}: {name} takes {wanted} arguments, not {len(args)}"
            )
        if function.check is not None:
            pattern = args[1]
            if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
                raise QueryError(
                    f"{as_written(node)}: the pattern of {name.upper()} must be a string literal; "
                    "use a qm.predicate for patterns that vary by row"
                )
            function.check(pattern.value)
        return Call(name, args)


def _unsupported(node: exp.Expr) -> UnsupportedError:
    if node.find(exp.Query):
        return UnsupportedError(
            f"subquery {as_written(node)}: join its result as a look-up table instead"
        )
    return UnsupportedError(f"{as_written(node)} is not supported in a QueryMesh query")


def negation(expr: Expr) -> Expr:
    """NOT expr, in the form in which people would write it."""
    if isinstance(expr, Call) and expr.function == "is null":
        return Call("is not null", expr.args)
    return Call("not", (expr,))


def _number(text: str) -> Literal:
    if text.lstrip("-").isdigit():
        value = int(text)
        if -(2**63) <= value < 2**63:
            return Literal(value)
    elif "e" in text.lower():
        double = float(text)
        if math.isinf(double):
            raise QueryError(f"{text} is beyond DOUBLE")
        return Literal(double)
    number = Decimal(text)
    if literal_digits(number) > MOST_DIGITS:
        raise QueryError(
            f"{text} has more than the {MOST_DIGITS} digits of a DECIMAL; "
            f"write {float(text)!r}D for a DOUBLE"
        )
    return Literal(number)


def _decimal_name(node: exp.Cast) -> str:
    """`decimal(p,s)`; (10, 0) where nothing is said, as in Spark."""
    given = [int(str(parameter.this.this)) for parameter in node.to.expressions]
    precision, scale = (*given, *(10, 0)[len(given) :])
    if not 0 <= scale <= precision <= MOST_DIGITS or precision < 1:
        raise QueryError(f"{as_written(node)}: a DECIMAL has 1 to {MOST_DIGITS} digits in all")
    return f"decimal({precision},{scale})"


def _moment(node: exp.Expr, text: str, target: str) -> Literal:
    try:
        if target == "DATE":
            return Literal(dt.date.fromisoformat(text.strip()))
        moment = dt.datetime.fromisoformat(text.strip())
        if target == "TIMESTAMPNTZ":
            return Literal(moment.replace(tzinfo=None))
        return Literal(moment if moment.tzinfo else moment.replace(tzinfo=SessionZone()))
    except ValueError:
        raise QueryError(
            f"{as_written(node)}: {text!r} is no {target}; "
            "write '2024-01-31' or '2024-01-31 23:59:59'"
        ) from None
