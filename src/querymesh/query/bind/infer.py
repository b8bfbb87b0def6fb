"""Type checking: each expression gets one type, and casts that SQL leaves unsaid are written in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa

from querymesh.errors import SchemaError, UnsupportedError
from querymesh.query.decimal_types import literal_type
from querymesh.query.evaluate import literal
from querymesh.query.expr import (
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    Opaque,
    Scalar,
    SessionZone,
    SparkText,
    UserCall,
    user_calls_of,
)
from querymesh.query.functions import FUNCTIONS, TESTS
from querymesh.query.functions.cast import can_cast
from querymesh.query.predicate.predicate import Predicate
from querymesh.query.render import to_text
from querymesh.query.types import (
    Kind,
    cast_name,
    cast_type,
    common_type,
    compute_type,
    fit_together,
    kind_of,
    sql_name,
)

ColumnType = Callable[[Column], pa.DataType]


def infer(expr: Expr, column_type: ColumnType, functions: Mapping[str, Predicate]) -> pa.DataType:
    """The type of an expression's value; SchemaError if its parts do not fit together."""
    return typed(expr, column_type, functions)[1]


def typed(
    expr: Expr, column_type: ColumnType, functions: Mapping[str, Predicate]
) -> tuple[Expr, pa.DataType]:
    """The expression with implicit casts and literals made explicit, and its type.

    After this, Arrow and Spark need not know any rule of coercion, and so cannot disagree on one.
    """
    found, dtype = _Typing(column_type, functions).of(expr)
    as_given = isinstance(found, (Column, UserCall, Opaque))
    return found, dtype if as_given else compute_type(dtype)


_BINARY = {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "<=>"}
"""Where a whole number that is written beside a decimal has as many digits as are written."""


class _Typing:
    """Types each part of an expression as Spark would: an INT is an INT here, though its values
    come as BIGINT, because the digits of a decimal beside it depend on that."""

    def __init__(self, column_type: ColumnType, functions: Mapping[str, Predicate]) -> None:
        self.column_type = column_type
        self.functions = functions

    def of(self, expr: Expr) -> tuple[Expr, pa.DataType]:
        match expr:
            case Column():
                return expr, self.column_type(expr)
            case Opaque():
                return expr, expr.type
            case SparkText():
                raise expr.problem
            case Literal(value):
                if _zoneless(expr) is not expr:
                    raise UnsupportedError(
                        f"{to_text(expr)}: the zone of the session, in which it is to be read, is "
                        "not known here: compare it with a column, or name its zone"
                    )
                return expr, _literal_type(value)
            case Cast():
                return self._cast(expr)
            case UserCall(name, args):
                inner = tuple(self.of(arg)[0] for arg in args)
                return UserCall(name, inner), self.functions[name].returns
            case Call():
                return self._call(expr)

    def _cast(self, expr: Cast) -> tuple[Expr, pa.DataType]:
        inner, source = self.of(expr.operand)
        if not can_cast(source, expr.type):
            raise UnsupportedError(
                f"{to_text(expr)}: a cast from {sql_name(source)} to {expr.type.upper()} has no "
                "meaning that all engines share; make it a column of the DataFrame beforehand, "
                "or use a qm.function"
            )
        made = Cast(_computing(inner, source), expr.type, expr.implicit)
        return made, cast_type(expr.type, source)

    def _argument(self, name: str, arg: Expr) -> tuple[Expr, pa.DataType]:
        """A literal of the session's zone is read beside others."""
        if _zoneless(arg) is not arg and FUNCTIONS[name].aligns:
            return arg, pa.timestamp("us")
        return self.of(arg)

    def _call(self, expr: Call) -> tuple[Expr, pa.DataType]:
        function = FUNCTIONS[expr.function]
        pairs = [self._argument(expr.function, arg) for arg in expr.args]
        if expr.function == "nullif" and len({compute_type(dtype) for _, dtype in pairs}) > 1:
            same = Call("=", expr.args)
            return self.of(Call("if", (same, Literal(None), expr.args[0])))
        if function.aligns:
            pairs = [(self.of(arg)[0], t) for arg, t in _aligned_literals(expr, pairs)]
        kinds = {kind_of(dtype) for _, dtype in pairs} - {Kind.NULL}
        if kinds <= _NUMBERS and len(kinds) > 1:
            pairs = _shortest_literals(expr.function, pairs)
            apart = _in_pairs(expr, [dtype for _, dtype in pairs])
            if apart is not None:
                return self.of(apart)
        types = [dtype for _, dtype in pairs]
        if function.on_decimals and kinds == {Kind.DECIMAL}:
            function = FUNCTIONS[function.on_decimals]
        signature = function.rule(types)
        if signature is None:
            raise SchemaError(
                f"{to_text(expr)}: {expr.function.upper()} takes {function.takes}, "
                f"not {' and '.join(sql_name(dtype) for dtype in types)}; use CAST if that is meant"
            )
        args = tuple(
            arg if wanted is None else _coerced(arg, dtype, wanted)
            for (arg, dtype), wanted in zip(pairs, signature.wanted, strict=True)
        )
        if function.read is not None and isinstance(args[1], Literal):
            args = (args[0], Literal(function.read(str(args[1].value))))
        made: Expr = Call(function.name, args)
        if signature.rounds_to is not None:
            made = Cast(made, signature.rounds_to, implicit=True)
        return made, signature.result


_NUMBERS = {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT}


def _literal_type(value: Scalar) -> pa.DataType:
    if isinstance(value, int) and not isinstance(value, bool):
        return pa.int32() if -(2**31) <= value < 2**31 else pa.int64()
    return literal(value).type


def _shortest_literals(
    name: str, pairs: list[tuple[Expr, pa.DataType]]
) -> list[tuple[Expr, pa.DataType]]:
    """Whole numbers that stand in an operator beside a decimal, as decimals of their own length."""
    if name not in _BINARY or not any(kind_of(dtype) is Kind.DECIMAL for _, dtype in pairs):
        return pairs
    found: list[tuple[Expr, pa.DataType]] = []
    for arg, dtype in pairs:
        if isinstance(arg, Literal) and kind_of(dtype) is Kind.INTEGER:
            number = Decimal(str(arg.value))
            found.append((Literal(number), literal_type(number)))
        else:
            found.append((arg, dtype))
    return found


def _in_pairs(expr: Call, types: Sequence[pa.DataType]) -> Expr | None:
    """What Spark compares two by two, where one type for all arguments would not be exact."""
    if expr.function == "between" and not user_calls_of(expr.args[0]):
        x, low, high = expr.args
        if kind_of(common_type(types) or pa.null()) is Kind.FLOAT or not fit_together(types):
            return Call("and", (Call(">=", (x, low)), Call("<=", (x, high))))
    return None


def _computing(expr: Expr, dtype: pa.DataType) -> Expr:
    """The expression in the type in which its values compute."""
    return _coerced(expr, dtype, compute_type(dtype))


def _coerced(expr: Expr, dtype: pa.DataType, wanted: pa.DataType) -> Expr:
    """The expression of type `dtype` with an implicit cast to `wanted`, where it needs one."""
    target = cast_name(wanted)
    if dtype == wanted or target is None:
        return expr
    kind = kind_of(dtype)
    if kind is kind_of(wanted) and kind not in _NUMBERS:
        return expr
    if isinstance(expr, Literal) and wanted == pa.float64() and expr.value is not None:
        return Literal(float(str(expr.value)))
    if isinstance(expr, Literal) and wanted == pa.int64() and expr.value is not None:
        return expr
    return Cast(expr, target, implicit=True)


def _aligned_literals(
    expr: Call, pairs: Sequence[tuple[Expr, pa.DataType]]
) -> list[tuple[Expr, pa.DataType]]:
    """Read literals as what they stand beside: '2024-01-01' as a date, a timestamp in its zone."""
    beside = [dtype for arg, dtype in pairs if not isinstance(arg, Literal)]
    if not beside:
        if expr.function in TESTS:  # of literals alone: the session's zone is the same for all
            pairs = [(_zoneless(arg), dtype) for arg, dtype in pairs]
        beside = [dtype for _, dtype in pairs]
    temporal = [dtype for dtype in beside if kind_of(dtype) in (Kind.DATE, Kind.TIMESTAMP)]
    target = next((t for t in temporal if kind_of(t) is Kind.TIMESTAMP), *temporal[:1] or [None])
    if target is None:
        return list(pairs)
    aligned: list[tuple[Expr, pa.DataType]] = []
    for arg, dtype in pairs:
        if isinstance(arg, Literal) and arg.value is not None:
            moment = _as_temporal(expr, arg.value, compute_type(target))
            aligned.append((Literal(moment), literal(moment).type))
        else:
            aligned.append((arg, dtype))
    return aligned


def _as_temporal(expr: Call, value: object, target: pa.DataType) -> dt.date | dt.datetime:
    read = isinstance(value, str)
    try:
        if isinstance(value, str):
            text = value.strip()
            value = (
                dt.date.fromisoformat(text) if len(text) <= 10 else dt.datetime.fromisoformat(text)
            )
        if not isinstance(value, dt.date):
            raise ValueError
    except ValueError:
        raise SchemaError(
            f"{to_text(expr)}: {value!r} is no {sql_name(target)}; "
            "write '2024-01-31' or '2024-01-31 23:59:59'"
        ) from None
    if pa.types.is_date(target):
        if read and isinstance(value, dt.datetime):
            return value.date()  # a text beside a date is read as one, its time left out
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            midnight = isinstance(value.tzinfo, SessionZone) and value.time() == dt.time()
            if not midnight:
                raise UnsupportedError(
                    f"{to_text(expr)}: a date beside a TIMESTAMP begins in the zone of the session,"
                    " which is not known here: write DATE '…'"
                )
            return value.date()
        return value
    moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    bare = moment.utcoffset() is None
    if target.tz is not None and bare:
        moment = moment.replace(tzinfo=_zone(target.tz))
    if target.tz is None and not bare:
        raise SchemaError(f"{to_text(expr)}: a literal with a time zone, but a column without one")
    if target.tz is None and moment.tzinfo is not None:
        raise UnsupportedError(
            f"{to_text(expr)}: a TIMESTAMP beside a TIMESTAMP_NTZ compares in the zone of the "
            "session, which is not known here: write TIMESTAMP_NTZ '…'"
        )
    return moment if target.tz is None else moment.astimezone(dt.UTC)


def _zoneless(expr: Expr) -> Expr:
    """A literal of the session's zone as a reading of the clock."""
    value = expr.value if isinstance(expr, Literal) else None
    if isinstance(value, dt.datetime) and isinstance(value.tzinfo, SessionZone):
        return Literal(value.replace(tzinfo=None))
    return expr


def _zone(name: str) -> dt.tzinfo:
    if name[0] in "+-":
        hours, minutes = name[1:].split(":")
        offset = dt.timedelta(hours=int(hours), minutes=int(minutes))
        return dt.timezone(-offset if name[0] == "-" else offset)
    return ZoneInfo(name)
