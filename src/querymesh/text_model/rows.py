"""Rows of features, sparse or dense, and the two products that a linear model needs of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from querymesh.arrays import Floats, Ints


class Rows(Protocol):
    """Rows of numbers, one for each feature."""

    @property
    def width(self) -> int:
        """How many features a row has."""

    def __len__(self) -> int: ...

    def take(self, rows: Ints) -> Rows:
        """Some of the rows, by number."""

    def times(self, weights: Floats) -> Floats:
        """For each row the sum of its features, each with its weight."""

    def sums(self, of_rows: Floats) -> Floats:
        """For each feature its sum over all rows, each of which counts for its number."""

    def present(self) -> Floats:
        """For each feature how many entries of it are not 0."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The features that are not 0: row `r` has those from `starts[r]` to `starts[r + 1]`.

    A feature that a row has several times counts as their sum. The first ones are pieces of texts.
    """

    starts: Ints
    features: Ints
    values: Floats
    width: int
    pieces: int = 0

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def row_of(self) -> Ints:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def take(self, rows: Ints) -> SparseRows:
        """Some of the rows, by number."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[:-1][rows] - starts[:-1], lengths)
        return SparseRows(
            starts, self.features[entries], self.values[entries], self.width, self.pieces
        )

    def times(self, weights: Floats) -> Floats:
        """For each row the sum of its features, each with its weight."""
        parts = self.values * weights[self.features]
        return np.bincount(self.row_of, parts, minlength=len(self)).astype(np.float64)

    def sums(self, of_rows: Floats) -> Floats:
        """For each feature its sum over all rows, each of which counts for its number."""
        parts = self.values * of_rows[self.row_of]
        return np.bincount(self.features, parts, minlength=self.width).astype(np.float64)

    def present(self) -> Floats:
        """For each feature how many entries of it are not 0."""
        return np.bincount(self.features[self.values != 0.0], minlength=self.width).astype(float)


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Rows as a matrix, such as embeddings."""

    matrix: Floats

    @property
    def width(self) -> int:
        """How many features a row has."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.matrix)

    def take(self, rows: Ints) -> DenseRows:
        """Some of the rows, by number."""
        return DenseRows(self.matrix[rows])

    def times(self, weights: Floats) -> Floats:
        """For each row the sum of its features, each with its weight."""
        return np.asarray(self.matrix @ weights, dtype=np.float64)

    def sums(self, of_rows: Floats) -> Floats:
        """For each feature its sum over all rows, each of which counts for its number."""
        return np.asarray(of_rows @ self.matrix, dtype=np.float64)

    def present(self) -> Floats:
        """For each feature how many entries of it are not 0."""
        return np.asarray(np.count_nonzero(self.matrix, axis=0), dtype=np.float64)
