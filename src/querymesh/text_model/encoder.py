"""What a row's arguments say, as features: hashed pieces of texts, scaled numbers, what is NULL.

::

    features   0 … buckets - 1        then of each column of numbers, or of texts
               hashed pieces of texts   scaled │ NULL │ in range 0 │ … │ in range 7     NULL
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Floats, Ints
from querymesh.text_model.hashing import hashed_texts, mixed
from querymesh.text_model.rows import SparseRows

BUCKETS = 1 << 14
"""Pieces of texts are told apart by so many features."""

RANGES = 8
"""Numbers are also told by range, each with an equal share of the rows: not all grows evenly."""

FARTHEST = 4.0
"""A number counts as at most so many standard deviations from the mean."""


@dataclass(frozen=True)
class TextColumn:
    """A column whose values are read as texts."""

    width = 1

    def to_json(self) -> dict[str, Any]:
        """The column as plain values."""
        return {"kind": "text"}


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, with what the sample told of them."""

    mean: float
    scale: float
    edges: tuple[float, ...]

    @property
    def width(self) -> int:
        """How many features it has."""
        return 2 + len(self.edges) + 1

    def to_json(self) -> dict[str, Any]:
        """The column as plain values."""
        edges = list(self.edges)
        return {"kind": "number", "mean": self.mean, "scale": self.scale, "edges": edges}


@dataclass(frozen=True)
class Encoder:
    """The features of some columns, by their place."""

    columns: tuple[TextColumn | NumberColumn, ...]
    buckets: int = BUCKETS

    @cached_property
    def width(self) -> int:
        """How many features a row has."""
        return self.buckets + sum(column.width for column in self.columns)

    def rows(self, args: Sequence[pa.Array], n: int) -> SparseRows:
        """The features of n rows."""
        rows, features, values = [], [], []
        first = self.buckets
        for at, (column, arg) in enumerate(zip(self.columns, args, strict=True)):
            if isinstance(column, TextColumn):
                texts = _texts(arg)
                row, hashes = hashed_texts(texts)
                parts = [(row, (mixed(hashes, at) % np.uint64(self.buckets)).astype(np.int64))]
                lengths = np.bincount(row, minlength=n)
                sizes = [1.0 / np.sqrt(lengths[row])]
                unknown = np.flatnonzero(np.asarray(pc.is_null(texts)))
                parts.append((unknown, np.full(len(unknown), first)))
                sizes.append(np.ones(len(unknown)))
            else:
                parts, sizes = _of_numbers(column, _numbers(arg), first)
            rows += [row for row, _ in parts]
            features += [feature for _, feature in parts]
            values += sizes
            first += column.width
        return _sorted(rows, features, values, self, n)

    def to_json(self) -> dict[str, Any]:
        """The encoder as plain values."""
        return {"buckets": self.buckets, "columns": [column.to_json() for column in self.columns]}


def fit_encoder(args: Sequence[pa.Array], buckets: int = BUCKETS) -> Encoder:
    """The encoder of columns of which a sample is given.

    >>> encoder = fit_encoder([pa.array(["good film", "bad film"]), pa.array([1, 2])])
    >>> rows = encoder.rows([pa.array(["good", None]), pa.array([1, None])], 2)
    >>> len(rows), rows.width == encoder.width
    (2, True)
    """
    return Encoder(tuple(map(_fit_column, args)), buckets)


def encoder_from_json(content: object) -> Encoder:
    """The encoder that was saved; a ValueError says what is wrong with it."""
    if not isinstance(content, Mapping):
        raise ValueError(f"an encoder is an object, not {content!r}")
    buckets, columns = content.get("buckets"), content.get("columns")
    if type(buckets) is not int or not 1 <= buckets <= 1 << 20:
        raise ValueError(f"'buckets' must be an integer from 1 to {1 << 20}, not {buckets!r}")
    if not isinstance(columns, list):
        raise ValueError(f"'columns' must be a list, not {columns!r}")
    return Encoder(tuple(map(_column_from_json, columns)), buckets)


def _fit_column(arg: pa.Array) -> TextColumn | NumberColumn:
    if not _is_number(arg.type):
        return TextColumn()
    numbers = _numbers(arg)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return NumberColumn(0.0, 1.0, ())
    with np.errstate(over="ignore", invalid="ignore"):
        mean, scale = float(numbers.mean()), float(numbers.std())
    inner = np.quantile(numbers, np.linspace(0, 1, RANGES + 1)[1:-1], method="lower")
    edges = tuple(np.unique(inner).tolist())
    if not (math.isfinite(mean) and math.isfinite(scale)):  # numbers near the end of floats
        return NumberColumn(0.0, float(np.abs(numbers).max()), edges)
    return NumberColumn(mean, scale or 1.0, edges)


def _of_numbers(
    column: NumberColumn, numbers: Floats, first: int
) -> tuple[list[tuple[Ints, Ints]], list[Floats]]:
    """The scaled number, whether it is NULL, and the range that it is in."""
    finite: Bools = np.isfinite(numbers)
    known, unknown = np.flatnonzero(finite), np.flatnonzero(~finite)
    with np.errstate(over="ignore"):
        scaled = (numbers[known] - column.mean) / column.scale
    ranges = np.searchsorted(column.edges, numbers[known], side="left")
    parts = [
        (known, np.full(len(known), first)),
        (unknown, np.full(len(unknown), first + 1)),
        (known, first + 2 + ranges.astype(np.int64)),
    ]
    clipped = np.clip(scaled, -FARTHEST, FARTHEST)
    return parts, [clipped, np.ones(len(unknown)), np.ones(len(known))]


def _sorted(
    rows: list[Ints], features: list[Ints], values: list[Floats], encoder: Encoder, n: int
) -> SparseRows:
    """Entries in any order as rows."""
    if not rows:
        none = np.zeros(0, dtype=np.int64)
        return SparseRows(np.zeros(n + 1, dtype=np.int64), none, np.zeros(0), encoder.width)
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int64)
    feature, value = np.concatenate(features)[order], np.concatenate(values)[order]
    return SparseRows(starts, feature, value, encoder.width, encoder.buckets)


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    of_numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(is_it(kind) for is_it in (*of_numbers, types.is_temporal)) and not (
        types.is_interval(kind)
    )


def _numbers(arg: pa.Array) -> Floats:
    """The values as floats, NaN where there is none."""
    kind = arg.type
    if pa.types.is_temporal(kind):
        arg = arg.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_boolean(kind):
        arg = arg.cast(pa.int8())
    as_floats = arg.cast(pa.float64(), safe=False)
    return np.asarray(pc.fill_null(as_floats, math.nan), dtype=np.float64)


def _texts(arg: pa.Array) -> pa.Array:
    """The values as texts."""
    if pa.types.is_dictionary(arg.type):
        arg = arg.cast(arg.type.value_type)
    if pa.types.is_string(arg.type) or pa.types.is_large_string(arg.type):
        return arg
    values = (None if value is None else repr(value) for value in arg.to_pylist())
    return pa.array(values, pa.string())


def _column_from_json(content: object) -> TextColumn | NumberColumn:
    if not isinstance(content, Mapping) or content.get("kind") not in ("text", "number"):
        raise ValueError(f"a column is an object of kind 'text' or 'number', not {content!r}")
    if content["kind"] == "text":
        return TextColumn()
    mean: Any = content.get("mean")
    scale: Any = content.get("scale")
    edges: Any = content.get("edges")
    if not isinstance(edges, list) or not all(map(_is_finite, [mean, scale, *edges])):
        raise ValueError(f"'mean', 'scale' and 'edges' must be finite numbers, not {content!r}")
    if not scale > 0 or any(b <= a for a, b in pairwise(edges)):
        raise ValueError(f"'scale' must be above 0 and 'edges' must grow, not {content!r}")
    return NumberColumn(float(mean), float(scale), tuple(map(float, edges)))


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
