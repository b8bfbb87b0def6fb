"""Naive Bayes: each value of each column speaks for each class, and the loudest class is it.

    score(class | row) = log P(class) + Σ over columns of log P(the row's bin | class)

Where several columns each say a little, a tree must cut every one of them again below every other:
classes told by the sum of six numbers take it dozens of leaves. Here they take one table a column.
Bins are those of `attributes.py`, coarser: NULL and values that the sample never had share one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats, Ints
from querymesh.classify.attribute_file import (
    attribute_from_json,
    attribute_to_json,
    numbers_from_json,
)
from querymesh.classify.attributes import Attribute, choose_attributes, coarser, one_piece
from querymesh.classify.classifier import ColumnOf

ROWS_A_RANGE = 160
FEWEST_RANGES, MOST_RANGES = 4, 16
"""The numbers of a column are cut into one range for so many sampled rows, within these bounds."""


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """For each attribute a table: a score for each of its bins, NULL's first, and each class."""

    attributes: tuple[Attribute, ...]
    scores: tuple[Floats, ...]
    kind: str = "naive-bayes"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def class_count(self) -> int:
        """The classes that it has scores for."""
        return int(self.scores[0].shape[1])

    def classes(self, column: ColumnOf, rows: int) -> Ints:
        """The class with the greatest sum of scores, the first of equal ones."""
        total = np.zeros((rows, self.class_count))
        for attribute, scores in zip(self.attributes, self.scores, strict=True):
            total += scores.take(attribute.codes(column(attribute.name)), axis=0)
        return np.asarray(total.argmax(axis=1), dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """The attributes with their bins and scores."""
        tables = zip(self.attributes, self.scores, strict=True)
        return {"attributes": [_to_json(attribute, scores) for attribute, scores in tables]}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NaiveBayes) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.columns)


class NaiveBayesLearner:
    """Learns and reads `NaiveBayes`."""

    kind = "naive-bayes"

    def fit(self, sample: pa.Table, labels: Ints, weights: Floats) -> NaiveBayes:
        """The classifier of the labels, in which a row counts for its weight.

        A bin that holds nothing of a class speaks as if it held one row of average weight, of all
        classes as they are on the whole.
        """
        ranges = min(max(sample.num_rows // ROWS_A_RANGE, FEWEST_RANGES), MOST_RANGES)
        attributes = [coarser(each, ranges) for each in choose_attributes(sample)[0]]
        classes = int(labels.max()) + 1
        counted = weights / (float(weights.mean()) or 1.0)
        prior = np.bincount(labels, counted, minlength=classes) + 1.0
        scores = []
        for attribute in attributes:
            codes = attribute.codes(one_piece(sample.column(attribute.name)))
            cells = np.bincount(
                codes * classes + labels, counted, minlength=attribute.bins * classes
            )
            within = cells.reshape(attribute.bins, classes) + prior / prior.sum()
            scores.append(np.log(within / prior))
        scores[0] = scores[0] + np.log(prior)
        return NaiveBayes(tuple(attributes), tuple(scores))

    def from_json(self, content: Mapping[str, Any]) -> NaiveBayes:
        """The classifier that was saved."""
        entries = content.get("attributes")
        if not isinstance(entries, list) or not entries:
            raise ValueError("'attributes' must be a list of one or more")
        read = [_from_json(entry) for entry in entries]
        if len({scores.shape[1] for _, scores in read}) != 1:
            raise ValueError("its attributes have scores for different numbers of classes")
        return NaiveBayes(tuple(a for a, _ in read), tuple(s for _, s in read))


def _to_json(attribute: Attribute, scores: Floats) -> dict[str, Any]:
    return {**attribute_to_json(attribute), "scores": scores.tolist()}


def _from_json(entry: Any) -> tuple[Attribute, Floats]:
    attribute = attribute_from_json(entry)
    name = attribute.name
    scores = numbers_from_json(entry.get("scores"), f"'scores' of {name}")
    if scores.ndim != 2 or len(scores) != attribute.bins:
        raise ValueError(f"'scores' of {name} must have a list for each of {attribute.bins} bins")
    return attribute, scores
