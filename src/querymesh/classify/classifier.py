"""Classifiers of other kinds than the decision tree: what they are asked, who makes them.

A mesh takes whatever tells a class by a tuple's content (QM § 4.4); the tree is the default. A
`Learner` makes one from sampled rows, and reads one back from the JSON of a saved mesh. One that is
shown the outcomes of operators, and not labels, is an `outcomes.foretold.OutcomeLearner`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats, Ints
from querymesh.errors import OptionError, QueryMeshError

ColumnOf = Callable[[str], pa.Array]
"""From a column's name to its values, in one piece."""


class Classifier(Protocol):
    """Tells the class of each row by what its columns hold; equal ones tell the same."""

    @property
    def kind(self) -> str:
        """The name of its learner, under which a saved mesh has it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at."""

    def classes(self, column: ColumnOf, rows: int) -> Ints:
        """The class of each row, numbered from 0."""

    def to_json(self) -> dict[str, Any]:
        """What it has learned, as JSON holds it."""


@runtime_checkable
class CountsClasses(Protocol):
    """A classifier that knows how many classes it may tell; one of a caller's own need not."""

    @property
    def class_count(self) -> int:
        """Every class that it tells is below this."""


class ClassifierKind(Protocol):
    """A kind of classifiers: its name, and how those of it are read."""

    @property
    def kind(self) -> str:
        """The name of that kind."""

    def from_json(self, content: Mapping[str, Any]) -> Classifier:
        """The classifier that `to_json` gave; a ValueError says what is wrong with the content."""


class Learner(ClassifierKind, Protocol):
    """Makes classifiers of one kind from labelled rows."""

    def fit(self, sample: pa.Table, labels: Ints, weights: Floats) -> Classifier:
        """A classifier that tells the labels, 0 to the greatest of them, from the sampled columns.

        `weights` are by row: what it costs to take the row for another class, 0 where it is all
        the same.
        """


def check_learner(given: object) -> None:
    """Refuse what is no learner of classifiers, by labels or by outcomes."""
    learns = any(callable(getattr(given, name, None)) for name in ("fit", "fit_outcomes"))
    asked = [] if learns else ["fit"]
    if not callable(getattr(given, "from_json", None)):
        asked.append("from_json")
    if asked or not isinstance(getattr(given, "kind", None), str):
        missing = " and ".join([*asked, *(() if hasattr(given, "kind") else ("kind",))])
        raise OptionError(
            f"{type(given).__name__} makes no classifiers: it has no {missing or 'name as kind'}; "
            "see querymesh.classify.classifier.Learner"
        )


def classes_of(classifier: Classifier, column: ColumnOf, rows: int, count: int) -> Ints:
    """What a classifier, perhaps a caller's own, says of each row; checked to be below `count`."""
    told = np.asarray(classifier.classes(column, rows))
    if told.shape != (rows,) or not np.issubdtype(told.dtype, np.integer):
        raise QueryMeshError(
            f"classifier {classifier.kind} gave {told.dtype} of shape {told.shape} for {rows:,} "
            "rows: `classes` gives one whole number a row"
        )
    if rows and not 0 <= int(told.min()) <= int(told.max()) < count:
        raise QueryMeshError(
            f"classifier {classifier.kind} gave class {int(told.max())} or {int(told.min())}, but "
            f"it was given {count} classes, 0 to {count - 1}"
        )
    return told.astype(np.int64, copy=False)
