"""Decimals on Arrow: exact, rounded half up where digits are given up, NULL where they do not fit.

What fits 38 digits is computed in 128 bits and what fits 76 in 256; the rest, and quotients, row by
row in whole numbers of any length.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.query.decimal_types import (
    MOST_DIGITS,
    product_type,
    quotient_type,
    remainder_type,
    rounded_type,
    sum_type,
    whole_type,
)
from querymesh.query.functions.spec import Datum, null_where, row_by_row

_WIDE_DIGITS = 76
"""The most that Arrow's decimals have."""

_DOUBLE_DIGITS = 15
"""Numbers and powers of ten of so few digits are DOUBLEs, and their quotient the nearest one."""

_QUOTIENT_SCALE = MOST_DIGITS + 1
"""Spark computes a quotient to so many digits after the point, and then rounds it to its type."""

_EXACT = Context(prec=200, Emin=-999, Emax=999)

Rule = Callable[[pa.Decimal128Type, pa.Decimal128Type], pa.Decimal128Type]


def is_decimal(*args: Datum) -> bool:
    """Whether the arguments are decimals: binding has cast either all or none of them."""
    return any(pa.types.is_decimal(arg.type) for arg in args)


def _operation(
    kernel: str, rule: Rule, exact: Callable[[Decimal, Decimal], Decimal]
) -> Callable[[Datum, Datum], Datum]:
    def compute(a: Datum, b: Datum) -> Datum:
        wanted = rule(a.type, b.type)
        digits = _digits_of(kernel, a.type, b.type)
        if digits <= MOST_DIGITS:
            return pc.call_function(kernel, [a, b])
        if digits <= _WIDE_DIGITS - 2:  # two more, to round and to compare with a limit
            wide = [pc.cast(x, pa.decimal256(x.type.precision, x.type.scale)) for x in (a, b)]
            return rescaled(pc.call_function(kernel, wide), wanted)
        return row_by_row(lambda x, y: fitted(exact(x, y), wanted), wanted, a, b)

    return compute


def _digits_of(kernel: str, a: pa.DataType, b: pa.DataType) -> int:
    """The digits of an exact result, which are those of Arrow's own."""
    if kernel == "multiply":
        return int(a.precision + b.precision + 1)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return int(whole + max(a.scale, b.scale) + 1)


add = _operation("add", sum_type, _EXACT.add)
subtract = _operation("subtract", sum_type, _EXACT.subtract)
multiply = _operation("multiply", product_type, _EXACT.multiply)


def divide(a: Datum, b: Datum) -> Datum:
    """a / b; NULL where b is zero. Rounded twice, as Spark rounds it."""
    wanted = quotient_type(a.type, b.type)

    def quotient(x: Decimal, y: Decimal) -> Decimal | None:
        return None if not y else fitted(_quotient(x, y), wanted)

    return row_by_row(quotient, wanted, a, b)


def _quotient(x: Decimal, y: Decimal) -> Decimal:
    """x / y with 39 digits after the point, halves away from zero."""
    (x_number, x_scale), (y_number, y_scale) = _parts(x), _parts(y)
    power = _QUOTIENT_SCALE + y_scale - x_scale
    above, below = abs(x_number), abs(y_number)
    if power >= 0:
        above *= 10**power
    else:
        below *= 10**-power
    number = (2 * above + below) // (2 * below)
    sign = -1 if (x_number < 0) != (y_number < 0) else 1
    return _EXACT.scaleb(Decimal(sign * number), -_QUOTIENT_SCALE)


def _parts(x: Decimal) -> tuple[int, int]:
    """The digits as a whole number, and how many of them are after the point."""
    sign, digits, exponent = x.as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits)))
    return -number if sign else number, -exponent


def remainder(a: Datum, b: Datum) -> Datum:
    """a % b with the sign of a; NULL where b is zero."""
    wanted = remainder_type(a.type, b.type)

    def rest(x: Decimal, y: Decimal) -> Decimal | None:
        return None if not y else fitted(_EXACT.remainder(x, y), wanted)

    return row_by_row(rest, wanted, a, b)


def floor(x: Datum) -> Datum:
    """The greatest whole number that is not greater."""
    return rescaled(pc.floor(_wide(x)), whole_type(x.type))


def ceil(x: Datum) -> Datum:
    """The least whole number that is not less."""
    return rescaled(pc.ceil(_wide(x)), whole_type(x.type))


def round_(x: Datum) -> Datum:
    """The nearest whole number, halves away from zero."""
    return rescaled(x, rounded_type(x.type))


def rescaled(x: Datum, wanted: pa.DataType) -> Datum:
    """The decimals with another precision and scale; NULL where they do not fit."""
    have = x.type
    if have == wanted:
        return x
    lossless = have.scale <= wanted.scale
    room = (wanted.precision - wanted.scale) - (have.precision - have.scale)
    if lossless and room >= 0:
        return pc.cast(x, wanted)
    wide = _wide(x)
    limit, half = Decimal(10) ** (wanted.precision - wanted.scale), Decimal(0)
    if not lossless:
        half = Decimal((0, (5,), -wanted.scale - 1))
        room -= 1  # 9.9 becomes 10
    if room < 0:
        beyond = pa.scalar(_EXACT.subtract(limit, half), wide.type)
        wide = null_where(pc.greater_equal(pc.abs(wide), beyond), wide)
    if lossless:
        return pc.cast(wide, wanted)
    rounded = pc.round(wide, ndigits=wanted.scale, round_mode="half_towards_infinity")
    found = pc.cast(rounded, wanted)
    if _is_nearest(wide, found, half):
        return found
    return row_by_row(lambda value: fitted(value, wanted), wanted, wide)


def _is_nearest(wide: Datum, found: Datum, half: Decimal) -> bool:
    """Whether all values were rounded as they should be: Arrow's division of 256 bits is wrong on
    some long rows of nines, and what it gives is multiplied back."""
    back = pc.cast(found, wide.type)
    off = pc.cast(pc.abs(pc.subtract(_one_digit_less(wide), _one_digit_less(back))), wide.type)
    limit = pa.scalar(half, wide.type)
    outwards = pc.greater(pc.abs(back), pc.abs(wide))
    nearest = pc.or_(pc.less(off, limit), pc.and_(pc.equal(off, limit), outwards))
    return bool(pc.all(pc.fill_null(nearest, True)).as_py())


def _one_digit_less(x: Datum) -> Datum:
    """The same values in a type whose sums still have room: they use far fewer digits."""
    return pc.cast(x, pa.decimal256(_WIDE_DIGITS - 1, x.type.scale))


def _wide(x: Datum) -> Datum:
    """With room for 38 digits before the point and all that there are after it."""
    return pc.cast(x, pa.decimal256(_WIDE_DIGITS, x.type.scale))


def from_integers(x: Datum, wanted: pa.DataType) -> Datum:
    """Whole numbers as decimals."""
    return rescaled(pc.cast(x, pa.decimal128(20, 0)), wanted)


def to_double(x: Datum) -> Datum:
    """The nearest DOUBLE. Arrow's own cast is not correctly rounded; through text it is."""
    if isinstance(x, pa.Array) and x.type.precision <= _DOUBLE_DIGITS:
        quotient = unscaled(x) / 10.0**x.type.scale
        return pa.array(quotient, mask=np.asarray(pc.is_null(x)) if x.null_count else None)
    return pc.cast(pc.cast(x, pa.string()), pa.float64())


def unscaled(x: pa.Array) -> npt.NDArray[np.int64]:
    """The digits of decimals of at most 18 as whole numbers; what stands for NULL is not said."""
    halves = pc.cast(x, pa.decimal128(x.type.precision, x.type.scale))
    data = halves.buffers()[1]
    if data is None or len(halves) == 0:
        return np.zeros(len(halves), np.int64)
    # Of 128 bits in two's complement, the lower half is the number if it fits.
    numbers = np.frombuffer(data, np.int64, 2 * len(halves), 16 * halves.offset)
    return numbers.reshape(-1, 2)[:, 0]


def to_bigint(x: Datum) -> Datum:
    """Without the digits after the point; NULL beyond BIGINT."""
    whole = pc.cast(pc.trunc(_wide(x)), pa.decimal256(_WIDE_DIGITS, 0))
    low, high = (pa.scalar(Decimal(bound), whole.type) for bound in (-(2**63), 2**63 - 1))
    outside = pc.or_(pc.less(whole, low), pc.greater(whole, high))
    return pc.cast(null_where(outside, whole), pa.int64())


def fitted(value: Decimal, wanted: pa.DataType) -> Decimal | None:
    """A value rounded half up to a type's scale; None if it has too many digits."""
    last = Decimal((0, (1,), -wanted.scale))
    found = value.quantize(last, rounding=ROUND_HALF_UP, context=_EXACT)
    return found if len(found.as_tuple().digits) <= wanted.precision else None
