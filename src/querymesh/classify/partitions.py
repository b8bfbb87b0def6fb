"""Partitioning functions of CBR § 4.1: each attribute's values in d partitions, as tuples go by.

    discrete     whole numbers, texts, booleans, dates      a hash of the value
    continuous   decimals, doubles, timestamps              d equal ranges between the least and the
                                                            greatest value seen so far
    NULL                                                    a partition of its own, number d

NaN, the greatest number here as in Spark, lies in the last range. A set of two attributes has the
product of coarser partitions of both, so that there are still about d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Floats, Ints
from querymesh.classify.attributes import as_floats, null_mask

Attributes = tuple[str, ...]
"""One attribute, or a set of two."""

Column = Callable[[str], pa.Array]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


@dataclass
class Partitions:
    """The partitioning functions of one stream. `ranges` are least and greatest values seen."""

    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    def see(self, name: str, values: pa.Array) -> None:
        """Widen an attribute's range by the values that arrived."""
        if not is_continuous(values.type):
            return
        numbers = _numbers(values)
        numbers = numbers[np.isfinite(numbers) & ~null_mask(values)]
        if len(numbers):
            low, high = self.ranges.get(name, (math.inf, -math.inf))
            self.ranges[name] = min(low, float(numbers.min())), max(high, float(numbers.max()))

    def codes(self, attributes: Attributes, count: int, column: Column) -> Ints:
        """Each row's partition, of `count` and NULL's."""
        each = each_of(attributes, count)
        whole: Ints | None = None
        for name in attributes:
            codes = self._codes(name, column(name), each)
            whole = codes if whole is None else whole * (each + 1) + codes
        assert whole is not None, "an attribute set has at least one attribute"
        return whole

    def _codes(self, name: str, values: pa.Array, count: int) -> Ints:
        nulls = null_mask(values)
        if is_continuous(values.type):
            codes = self._ranged(name, _numbers(values), count)
        else:
            codes = hashed(values, count)
        return np.where(nulls, count, codes) if nulls.any() else codes

    def _ranged(self, name: str, numbers: Floats, count: int) -> Ints:
        low, high = self.ranges.get(name, (0.0, 0.0))
        width = high / 2 - low / 2  # halves, which cannot overflow
        position = np.zeros(len(numbers))
        if width > 0:
            position = (numbers / 2 - low / 2) / width * count
        position = np.where(np.isnan(numbers), count - 1.0, position)
        return np.asarray(np.clip(position, 0, count - 1), dtype=np.int64)

    def moved(self, other: Partitions, attributes: Attributes, numbers: Floats) -> Floats:
        """Numbers by partition of `other`, as numbers by partition of this one.

        Ranges that differ are matched by their middles; what is hashed, or a set, stays as it is.
        """
        name = attributes[0]
        if len(attributes) > 1 or name not in self.ranges or name not in other.ranges:
            return numbers
        count = len(numbers) - 1
        low, high = self.ranges[name]
        middles = low + (np.arange(count) + 0.5) * (high - low) / count
        return np.append(numbers[other._ranged(name, middles, count)], numbers[-1])

    def widened(self, other: Partitions) -> Partitions:
        """The same functions over ranges that hold both."""
        ranges = dict(self.ranges)
        for name, (low, high) in other.ranges.items():
            mine = ranges.get(name, (low, high))
            ranges[name] = min(low, mine[0]), max(high, mine[1])
        return Partitions(ranges)


def each_of(attributes: Attributes, count: int) -> int:
    """Partitions of each attribute of a set, so that all of them make about `count`."""
    return count if len(attributes) == 1 else max(2, round(count ** (1 / len(attributes))))


def size_of(attributes: Attributes, count: int) -> int:
    """How many partitions there are, NULL's included."""
    return int((each_of(attributes, count) + 1) ** len(attributes))


def is_continuous(kind: pa.DataType) -> bool:
    """Whether values are partitioned by range."""
    return bool(
        pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_timestamp(kind)
    )


def can_partition(kind: pa.DataType) -> bool:
    """Whether values of this type can be partitioned: not those that hold others."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def hashed(values: pa.Array, count: int) -> Ints:
    """Each value's hash, below `count`; NULLs are somewhere. The same in every process."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        distinct = hashed(values.dictionary, count) if len(values.dictionary) else np.zeros(1, int)
        return distinct[np.asarray(pc.fill_null(values.indices, 0), dtype=np.int64)]
    if pa.types.is_boolean(kind):
        whole = np.asarray(pc.fill_null(values, False)).astype(np.int64)
    elif pa.types.is_integer(kind):
        whole = np.asarray(pc.fill_null(values, 0)).astype(np.int64)
    elif pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        whole = np.asarray(pc.fill_null(values.view(width), 0)).astype(np.int64)
    else:
        coded = pc.dictionary_encode(values)
        distinct = np.array([_text_hash(v) for v in coded.dictionary.to_pylist()] or [0], np.int64)
        whole = distinct[np.asarray(pc.fill_null(coded.indices, 0), dtype=np.int64)]
    with np.errstate(over="ignore"):
        mixed = (whole.view(np.uint64) * _GOLDEN) >> _SHIFT
    # By the high bits, in which neighbouring numbers lie far apart: few values seldom collide.
    return ((mixed * np.uint64(count)) >> _SHIFT).astype(np.int64)


def _text_hash(value: object) -> int:
    """FNV-1a of a value's text, without its highest bit: the same in every process, unlike Python's
    own."""
    code = 0x4BF29CE484222325
    for byte in value if isinstance(value, bytes) else str(value).encode():
        code = (code ^ byte) * 0x100000001B3 & 0x7FFFFFFFFFFFFFFF
    return code


def _numbers(values: pa.Array) -> Floats:
    if pa.types.is_timestamp(values.type):
        return as_floats(values.view(pa.int64()))
    return as_floats(values)
