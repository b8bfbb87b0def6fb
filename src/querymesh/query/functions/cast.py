"""CAST, where Arrow, Catalyst and DuckDB can be made to agree; what does not fit is NULL."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from querymesh.query.functions import decimals
from querymesh.query.functions.arithmetic import to_bigint
from querymesh.query.functions.spec import Datum, null_where, row_by_row
from querymesh.query.types import LITERAL_ZONE, Kind, cast_type, compute_type, kind_of

_NUMBERS = {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.BOOLEAN}
_SOURCES = {
    **dict.fromkeys(("bigint", "int", "smallint", "tinyint", "double"), _NUMBERS | {Kind.STRING}),
    "float": _NUMBERS,
    "decimal": {Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN, Kind.STRING},
    "string": {Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN, Kind.DATE, Kind.STRING},
    "boolean": {Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL, Kind.STRING},
    "date": {Kind.DATE, Kind.TIMESTAMP},
    "timestamp": {Kind.TIMESTAMP},
    "timestamp_ntz": {Kind.DATE, Kind.TIMESTAMP},
}
_BITS = {"int": 32, "smallint": 16, "tinyint": 8}

_PLAIN_SCALE = 6
"""With more digits after the point Spark out of ANSI mode writes small decimals as 1E-7."""

_FLOAT_BITS = 16
"""Wider integers Spark rounds to a FLOAT, or not, as its optimizer finds another cast around it."""

_DOUBLE_DIGITS = 15
"""Spark cuts decimals to an INT by way of a DOUBLE, which has so many digits for certain."""

_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_SPECIAL = {"inf": "inf", "infinity": "inf", "nan": "nan"}
_JAVA_DOUBLE = re.compile(
    r"([+-]?)(?:((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|(0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)p[+-]?\d+))[fd]?",
    re.IGNORECASE | re.ASCII,
)
_JAVA_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?", re.ASCII)
_UP_TO_SPACE = "".join(map(chr, range(0x21)))
_WHITESPACE = "".join(map(chr, [*range(0x21), 0x7F]))


def can_cast(source: pa.DataType, target: str) -> bool:
    """Whether CAST from a type to the one of that name has one meaning on all engines."""
    kind = kind_of(source)
    if kind is Kind.NULL:
        return target != "timestamp"
    if kind not in _SOURCES[target.partition("(")[0]]:
        return False
    given = compute_type(source)
    if kind is Kind.DECIMAL and target in _BITS:
        return bool(given.scale == 0 or given.precision <= _DOUBLE_DIGITS)
    if kind is Kind.INTEGER and target == "float":
        plain = source.value_type if pa.types.is_dictionary(source) else source
        return bool(plain.bit_width <= _FLOAT_BITS)
    if kind is Kind.DECIMAL and target == "string":
        return bool(given.scale <= _PLAIN_SCALE)
    # When a reading of the clock is, the session's zone says, which is not known here.
    if kind is Kind.TIMESTAMP and given.tz == LITERAL_ZONE:
        return False
    return target != "timestamp" or given.tz is not None


def cast(datum: Datum, target: str) -> Datum:
    """The datum as `target`; its type is a compute type, and so is the result's."""
    source, wanted = kind_of(datum.type), compute_type(cast_type(target, datum.type))
    if source is Kind.NULL:
        return pc.cast(datum, wanted)
    if target in _BITS:
        whole, most = cast(datum, "bigint"), 2 ** (_BITS[target] - 1)
        fits = pc.and_(pc.greater_equal(whole, -most), pc.less(whole, most))
        return null_where(pc.invert(fits), whole)
    if target == "float":
        exact = pc.cast(datum, pa.string()) if source is Kind.DECIMAL else datum
        return pc.cast(pc.cast(exact, pa.float32(), safe=False), wanted)
    if datum.type == wanted:
        return datum
    if pa.types.is_decimal(wanted):
        return _to_decimal(datum, wanted)
    if source is Kind.DECIMAL:
        return _FROM_DECIMAL[target](datum)
    if source is Kind.STRING:
        return _FROM_STRING[target](datum)
    if source is Kind.FLOAT and target == "bigint":
        return to_bigint(datum)
    if source is Kind.TIMESTAMP:
        local = pc.local_timestamp(datum) if datum.type.tz else datum
        return pc.cast(pc.floor_temporal(local, unit="day") if target == "date" else local, wanted)
    return pc.cast(datum, wanted, safe=False)


def spark_cast(operand: str, target: str) -> str:
    """The same cast as Spark SQL."""
    if target in _BITS:
        return f"CAST(try_cast({operand} AS {target.upper()}) AS BIGINT)"
    if target == "float":
        return f"CAST(try_cast({operand} AS FLOAT) AS DOUBLE)"
    return f"try_cast({operand} AS {target.upper()})"


def _to_decimal(datum: Datum, wanted: pa.DataType) -> Datum:
    match kind_of(datum.type):
        case Kind.DECIMAL:
            return decimals.rescaled(datum, wanted)
        case Kind.STRING:
            return row_by_row(lambda text: _parse_decimal(text, wanted), wanted, datum)
        case _:
            return decimals.from_integers(pc.cast(datum, pa.int64()), wanted)


def _parse_decimal(string: str, wanted: pa.DataType) -> Decimal | None:
    """What Java's BigDecimal reads, of at most 38 digits before the point."""
    trimmed = string.strip(_UP_TO_SPACE)
    if not _JAVA_DECIMAL.fullmatch(trimmed):
        return None
    value = Decimal(trimmed)
    if value and value.adjusted() >= wanted.precision - wanted.scale:
        return None
    if value.adjusted() < -wanted.scale - 1:
        return Decimal((0, (0,), -wanted.scale))
    return decimals.fitted(value, wanted)


def _string_to_bigint(strings: Datum) -> Datum:
    trimmed = pc.utf8_trim(strings, characters=_WHITESPACE)
    short = pc.match_substring_regex(trimmed, r"\A[+-]?[0-9]{1,18}\z")
    if pc.all(pc.fill_null(short, True)).as_py():
        return pc.cast(pc.utf8_ltrim(trimmed, characters="+"), pa.int64())
    return row_by_row(_parse_bigint, pa.int64(), trimmed)


def _parse_bigint(string: str) -> int | None:
    if not re.fullmatch(r"[+-]?[0-9]+", string):
        return None
    value = int(string)
    return value if -(2**63) <= value < 2**63 else None


def _string_to_double(strings: Datum) -> Datum:
    trimmed = pc.utf8_trim(strings, characters=_WHITESPACE)
    simple = pc.match_substring_regex(trimmed, r"\A-?[0-9]+(\.[0-9]+)?\z")
    if pc.all(pc.fill_null(simple, True)).as_py():
        return pc.cast(trimmed, pa.float64())
    return row_by_row(_parse_double, pa.float64(), trimmed)


def _parse_double(string: str) -> float | None:
    """What Double.parseDouble and Spark's names for infinity and NaN accept."""
    special = _SPECIAL.get(string.lstrip("+-").lower())
    if special is not None and len(string.lstrip("+-")) >= len(string) - 1:
        if special == "nan":
            return float("nan") if string[0] not in "+-" else None
        return float(("-" if string[0] == "-" else "") + special)
    match = _JAVA_DOUBLE.fullmatch(string)
    if match is None:
        return None
    sign, decimal, hexadecimal = match.groups()
    try:
        return float(sign + decimal) if decimal else float.fromhex(sign + hexadecimal)
    except OverflowError:
        return float(sign + "inf")


def _string_to_boolean(strings: Datum) -> Datum:
    trimmed = pc.ascii_lower(pc.utf8_trim(strings, characters=_WHITESPACE))
    true = pc.is_in(trimmed, value_set=pa.array(_TRUE))
    known = pc.is_in(trimmed, value_set=pa.array(_TRUE + _FALSE))
    return null_where(pc.invert(known), true)


_FROM_DECIMAL: dict[str, Callable[[Datum], Datum]] = {
    "bigint": decimals.to_bigint,
    "double": decimals.to_double,
    "string": lambda datum: pc.cast(datum, pa.string()),
    "boolean": lambda datum: pc.not_equal(datum, pa.scalar(Decimal(0), datum.type)),
}
_FROM_STRING = {
    "bigint": _string_to_bigint,
    "double": _string_to_double,
    "boolean": _string_to_boolean,
}
