"""Kinds of types, and the meaning of expressions that makes their order free.

A route may evaluate conditions in any order, and Catalyst, Arrow and DuckDB must agree on each. So
every built-in is *total*: it never fails, whatever the row holds. What Spark in ANSI mode computes
without raising is what comes out here, to the last digit:

- Integers of every width compute as BIGINT. Beside a decimal an integer is the decimal of its own
  width, a literal the shortest that holds it, as in Spark.
- Decimals stay decimals, with the precision and scale that Spark gives each result
  (`decimal_types.py`). A literal with a point is a DECIMAL, and so is a whole number beyond BIGINT;
  one with an exponent or the suffix D is a DOUBLE. A decimal beside a DOUBLE or FLOAT computes as
  the nearest DOUBLE.
- FLOAT computes as DOUBLE, and a sum, difference or product of FLOATs alone is rounded to FLOAT.
- What Spark in ANSI mode would raise is NULL: division by zero, overflow of BIGINT or of a
  decimal's precision, a bad cast.
- NaN equals NaN and is greater than every number, as in Spark and DuckDB; -0.0 equals 0.0.
- Strings compare by their bytes.
- A timestamp literal is read in the time zone of the column it is compared with. TIMESTAMP_NTZ is
  a reading of the clock: it compares with its own kind and with dates, not with a TIMESTAMP.
- A regular expression finds what Java finds by it (`functions/java_regex.py`).
- `exp`, `ln` and `power` may differ in the last bit between the JVM's and the C library's.

Where that cannot be had, binding raises an `UnsupportedError`, and Catalyst alone evaluates it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from functools import cache

import pyarrow as pa

from querymesh.query.decimal_types import MOST_DIGITS, as_decimal, wider


class Kind(Enum):
    """What a type is for an expression. OTHER is nested or exotic: only user functions read it."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "BIGINT"
    DECIMAL = "DECIMAL"
    FLOAT = "DOUBLE"
    STRING = "STRING"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    BINARY = "BINARY"
    NULL = "NULL"
    OTHER = "OTHER"


LITERAL_ZONE = "Etc/Zulu"
"""The zone of literals that name their own: an instant, of which nobody knows where it is shown."""

CASTABLE: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "double": pa.float64(),
    "float": pa.float32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
}
"""What CAST can make by name, beside `decimal(p,s)` and `timestamp`.

INT and FLOAT have their range but compute as BIGINT and DOUBLE, as all their kind do.
"""

_DECIMAL_NAME = re.compile(r"decimal\((\d+),(\d+)\)")


def cast_type(name: str, source: pa.DataType) -> pa.DataType:
    """The type that a cast of `source` makes, by its name: one of CASTABLE, `decimal(p,s)`, or
    `timestamp`, which keeps the zone that the source is shown in.

    >>> cast_type("decimal(9,2)", pa.int64())
    Decimal128Type(decimal128(9, 2))
    """
    found = _DECIMAL_NAME.fullmatch(name)
    if found is not None:
        return pa.decimal128(int(found[1]), int(found[2]))
    return compute_type(source) if name == "timestamp" else CASTABLE[name]


def cast_name(dtype: pa.DataType) -> str | None:
    """The name by which a cast makes values of this compute type; None if there is none.

    >>> cast_name(pa.decimal128(9, 2)), cast_name(pa.float64())
    ('decimal(9,2)', 'double')
    """
    if pa.types.is_decimal(dtype):
        return f"decimal({dtype.precision},{dtype.scale})"
    return next((name for name, made in CASTABLE.items() if made == dtype), None)


def _is_exact_decimal(dtype: pa.DataType) -> bool:
    """Whether Spark could have it as a DECIMAL; Arrow's may be wider, or have a negative scale."""
    return bool(
        pa.types.is_decimal(dtype)
        and dtype.precision <= MOST_DIGITS
        and 0 <= dtype.scale <= dtype.precision
    )


_TESTS = (
    (pa.types.is_boolean, Kind.BOOLEAN),
    (pa.types.is_integer, Kind.INTEGER),
    (pa.types.is_floating, Kind.FLOAT),
    (_is_exact_decimal, Kind.DECIMAL),
    (pa.types.is_string, Kind.STRING),
    (pa.types.is_large_string, Kind.STRING),
    (pa.types.is_string_view, Kind.STRING),
    (pa.types.is_date, Kind.DATE),
    (pa.types.is_timestamp, Kind.TIMESTAMP),
    (pa.types.is_binary, Kind.BINARY),
    (pa.types.is_large_binary, Kind.BINARY),
    (pa.types.is_binary_view, Kind.BINARY),
    (pa.types.is_fixed_size_binary, Kind.BINARY),
    (pa.types.is_null, Kind.NULL),
)

_COMPUTES_AS = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.BINARY: pa.binary(),
    Kind.NULL: pa.null(),
}


@cache
def kind_of(dtype: pa.DataType) -> Kind:
    """The kind of an Arrow type; a dictionary is of its values' kind."""
    if pa.types.is_dictionary(dtype):
        return kind_of(dtype.value_type)
    return next((kind for test, kind in _TESTS if test(dtype)), Kind.OTHER)


@cache
def compute_type(dtype: pa.DataType) -> pa.DataType:
    """The type in which values of this one take part in expressions.

    >>> compute_type(pa.int16()), compute_type(pa.decimal128(9, 2))
    (DataType(int64), Decimal128Type(decimal128(9, 2)))
    """
    kind = kind_of(dtype)
    plain = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    if kind is Kind.TIMESTAMP:
        return pa.timestamp("us", plain.tz)
    if kind is Kind.DECIMAL:
        return pa.decimal128(plain.precision, plain.scale)
    return _COMPUTES_AS.get(kind, dtype)


def common_type(types: Iterable[pa.DataType]) -> pa.DataType | None:
    """The one type in which values of all these can stand together; None if there is none.

    >>> common_type([pa.int32(), pa.null(), pa.float32()])
    DataType(double)
    >>> common_type([pa.int32(), pa.decimal128(9, 2)])
    Decimal128Type(decimal128(12, 2))
    """
    given = list(types)
    kinds = {kind_of(t) for t in given} - {Kind.NULL}
    if Kind.DECIMAL in kinds and kinds <= {Kind.INTEGER, Kind.DECIMAL}:
        return wider(as_decimal(t) for t in given if kind_of(t) is not Kind.NULL)
    if kinds and kinds <= {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT} and Kind.FLOAT in kinds:
        return pa.float64()
    found = [t for t in dict.fromkeys(map(compute_type, given)) if not pa.types.is_null(t)]
    if not found:
        return pa.null()
    # Instants compare whatever zone shows them; a zoneless clock reading is no instant.
    instants = all(pa.types.is_timestamp(t) and t.tz is not None for t in found)
    if instants:
        return next((t for t in found if t.tz != LITERAL_ZONE), found[0])
    return found[0] if len(found) == 1 else None


def fit_together(types: Iterable[pa.DataType]) -> bool:
    """Whether decimals and integers of all these types compare without losing a digit."""
    decimals = [as_decimal(t) for t in types if kind_of(t) in (Kind.INTEGER, Kind.DECIMAL)]
    whole = max(t.precision - t.scale for t in decimals)
    return bool(whole + max(t.scale for t in decimals) <= MOST_DIGITS)


def sql_name(dtype: pa.DataType) -> str:
    """The type as an error message shows it.

    >>> sql_name(pa.int32()), sql_name(pa.list_(pa.string()))
    ('BIGINT', 'list<item: string>')
    """
    kind = kind_of(dtype)
    if kind is Kind.TIMESTAMP and compute_type(dtype).tz is None:
        return "TIMESTAMP_NTZ"
    if kind is Kind.DECIMAL:
        exact = compute_type(dtype)
        return f"DECIMAL({exact.precision},{exact.scale})"
    return str(dtype) if kind is Kind.OTHER else kind.value
