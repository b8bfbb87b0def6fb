"""Precision and scale of decimal results, by Spark's rules (its `DecimalPrecision`).

A result has all the digits that it may need. Where these are more than 38, digits after the point
are given up, down to six, so that those before it fit (`spark.sql.decimalOperations
.allowPrecisionLoss`, which is on by default)::

    DECIMAL(10,2) + DECIMAL(12,3)    DECIMAL(13,3)
    DECIMAL(10,2) * DECIMAL(12,3)    DECIMAL(23,5)
    DECIMAL(38,18) * DECIMAL(38,0)   DECIMAL(38,6)      digits after the sixth are rounded away
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import reduce

import pyarrow as pa

MOST_DIGITS = 38
"""No decimal of Spark's is longer."""

_KEPT_SCALE = 6
"""So many digits after the point at least survive where a result has too many."""

_DIGITS_OF_BITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""The decimal that holds every integer of a width."""


def as_decimal(dtype: pa.DataType) -> pa.Decimal128Type:
    """The decimal that a decimal or an integer type is beside decimals.

    >>> as_decimal(pa.int32())
    Decimal128Type(decimal128(10, 0))
    """
    if pa.types.is_dictionary(dtype):
        return as_decimal(dtype.value_type)
    if pa.types.is_integer(dtype):
        return pa.decimal128(_DIGITS_OF_BITS[dtype.bit_width], 0)
    return pa.decimal128(dtype.precision, dtype.scale)


def literal_type(value: Decimal) -> pa.Decimal128Type:
    """The type of a decimal literal: as many digits as are written, leading zeros left out.

    >>> literal_type(Decimal("0.05")), literal_type(Decimal("100.0"))
    (Decimal128Type(decimal128(2, 2)), Decimal128Type(decimal128(4, 1)))
    """
    return pa.decimal128(literal_digits(value), max(-_exponent(value), 0))


def literal_digits(value: Decimal) -> int:
    """How many digits a decimal literal has, those between the point and its first included."""
    exponent = _exponent(value)
    return max(len(value.as_tuple().digits) + max(exponent, 0), -exponent, 1)


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "NaN and infinity are no decimals"
    return exponent


def wider(types: Iterable[pa.Decimal128Type]) -> pa.Decimal128Type:
    """The one type in which decimals of all these stand together (compared, or chosen among)."""
    return reduce(_wider_of_two, types)


def _wider_of_two(a: pa.Decimal128Type, b: pa.Decimal128Type) -> pa.Decimal128Type:
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    # Digits before the point come first: beyond 38 in all, Spark rounds what is after it.
    return pa.decimal128(min(whole + scale, MOST_DIGITS), min(scale, MOST_DIGITS - whole))


def sum_type(a: pa.Decimal128Type, b: pa.Decimal128Type) -> pa.Decimal128Type:
    """The type of a + b and a - b."""
    scale = max(a.scale, b.scale)
    return _adjusted(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def product_type(a: pa.Decimal128Type, b: pa.Decimal128Type) -> pa.Decimal128Type:
    """The type of a * b."""
    return _adjusted(a.precision + b.precision + 1, a.scale + b.scale)


def quotient_type(a: pa.Decimal128Type, b: pa.Decimal128Type) -> pa.Decimal128Type:
    """The type of a / b."""
    scale = max(_KEPT_SCALE, a.scale + b.precision + 1)
    return _adjusted(a.precision - a.scale + b.scale + scale, scale)


def remainder_type(a: pa.Decimal128Type, b: pa.Decimal128Type) -> pa.Decimal128Type:
    """The type of a % b."""
    scale = max(a.scale, b.scale)
    return _adjusted(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def whole_type(a: pa.Decimal128Type) -> pa.Decimal128Type:
    """The type of floor, ceil and round: one digit more before the point, none after it."""
    more = 0 if a.scale == 0 else 1
    return pa.decimal128(min(a.precision - a.scale + more, MOST_DIGITS), 0)


def rounded_type(a: pa.Decimal128Type) -> pa.Decimal128Type:
    """The type of round(a), which always has room for one more digit."""
    return pa.decimal128(min(a.precision - a.scale + 1, MOST_DIGITS), 0)


def _adjusted(precision: int, scale: int) -> pa.Decimal128Type:
    if precision <= MOST_DIGITS:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _KEPT_SCALE)))
