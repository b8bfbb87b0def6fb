"""Numbers that a caller's own function makes of a row's columns, such as an embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Floats
from querymesh.classify.classifier import ColumnOf
from querymesh.errors import QueryMeshError

MOST_WIDTH = 1 << 14
"""Numbers, at most, that a caller's own function gives for a row."""

Feature = Callable[..., Any]
"""From Arrow arrays, one for each column, to a two-dimensional array of numbers: a row for each."""


@dataclass(frozen=True, eq=False)
class OwnFeatures:
    """What a caller's function gives, each number less its mean and divided by `scale`."""

    function: Feature
    columns: tuple[str, ...]
    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, function: Feature, columns: Sequence[str], sample: pa.Table) -> OwnFeatures:
        """With the means of a sample; a row's numbers get a length of about one."""
        arrays = [sample.column(name).combine_chunks() for name in columns]
        given = _called(function, arrays, sample.num_rows)
        spread = given.std(axis=0) * np.sqrt(given.shape[1])
        mean = given.mean(axis=0)
        return cls(function, tuple(columns), mean, np.where(spread > 0, spread, 1.0))

    @property
    def width(self) -> int:
        """How many numbers the function gives."""
        return len(self.mean)

    def matrix(self, column: ColumnOf, rows: int) -> Floats:
        """The function's numbers, and those of the mean where all its columns are NULL."""
        arrays = [column(name) for name in self.columns]
        empty = np.asarray(pc.is_null(arrays[0]), dtype=bool)
        for array in arrays[1:]:
            empty &= np.asarray(pc.is_null(array), dtype=bool)
        made = np.zeros((rows, self.width))
        if not empty.all():
            there = pa.array(~empty)
            told = _called(self.function, [a.filter(there) for a in arrays], int((~empty).sum()))
            if told.shape[1] != self.width:
                raise QueryMeshError(
                    f"{_name(self.function)} gave {told.shape[1]:,} numbers a row, but "
                    f"{self.width:,} when it was learned from"
                )
            made[~empty] = (told - self.mean) / self.scale
        return made

    def scores(self, column: ColumnOf, rows: int, weights: Floats) -> Floats:
        """The function's numbers times the weights."""
        return self.matrix(column, rows) @ weights

    def to_json(self) -> dict[str, Any]:
        """The columns, means and scales; the function is given again."""
        return {
            "own": list(self.columns), "mean": self.mean.tolist(), "scale": self.scale.tolist(),
        }  # fmt: skip


def _called(function: Feature, arrays: Sequence[pa.Array], rows: int) -> Floats:
    """What a caller's function gives for so many rows, checked."""
    told = np.asarray(function(*arrays), dtype=np.float64)
    if told.ndim != 2 or len(told) != rows or not 0 < told.shape[1] <= MOST_WIDTH:
        raise QueryMeshError(
            f"{_name(function)} gave an array of shape {told.shape} for {rows:,} rows: features "
            f"are an array with a row for each, and 1 to {MOST_WIDTH:,} numbers in it"
        )
    if not np.isfinite(told).all():
        raise QueryMeshError(f"{_name(function)} gave features that are no finite numbers")
    return told


def _name(function: Feature) -> str:
    return f"features function {getattr(function, '__name__', type(function).__name__)}"
