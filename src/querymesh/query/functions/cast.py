"""CAST, where Arrow, Catalyst and DuckDB can be made to agree; what does not fit is NULL."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from querymesh.query.functions.arithmetic import to_bigint
from querymesh.query.functions.spec import Datum, null_where, row_by_row
from querymesh.query.types import CASTABLE, Kind, kind_of

_SOURCES = {
    "bigint": {Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.STRING},
    "int": {Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.STRING},
    "double": {Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.STRING},
    "string": {Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.STRING},
    "boolean": {Kind.BOOLEAN, Kind.INTEGER, Kind.STRING},
    "date": {Kind.DATE, Kind.TIMESTAMP},
}

_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_SPECIAL = {"inf": "inf", "infinity": "inf", "nan": "nan"}
_JAVA_DOUBLE = re.compile(
    r"([+-]?)(?:((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|(0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)p[+-]?\d+))[fd]?",
    re.IGNORECASE | re.ASCII,
)
_WHITESPACE = "".join(map(chr, [*range(0x21), 0x7F]))


def can_cast(source: pa.DataType, target: str) -> bool:
    """Whether CAST from a type to one of `types.CASTABLE` has one meaning on all engines."""
    return kind_of(source) is Kind.NULL or kind_of(source) in _SOURCES[target]


def cast(datum: Datum, target: str) -> Datum:
    """The datum as `target`; its type is a compute type."""
    source, wanted = kind_of(datum.type), CASTABLE[target]
    if source is Kind.NULL or (datum.type == wanted and target != "int"):
        return pc.cast(datum, wanted)
    if target == "int":
        whole = cast(datum, "bigint")
        fits = pc.and_(pc.greater_equal(whole, -(2**31)), pc.less(whole, 2**31))
        return null_where(pc.invert(fits), whole)
    if source is Kind.STRING:
        return _FROM_STRING[target](datum)
    if source is Kind.FLOAT and target == "bigint":
        return to_bigint(datum)
    if source is Kind.TIMESTAMP:
        local = pc.local_timestamp(datum) if datum.type.tz else datum
        return pc.cast(pc.floor_temporal(local, unit="day"), wanted)
    return pc.cast(datum, wanted, safe=False)


def spark_cast(operand: str, target: str) -> str:
    """The same cast as Spark SQL."""
    if target == "int":
        return f"CAST(try_cast({operand} AS INT) AS BIGINT)"
    return f"try_cast({operand} AS {target.upper()})"


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


_FROM_STRING = {
    "bigint": _string_to_bigint,
    "double": _string_to_double,
    "boolean": _string_to_boolean,
}
