"""Words of texts, ranges of numbers and categories, each as one bucket of a table that is set.

A text counts for one whatever its length, and so does a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats, Ints
from querymesh.classify.attribute_file import attribute_to_json
from querymesh.classify.attributes import Attribute, choose_attributes, coarser
from querymesh.classify.classifier import ColumnOf
from querymesh.classify.outcomes.words import BUCKETS, column_salt, hashed, words

RANGES = 8
"""The numbers of a column are cut into so many ranges."""

MOST_TEXTS, MOST_OTHERS = 8, 24
"""Columns, at most, of each sort: every one takes time, for every row."""


@dataclass(frozen=True, eq=False)
class HashedFeatures:
    """Words of `texts`, and the bins of `attributes`, as buckets."""

    texts: tuple[str, ...]
    attributes: tuple[Attribute, ...]

    @classmethod
    def of(cls, sample: pa.Table, columns: Sequence[str] = ()) -> HashedFeatures:
        """Of these columns of a sample, or of all that have words or bins."""
        given = sample.select(list(columns)) if columns else sample
        texts = [field.name for field in given.schema if _is_text(field.type)]
        others = given.drop_columns(texts) if texts else given
        attributes = [coarser(each, RANGES) for each in choose_attributes(others)[0]]
        return cls(tuple(texts[:MOST_TEXTS]), tuple(attributes[:MOST_OTHERS]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that they are made of."""
        return self.texts + tuple(attribute.name for attribute in self.attributes)

    @property
    def width(self) -> int:
        """How many buckets there are."""
        return BUCKETS

    def matrix(self, column: ColumnOf, rows: int) -> Floats:
        """All buckets of all rows."""
        made = np.zeros(rows * BUCKETS)
        for bucket, row, value in self._set(column, rows):
            made += np.bincount(row * BUCKETS + bucket, value, minlength=len(made))
        return made.reshape(rows, BUCKETS)

    def scores(self, column: ColumnOf, rows: int, weights: Floats) -> Floats:
        """The sum of the weights of a row's buckets."""
        total = np.zeros((rows, weights.shape[1]))
        for bucket, row, value in self._set(column, rows):
            for number, of_bucket in enumerate(weights.T):
                total[:, number] += np.bincount(row, of_bucket[bucket] * value, minlength=rows)
        return total

    def _set(self, column: ColumnOf, rows: int) -> list[tuple[Ints, Ints, Floats]]:
        """For each column the buckets that are set, in which row, and to what."""
        found = []
        for name in self.texts:
            bucket, row = words(column(name), column_salt(name))
            many = np.bincount(row, minlength=rows)
            found.append((bucket, row, 1.0 / np.sqrt(many[row])))
        for attribute in self.attributes:
            codes = attribute.codes(column(attribute.name)).astype(np.uint64)
            bucket = hashed(codes, column_salt(attribute.name))
            found.append((bucket, np.arange(rows), np.ones(rows)))
        return found

    def to_json(self) -> dict[str, Any]:
        """The names of texts, and the attributes."""
        bins = [attribute_to_json(attribute) for attribute in self.attributes]
        return {"texts": list(self.texts), "attributes": bins}


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
