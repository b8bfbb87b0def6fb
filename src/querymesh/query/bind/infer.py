"""Type checking: each expression gets one type, and casts that SQL leaves unsaid are written in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from zoneinfo import ZoneInfo

import pyarrow as pa

from querymesh.errors import SchemaError, UnsupportedError
from querymesh.query.evaluate import literal
from querymesh.query.expr import Call, Cast, Column, Expr, Literal, Opaque, SparkText, UserCall
from querymesh.query.functions import FUNCTIONS
from querymesh.query.functions.cast import can_cast
from querymesh.query.predicate.predicate import Predicate
from querymesh.query.render import to_text
from querymesh.query.types import CASTABLE, Kind, compute_type, kind_of, sql_name

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
    match expr:
        case Column():
            return expr, column_type(expr)
        case Opaque():
            return expr, expr.type
        case SparkText():
            raise expr.problem
        case Literal(value):
            return expr, literal(value).type
        case Cast(operand, target):
            inner, source = typed(operand, column_type, functions)
            if not can_cast(source, target):
                raise UnsupportedError(
                    f"{to_text(expr)}: a cast from {sql_name(source)} to {target.upper()} has no "
                    "meaning that all engines share; make it a column of the DataFrame beforehand, "
                    "or use a qm.function"
                )
            return Cast(_computing(inner, source), target, expr.implicit), CASTABLE[target]
        case UserCall(name, args):
            inner_args = tuple(typed(arg, column_type, functions)[0] for arg in args)
            return UserCall(name, inner_args), functions[name].returns
        case Call():
            return _typed_call(expr, column_type, functions)


def _typed_call(
    expr: Call, column_type: ColumnType, functions: Mapping[str, Predicate]
) -> tuple[Expr, pa.DataType]:
    function = FUNCTIONS[expr.function]
    pairs = [typed(arg, column_type, functions) for arg in expr.args]
    if function.aligns:
        pairs = _aligned_literals(expr, pairs)
    types = [dtype for _, dtype in pairs]
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
    return Call(expr.function, args), signature.result


def _computing(expr: Expr, dtype: pa.DataType) -> Expr:
    """The expression in the type in which its values compute."""
    return _coerced(expr, dtype, compute_type(dtype))


_CAST_NAMES = {dtype: name for name, dtype in CASTABLE.items() if name != "int"}


def _coerced(expr: Expr, dtype: pa.DataType, wanted: pa.DataType) -> Expr:
    """The expression of type `dtype` with an implicit cast to `wanted`, where it needs one."""
    if dtype == wanted or wanted not in _CAST_NAMES:
        return expr
    kind = kind_of(dtype)
    if kind is kind_of(wanted) and kind not in (Kind.INTEGER, Kind.FLOAT):
        return expr
    if isinstance(expr, Literal) and isinstance(expr.value, int) and wanted == pa.float64():
        return Literal(float(expr.value))
    return Cast(expr, _CAST_NAMES[wanted], implicit=True)


def _aligned_literals(
    expr: Call, pairs: Sequence[tuple[Expr, pa.DataType]]
) -> list[tuple[Expr, pa.DataType]]:
    """Read literals as what they stand beside: '2024-01-01' as a date, a timestamp in its zone."""
    beside = [dtype for arg, dtype in pairs if not isinstance(arg, Literal)] or [
        dtype for _, dtype in pairs
    ]
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
        return value
    moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    if target.tz is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=_zone(target.tz))
    if target.tz is None and moment.tzinfo is not None:
        raise SchemaError(f"{to_text(expr)}: a literal with a time zone, but a column without one")
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC)


def _zone(name: str) -> dt.tzinfo:
    if name[0] in "+-":
        hours, minutes = name[1:].split(":")
        offset = dt.timedelta(hours=int(hours), minutes=int(minutes))
        return dt.timezone(-offset if name[0] == "-" else offset)
    return ZoneInfo(name)
