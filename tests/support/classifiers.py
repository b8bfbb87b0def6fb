"""A classifier that tells any class of any row, by a hash of what its columns hold."""

from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from querymesh.classify.naive_bayes import NaiveBayesLearner


@dataclass(frozen=True)
class AnyClass:
    """The class of a row is as good as drawn by lot, and the same for the same values."""

    columns: tuple[str, ...]
    count: int
    seed: int
    kind: str = "any"

    @property
    def class_count(self):
        return self.count

    def classes(self, column, rows):
        values = zip(*(column(name).to_pylist() for name in self.columns), strict=True)
        told = [crc32(repr((self.seed, row)).encode()) % self.count for row in values]
        return np.array(told or [0] * rows, dtype=np.int64)

    def to_json(self):
        return {"columns": list(self.columns), "count": self.count, "seed": self.seed}


@dataclass(frozen=True)
class AnyClassLearner:
    """Learns nothing but how many classes there are."""

    seed: int = 0
    kind: str = "any"

    def fit(self, sample, labels, weights):
        return AnyClass(tuple(sample.column_names), int(labels.max()) + 1, self.seed)

    def from_json(self, content):
        if not content["count"] > 0:
            raise ValueError("'count' must be above 0")
        return AnyClass(tuple(content["columns"]), content["count"], content["seed"])


class OwnBayes(NaiveBayesLearner):
    """Naive Bayes under a name of one's own, which a saved mesh is not read by without it."""

    kind = "own"

    def fit(self, sample, labels, weights):
        return replace(super().fit(sample, labels, weights), kind="own")

    def from_json(self, content):
        return replace(super().from_json(content), kind="own")
