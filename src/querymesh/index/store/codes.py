"""Values as 64-bit numbers, which is all that an index ever looks at.

Equality codes: equal values have equal codes, in every process and on every machine. Where a type
has no more than 64 bits the reverse holds as well (`exact`); texts, binaries and wide decimals are
hashed, so that whoever asks the index has to compare the values themselves. As in Spark, NaN equals
NaN and is the greatest number, and -0.0 equals 0.0. NULL equals nothing and has no code.

Order codes: a < b if and only if code(a) < code(b).

Both sides of a join must be of one type before they are coded: integers of any width do, and so do
floats, but not a timestamp in milliseconds with one in microseconds, nor decimals of two scales.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from querymesh.arrays import Array, Bytes, Floats, Ints
from querymesh.index.kernels import kernels
from querymesh.query.functions.decimals import unscaled

EXACT_DIGITS = 18
"""Decimals of at most this precision fit into 64 bits."""

_INT64 = np.dtype(np.int64)
_TOP_BIT = np.int64(-(2**63))
_ALL_BUT_TOP = np.int64(2**63 - 1)


class Codes(NamedTuple):
    """A code for each value, and whether equal codes mean equal values."""

    codes: Ints
    exact: bool


def ints(numbers: npt.ArrayLike) -> Ints:
    """As the kernels want them: 64 bits, contiguous, aligned; copied only if they are not."""
    if type(numbers) is np.ndarray and numbers.dtype is _INT64:
        flags = numbers.flags
        if flags.c_contiguous and flags.aligned:
            return numbers
    return np.require(numbers, np.int64, ("C", "A"))


def equality_codes(values: pa.Array) -> Codes:
    """Codes that are equal if, and for `exact` types only if, the values are."""
    values = _without_null(values)
    kind = values.type
    if pa.types.is_dictionary(kind):
        distinct, exact = equality_codes(values.dictionary)
        return Codes(distinct[np.asarray(values.indices)], exact)
    if pa.types.is_floating(kind):
        return Codes(_floats(values).view(np.int64), True)
    number = _whole_numbers(values)
    return Codes(_hashes(values), False) if number is None else Codes(number, True)


def order_codes(values: pa.Array) -> Ints | None:
    """Codes in the order of the values; None for a type that has none, such as text."""
    values = _without_null(values)
    kind = values.type
    if pa.types.is_dictionary(kind):
        distinct = order_codes(values.dictionary)
        return None if distinct is None else distinct[np.asarray(values.indices)]
    if pa.types.is_floating(kind):
        bits = _floats(values).view(np.int64)
        return np.where(bits < 0, bits ^ _ALL_BUT_TOP, bits)
    number = _whole_numbers(values)
    if number is not None and pa.types.is_uint64(kind):
        return number ^ _TOP_BIT
    return number


def microseconds(values: pa.Array) -> Ints:
    """Timestamps as microseconds since the epoch; they must not be NULL."""
    kind = values.type
    us = values if kind.unit == "us" else values.cast(pa.timestamp("us", kind.tz))
    if us.null_count:
        raise ValueError(
            f"{us.null_count} of {len(us)} times are NULL: leave these rows out before"
        )
    return _fixed_width(us, np.int64, 8)


def combine(codes: Sequence[Ints]) -> Ints:
    """One number a row for the codes of several attributes; of a single one, the array itself.

    Different codes may give the same number: who finds rows by it compares the codes as well.
    """
    combined = codes[0]
    for more in codes[1:]:
        combined = kernels.fold(combined, more)
    return combined


def _without_null(values: pa.Array) -> pa.Array:
    """The values themselves, an extension type's as they are stored."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_dictionary(values.type) and values.dictionary.null_count:
        values = values.dictionary_decode()
    if values.null_count:
        raise ValueError(
            f"{values.null_count} of {len(values)} values to be coded are NULL, which equals "
            "nothing: leave these rows out before"
        )
    return values


def _floats(values: pa.Array) -> Floats:
    """As float64, with one zero and one NaN."""
    wide: Floats
    wide = values.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    wide[np.isnan(wide)] = np.nan
    return wide


def _whole_numbers(values: pa.Array) -> Ints | None:
    """The values of a type that is a whole number of at most 64 bits."""
    kind = values.type
    if pa.types.is_null(kind):
        return np.zeros(len(values), np.int64)
    if pa.types.is_boolean(kind):
        return ints(values.to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(kind):
        if kind.precision > EXACT_DIGITS:
            return None
        return ints(unscaled(values))
    if pa.types.is_integer(kind):
        own = np.dtype(kind.to_pandas_dtype())
        numbers = _fixed_width(values, own, own.itemsize)
        return ints(numbers.view(np.int64) if own == np.uint64 else numbers)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        own = np.dtype(np.int32 if kind.bit_width == 32 else np.int64)
        return ints(_fixed_width(values, own, own.itemsize))
    return None


def _fixed_width(values: pa.Array, dtype: npt.DTypeLike, width_bytes: int) -> Array:
    """The data buffer of the array's own part, without a copy."""
    data = values.buffers()[1]
    if data is None or len(values) == 0:
        return np.empty(0, dtype)
    begin, size = values.offset * width_bytes, len(values) * width_bytes
    return np.frombuffer(data.slice(begin, size), dtype)


def _hashes(values: pa.Array) -> Ints:
    kind = values.type
    if pa.types.is_decimal(kind):
        width = 32 if pa.types.is_decimal256(kind) else 16
        data = _fixed_width(values, np.uint8, width)
        return kernels.hash_bytes(data, np.arange(len(values) + 1, dtype=np.int64) * width)
    if pa.types.is_fixed_size_binary(kind):
        values = values.cast(pa.binary())
    elif str(kind) in ("string_view", "binary_view"):
        values = values.cast(pa.large_binary() if "binary" in str(kind) else pa.large_string())
    elif not _is_text(kind):
        spelled = [_spelled(value) for value in values.to_pylist()]
        values = pa.array(spelled, pa.large_string())
    return kernels.hash_bytes(*_pieces(values))


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _pieces(values: pa.Array) -> tuple[Bytes, Ints]:
    """The bytes of texts or binaries, and where each begins."""
    _, begins, data = values.buffers()
    large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    own = np.dtype(np.int64 if large else np.int32)
    if begins is None or len(values) == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    begin, size = values.offset * own.itemsize, (len(values) + 1) * own.itemsize
    offsets = ints(np.frombuffer(begins.slice(begin, size), own))
    letters = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return letters, offsets


def _spelled(value: object) -> str:
    """Text that is the same for equal values of any other type: lists, structs, intervals."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value + 0.0)
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_spelled(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_spelled, value)) + "]"
    return repr(value)


__all__ = [
    "EXACT_DIGITS", "Codes", "Ints", "combine", "equality_codes", "ints", "microseconds",
    "order_codes",
]  # fmt: skip
