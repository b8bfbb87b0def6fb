"""What Spark makes of the values that a UDF without Arrow returns.

Such a UDF (`useArrow=False`, eval type 100) pickles its values, and the JVM takes those that fit
the declared type: a `True` for a boolean, a `3` for an integer. All others become NULL, silently:
a `1` for a boolean, a `3` for a double. The rules are those of Spark's `EvaluatePython`.
"""

from __future__ import annotations

import copyreg
import datetime
import decimal
import pickle
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

_KNOWN_TO_JAVA = (
    *(bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, type(None)),
    *(decimal.Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
)
_INTEGER_BITS: dict[type[DataType], int] = {
    ByteType: 8,
    ShortType: 16,
    IntegerType: 32,
    LongType: 64,
}
_KEPT: tuple[type[DataType], ...] = (
    *(BooleanType, FloatType, DoubleType, DateType, TimestampType, TimestampNTZType),
    *_INTEGER_BITS,
)


def results_of_pickle(values: Iterable[Any], returns: DataType, arrow: pa.DataType) -> pa.Array:
    """The values as Spark has them after the way through pickle, of the declared type."""
    take = _taker(returns)
    with np.errstate(over="ignore"):  # a double that no float can hold is infinite, as in Java
        taken = [None if value is None else take(_as_java_sees(value)) for value in values]
    if isinstance(returns, DateType):
        return pa.array(taken, pa.int32()).cast(arrow)
    if isinstance(returns, (TimestampType, TimestampNTZType)):
        return pa.array(taken, pa.int64()).cast(arrow)
    return pa.array(taken, arrow)


def is_known_to_pickle(returns: DataType) -> bool:
    """Whether the rules for this type are kept here.

    Text is not among them: Spark takes anything for text, written as Java writes it.
    """
    return isinstance(returns, _KEPT)


def _taker(returns: DataType) -> Callable[[Any], Any]:
    if isinstance(returns, BooleanType):
        return lambda value: value if type(value) is bool else None
    if isinstance(returns, FloatType):
        return lambda value: np.float32(value) if type(value) is float else None
    if isinstance(returns, DoubleType):
        return lambda value: value if type(value) is float else None
    if isinstance(returns, DateType):
        # Dates and timestamps are numbers by now: `toInternal` ran before they were pickled.
        return lambda value: value if _fits(value, 32) else None
    bits = _INTEGER_BITS.get(type(returns), 64)
    return lambda value: _lowest_bits(value, bits) if _fits(value, 64) else None


def _fits(value: Any, bits: int) -> bool:
    return type(value) is int and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def _lowest_bits(value: int, bits: int) -> int:
    """A number that is too large loses its highest bits, as Java's `toByte` has it."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def _as_java_sees(value: Any) -> Any:
    """The value, or something that fits no type where Java sees no more than an object.

    Raises where Spark would: what cannot be pickled, and what Java cannot unpickle (numpy's).
    """
    if type(value) in _KNOWN_TO_JAVA:
        return value
    pickle.dumps(value)
    made_by, arguments, *_ = value.__reduce_ex__(4)
    if made_by is copyreg.__newobj__ and len(arguments) == 1:  # type: ignore[attr-defined]
        return object()
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise TypeError(
        f"the UDF returned a {kind}, which Spark cannot read from a UDF without Arrow: "
        "return a plain Python value, as in bool(value), or leave out useArrow=False"
    )
