"""What a foretelling goes by: numbers made of a row's columns, read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from querymesh.arrays import Floats
from querymesh.classify.attribute_file import attribute_from_json, numbers_from_json
from querymesh.classify.classifier import ColumnOf
from querymesh.classify.outcomes.hashed_features import MOST_OTHERS, MOST_TEXTS, HashedFeatures
from querymesh.classify.outcomes.own_features import MOST_WIDTH, Feature, OwnFeatures


class Features(Protocol):
    """Numbers for each row."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that they are made of."""

    @property
    def width(self) -> int:
        """How many numbers a row has."""

    def matrix(self, column: ColumnOf, rows: int) -> Floats:
        """All numbers of all rows."""

    def scores(self, column: ColumnOf, rows: int, weights: Floats) -> Floats:
        """The same times `weights`, which have a row for each number."""

    def to_json(self) -> dict[str, Any]:
        """All that makes them, but for a caller's own function."""


def features_from_json(content: Mapping[str, Any], function: Feature | None) -> Features:
    """The features that were saved; a ValueError says what is wrong with the content."""
    if "own" in content:
        columns = _names(content["own"], "'own'")
        if function is None:
            raise ValueError(
                f"it was learned from features of your own of {', '.join(columns)}: give "
                "classifiers=[querymesh.policies.Predicted(features=..., columns=[...])]"
            )
        mean = numbers_from_json(content.get("mean"), "'mean'")
        scale = numbers_from_json(content.get("scale"), "'scale'")
        if mean.ndim != 1 or mean.shape != scale.shape or not 0 < len(mean) <= MOST_WIDTH:
            raise ValueError(
                f"'mean' and 'scale' must have as many numbers, {MOST_WIDTH:,} at most"
            )
        if not columns or (scale <= 0).any():
            raise ValueError("'own' must name a column, and 'scale' hold numbers above 0")
        return OwnFeatures(function, columns, mean, scale)
    texts, bins = _names(content.get("texts"), "'texts'"), content.get("attributes")
    if not isinstance(bins, list) or len(texts) > MOST_TEXTS or len(bins) > MOST_OTHERS:
        raise ValueError(
            f"'texts' and 'attributes' must be lists of {MOST_TEXTS} and {MOST_OTHERS} at most"
        )
    return HashedFeatures(texts, tuple(attribute_from_json(entry) for entry in bins))


def _names(content: Any, what: str) -> tuple[str, ...]:
    if not isinstance(content, list) or not all(isinstance(name, str) for name in content):
        raise ValueError(f"{what} must be a list of columns' names")
    return tuple(content)
