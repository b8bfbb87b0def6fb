"""Arithmetic in BIGINT, DECIMAL and DOUBLE; what cannot be computed is NULL."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Array
from querymesh.errors import UnsupportedError
from querymesh.query.decimal_types import (
    product_type,
    quotient_type,
    remainder_type,
    rounded_type,
    sum_type,
    whole_type,
)
from querymesh.query.functions import decimals
from querymesh.query.functions.comparison import is_nan
from querymesh.query.functions.spec import (
    Datum,
    Function,
    Signature,
    arithmetic,
    call,
    double,
    integer,
    null_where,
    numeric,
    row_by_row,
    rows_of,
    spread,
    template,
)
from querymesh.query.types import Kind, compute_type, kind_of, sql_name

_BIGINT_MIN, _BIGINT_MAX = -(2**63), 2**63 - 1

_NEGATED_DIGITS = 34
"""The sign of a longer decimal cannot be turned round in Spark without losing digits."""


def _checked(kernel: str, exact: Callable[..., int]) -> Callable[..., Datum]:
    """Arrow's checked kernel; only a batch in which it overflows is computed row by row."""

    def in_range(*args: int) -> int | None:
        value = exact(*args)
        return value if _BIGINT_MIN <= value <= _BIGINT_MAX else None

    def compute(*args: Datum) -> Datum:
        try:
            return pc.call_function(kernel, list(args))
        except pa.ArrowInvalid:
            return row_by_row(in_range, pa.int64(), *args)

    return compute


def _either(number: Callable[..., Datum], decimal: Callable[..., Datum]) -> Callable[..., Datum]:
    """One kernel for decimals, another for all other numbers."""

    def compute(*args: Datum) -> Datum:
        return (decimal if decimals.is_decimal(*args) else number)(*args)

    return compute


add = _either(_checked("add_checked", operator.add), decimals.add)
subtract = _either(_checked("subtract_checked", operator.sub), decimals.subtract)
multiply = _either(_checked("multiply_checked", operator.mul), decimals.multiply)
negate = _checked("negate_checked", operator.neg)
absolute = _checked("abs_checked", abs)


def divide(a: Datum, b: Datum) -> Datum:
    """a / b in DECIMAL or DOUBLE; NULL where b is zero."""
    if decimals.is_decimal(a, b):
        return decimals.divide(a, b)
    return pc.divide(a, _without_zeros(b))


def integral_divide(a: Datum, b: Datum) -> Datum:
    """a DIV b, rounded towards zero; NULL where b is zero or the quotient does not fit."""
    overflow = pc.and_(pc.equal(a, _BIGINT_MIN), pc.equal(b, -1))
    return null_where(overflow, pc.divide(a, _without_zeros(b)))


def remainder(a: Datum, b: Datum) -> Datum:
    """a % b with the sign of a; NULL where b is zero."""
    if decimals.is_decimal(a, b):
        return decimals.remainder(a, b)
    n = rows_of(a, b)
    a, b = spread(a, n), spread(_without_zeros(b), n)
    with np.errstate(invalid="ignore"):
        values = np.fmod(_numbers(a), _numbers(b))
    either_null = pc.or_(a.is_null(), b.is_null())
    return pa.array(values, mask=either_null.to_numpy(zero_copy_only=False))


def _numbers(array: pa.Array) -> Array:
    """The values as numpy has them; what stands for a NULL does not matter."""
    values: Array = array.fill_null(1).to_numpy(zero_copy_only=False)
    return values


def _without_zeros(b: Datum) -> Datum:
    if isinstance(b, pa.Scalar):
        return pa.scalar(None, b.type) if b.as_py() == 0 else b
    return null_where(pc.equal(b, pa.scalar(0, b.type)), b)


def to_bigint(x: Datum) -> Datum:
    """A DOUBLE cut to a BIGINT; NULL where it does not fit, except that 2^63 becomes the largest
    BIGINT: so does Spark, whose check is made in DOUBLE."""
    limit = float(2**63)
    fits = pc.and_(pc.greater_equal(x, -limit), pc.less_equal(x, limit))
    top = pc.equal(x, limit)
    small = pc.if_else(pc.and_not(fits, top), x, pa.scalar(0.0))
    cut = pc.if_else(top, pa.scalar(_BIGINT_MAX), pc.cast(pc.trunc(small), pa.int64(), safe=False))
    return pc.if_else(fits, cut, pa.scalar(None, pa.int64()))


def _whole(kernel: Callable[[Datum], Datum]) -> Callable[[Datum], Datum]:
    def compute(x: Datum) -> Datum:
        if pa.types.is_integer(x.type):
            return x
        # Spark raises beyond BIGINT, but takes NaN for 0.
        return pc.if_else(is_nan(x), pa.scalar(0), to_bigint(kernel(x)))

    return compute


def round_(x: Datum) -> Datum:
    """The nearest whole number, halves away from zero."""
    if pa.types.is_integer(x.type):
        return x
    if decimals.is_decimal(x):
        return decimals.round_(x)
    return pc.round(x, ndigits=0, round_mode="half_towards_infinity")


def logarithm(x: Datum) -> Datum:
    """ln x; NULL for zero and below, as in Spark."""
    return pc.ln(null_where(pc.less_equal(x, 0.0), x))


def power(a: Datum, b: Datum) -> Datum:
    """a to the b. Java leaves 1^NaN and (±1)^±inf undefined where C says 1; here as in Java."""
    undefined = pc.or_(
        pc.and_(pc.equal(a, 1.0), pc.is_nan(b)),
        pc.and_(pc.equal(pc.abs(a), 1.0), pc.is_inf(b)),
    )
    return pc.if_else(undefined, pa.scalar(float("nan")), pc.power(a, b))


def _to_whole(types: Any) -> Signature | None:
    signature = numeric(types)
    return signature and Signature(signature.wanted, pa.int64())


def _nan_test(types: Any) -> Signature | None:
    found = double(types)
    return found and Signature(found.wanted, pa.bool_())


def _on_a_decimal(result: Callable[..., pa.DataType]) -> Callable[[Any], Signature | None]:
    def rule(types: Any) -> Signature | None:
        (given,) = types
        return Signature((None,), result(given)) if kind_of(given) is Kind.DECIMAL else None

    return rule


def _same_digits(given: pa.DataType) -> pa.DataType:
    if compute_type(given).precision > _NEGATED_DIGITS:
        raise UnsupportedError(
            f"Spark rounds a {sql_name(given)} to {_NEGATED_DIGITS} digits when it turns its sign "
            "round: cast it to fewer digits"
        )
    return compute_type(given)


def _spark_whole(name: str) -> Callable[..., str]:
    fits = "try_cast({0} AS BIGINT) IS NOT NULL"
    return template(f"CASE WHEN isnan({{0}}) THEN 0L WHEN {fits} THEN {name}({{0}}) END")


_NUMBERS, _NUMBER, _INTEGERS = "numbers", "a number", "integers"

ARITHMETIC = (
    Function("+", (2, 2), _NUMBERS, arithmetic(sum_type), add, call("try_add")),
    Function("-", (2, 2), _NUMBERS, arithmetic(sum_type), subtract, call("try_subtract")),
    Function("*", (2, 2), _NUMBERS, arithmetic(product_type), multiply, call("try_multiply")),
    Function("/", (2, 2), _NUMBERS, arithmetic(quotient_type, double), divide, call("try_divide")),
    Function("%", (2, 2), _NUMBERS, arithmetic(remainder_type), remainder, call("try_mod")),
    Function(
        "div",
        (2, 2),
        _INTEGERS,
        integer,
        integral_divide,
        template(
            "CASE WHEN {1} = -1L THEN try_subtract(0L, {0}) ELSE ({0} DIV nullif({1}, 0L)) END"
        ),
    ),
    Function(
        "negative",
        (1, 1),
        _NUMBER,
        numeric,
        negate,
        template("try_multiply({0}, -1)"),
        on_decimals="negative decimal",
    ),
    Function(
        "abs",
        (1, 1),
        _NUMBER,
        numeric,
        absolute,
        template("CASE WHEN {0} < 0 THEN try_multiply({0}, -1) ELSE {0} END"),
        on_decimals="abs decimal",
    ),
    Function(
        "floor",
        (1, 1),
        _NUMBER,
        _to_whole,
        _whole(pc.floor),
        _spark_whole("floor"),
        on_decimals="floor decimal",
    ),
    Function(
        "ceil",
        (1, 1),
        _NUMBER,
        _to_whole,
        _whole(pc.ceil),
        _spark_whole("ceil"),
        on_decimals="ceil decimal",
    ),
    *(
        # Spark's own cannot fail on decimals, and only they keep precision and scale.
        Function(f"{name} decimal", (1, 1), "a decimal", _on_a_decimal(made), kernel, call(name))
        for name, made, kernel in (
            ("negative", _same_digits, pc.negate),
            ("abs", _same_digits, pc.abs),
            ("floor", whole_type, decimals.floor),
            ("ceil", whole_type, decimals.ceil),
        )
    ),
    Function("round", (1, 1), _NUMBER, arithmetic(rounded_type), round_, call("round")),
    Function("sqrt", (1, 1), _NUMBER, double, pc.sqrt, call("sqrt")),
    Function("exp", (1, 1), _NUMBER, double, pc.exp, call("exp")),
    Function("ln", (1, 1), _NUMBER, double, logarithm, call("ln")),
    Function("power", (2, 2), _NUMBERS, double, power, call("power")),
    Function("sign", (1, 1), _NUMBER, double, pc.sign, call("sign")),
    Function("isnan", (1, 1), _NUMBER, _nan_test, is_nan, call("isnan")),
)
