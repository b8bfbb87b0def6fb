"""Kinds of types, and the meaning of expressions that makes their order free.

A route may evaluate conditions in any order, and Catalyst, Arrow and DuckDB must agree on each. So
every built-in is *total*: it never fails, whatever the row holds.

- Every integer computes as BIGINT; every float or decimal computes as DOUBLE; a literal with a
  point is a DOUBLE.
- What Spark in ANSI mode would raise is NULL: division by zero, overflow of BIGINT, a bad cast.
- NaN equals NaN and is greater than every number, as in Spark and DuckDB; -0.0 equals 0.0.
- Strings compare by their bytes.
- A timestamp literal is read in the time zone of the column it is compared with.
- `exp`, `ln` and `power` may differ in the last bit between the JVM's and the C library's.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cache

import pyarrow as pa


class Kind(Enum):
    """What a type is for an expression. OTHER is nested or exotic: only user functions read it."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "BIGINT"
    FLOAT = "DOUBLE"
    STRING = "STRING"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    BINARY = "BINARY"
    NULL = "NULL"
    OTHER = "OTHER"


CASTABLE: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
"""What CAST can make. INT has its range but computes as BIGINT, as every integer does."""

_TESTS = (
    (pa.types.is_boolean, Kind.BOOLEAN),
    (pa.types.is_integer, Kind.INTEGER),
    (pa.types.is_floating, Kind.FLOAT),
    (pa.types.is_decimal, Kind.FLOAT),
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
    (DataType(int64), DataType(double))
    """
    kind = kind_of(dtype)
    if kind is Kind.TIMESTAMP:
        zoned = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
        return pa.timestamp("us", zoned.tz)
    return _COMPUTES_AS.get(kind, dtype)


def common_type(types: Iterable[pa.DataType]) -> pa.DataType | None:
    """The one type in which values of all these can stand together; None if there is none.

    >>> common_type([pa.int32(), pa.null(), pa.float32()])
    DataType(double)
    """
    found = [t for t in dict.fromkeys(map(compute_type, types)) if not pa.types.is_null(t)]
    if not found:
        return pa.null()
    if set(found) == {pa.int64(), pa.float64()}:
        return pa.float64()
    # Instants compare whatever zone shows them; a zoneless clock reading is no instant.
    instants = all(pa.types.is_timestamp(t) and t.tz is not None for t in found)
    return found[0] if len(found) == 1 or instants else None


def sql_name(dtype: pa.DataType) -> str:
    """The type as an error message shows it.

    >>> sql_name(pa.int32()), sql_name(pa.list_(pa.string()))
    ('BIGINT', 'list<item: string>')
    """
    kind = kind_of(dtype)
    if kind is Kind.TIMESTAMP and compute_type(dtype).tz is None:
        return "TIMESTAMP_NTZ"
    return str(dtype) if kind is Kind.OTHER else kind.value
