"""A classifier that foretells what each operator will do with a row, and tells the route that is
then expected to cost least.

::

    text ──> buckets ──> a probability for each operator ──> what routes would cost ──> the least
                         .93  .12  .60                       1>2>3 12.1   2>3>1 4.0

Whatever it says the rows found are the same: it decides the order of operators and nothing else.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.classify.attribute_file import numbers_from_json
from querymesh.classify.classifier import ColumnOf
from querymesh.classify.outcomes.expected import expected_us
from querymesh.classify.outcomes.features import Features, features_from_json
from querymesh.classify.outcomes.logistic import sigmoid
from querymesh.classify.outcomes.own_features import Feature
from querymesh.stats.profile import Route

KIND = "predicted"

MOST_OPERATORS, MOST_ROUTES = 64, 16
"""More of them in a file are refused, before anything is made of it."""


@dataclass(frozen=True, eq=False)
class Foreteller:
    """Probabilities that operators let a row pass, of those that have passed what comes before.

    `weights` have a column for each operator in `foretold`, a place from 0, and `biases` a number;
    the others pass all rows alike at their `rates`, a number for each operator.
    """

    features: Features
    foretold: tuple[int, ...]
    weights: Floats
    biases: Floats
    rates: Floats

    def passes(self, column: ColumnOf, rows: int) -> Floats:
        """A column for each operator."""
        made = np.tile(self.rates, (rows, 1))
        scores = self.features.scores(column, rows, self.weights) + self.biases
        made[:, list(self.foretold)] = sigmoid(scores)
        return made


@dataclass(frozen=True, eq=False)
class OutcomeModel:
    """Tells the route, of `routes`, that is expected to cost a row least."""

    foreteller: Foreteller
    routes: tuple[Route, ...]
    drop_us: Floats
    pass_us: Floats
    kind: str = KIND

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at."""
        return self.foreteller.features.columns

    @property
    def class_count(self) -> int:
        """The routes that it chooses from."""
        return len(self.routes)

    def classes(self, column: ColumnOf, rows: int) -> Ints:
        """The number of that route, the first of equal ones."""
        passes = self.foreteller.passes(column, rows)
        us = expected_us(passes, self.routes, self.drop_us, self.pass_us)
        return np.asarray(us.argmin(axis=1), dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """Features, weights (as little-endian floats of four bytes, in base64), costs, routes."""
        told = self.foreteller
        return {
            "features": told.features.to_json(),
            "foretold": [operator + 1 for operator in told.foretold],
            "weights": b64encode(told.weights.astype("<f4").tobytes()).decode("ascii"),
            "biases": told.biases.tolist(),
            "rates": told.rates.tolist(),
            "drop_us": self.drop_us.tolist(),
            "pass_us": self.pass_us.tolist(),
            "routes": [list(route) for route in self.routes],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutcomeModel) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.routes)


def model_from_json(content: Mapping[str, Any], function: Feature | None) -> OutcomeModel:
    """The classifier that was saved; a ValueError says what is wrong with the content."""
    rates = _of_operators(content, "rates")
    drop_us, pass_us = _of_operators(content, "drop_us"), _of_operators(content, "pass_us")
    operators = len(rates)
    if not 2 <= operators <= MOST_OPERATORS or {len(drop_us), len(pass_us)} != {operators}:
        raise ValueError(
            f"'rates', 'drop_us' and 'pass_us' must have a number for each operator, 2 to "
            f"{MOST_OPERATORS}"
        )
    routes = content.get("routes")
    if not isinstance(routes, list) or not 2 <= len(routes) <= MOST_ROUTES:
        raise ValueError(f"'routes' must be a list of 2 to {MOST_ROUTES}")
    every = list(range(1, operators + 1))
    for route in routes:
        if not _whole(route) or sorted(route) != every:
            raise ValueError(f"a route is {route!r}, not an order of the {operators} operators")
    foretold = content.get("foretold")
    if not _whole(foretold) or not foretold or not set(foretold) <= set(every):
        raise ValueError(f"'foretold' is {foretold!r}, not a list of operators' numbers")
    if len(set(foretold)) != len(foretold):
        raise ValueError("'foretold' names an operator twice")
    features = content.get("features")
    if not isinstance(features, Mapping):
        raise ValueError(f"'features' is {type(features).__name__}, not an object")
    made = features_from_json(features, function)
    biases = _of_operators(content, "biases", least=-math.inf)
    if len(biases) != len(foretold):
        raise ValueError("'biases' must have a number for each of 'foretold'")
    weights = _weights(content.get("weights"), (made.width, len(foretold)))
    places = tuple(operator - 1 for operator in foretold)
    return OutcomeModel(
        Foreteller(made, places, weights, biases, rates),
        tuple(tuple(route) for route in routes),
        drop_us,
        pass_us,
    )


def _whole(content: Any) -> bool:
    return isinstance(content, list) and all(type(each) is int for each in content)


def _of_operators(content: Mapping[str, Any], key: str, least: float = 0.0) -> Floats:
    given = numbers_from_json(content.get(key), f"'{key}'")
    if given.ndim != 1 or (given < least).any():
        raise ValueError(f"'{key}' must be a list of numbers, none below {least:g}")
    return given


def _weights(content: Any, shape: tuple[int, int]) -> Floats:
    bytes_there = 4 * shape[0] * shape[1]
    if not isinstance(content, str) or len(content) != 4 * math.ceil(bytes_there / 3):
        raise ValueError(f"'weights' must be {bytes_there:,} bytes in base64")
    read = np.frombuffer(b64decode(content, validate=True), "<f4")
    if 4 * len(read) != bytes_there or not np.isfinite(read).all():
        raise ValueError(f"'weights' must be {bytes_there // 4:,} finite numbers")
    return read.reshape(shape).astype(np.float64)
