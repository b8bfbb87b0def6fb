"""The learner `predicted`: each operator's outcome by logistic regression on hashed words, or on
features of the caller's own.

Rows are few where operators are dear, so nothing is taken on trust: five parts of the rows are each
foretold from the other four, for several penalties, and an operator whose outcomes are not foretold
better than by its rate, by more than the error of that, is taken to pass all rows alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats, Ints
from querymesh.classify.attributes import one_piece
from querymesh.classify.outcomes.features import Features
from querymesh.classify.outcomes.hashed_features import HashedFeatures
from querymesh.classify.outcomes.logistic import (
    BIAS,
    PENALTIES,
    log_odds,
    loss,
    row_weights,
    sigmoid,
)
from querymesh.classify.outcomes.outcome_model import (
    KIND,
    MOST_OPERATORS,
    Foreteller,
    OutcomeModel,
    model_from_json,
)
from querymesh.classify.outcomes.own_features import OwnFeatures
from querymesh.errors import OptionError
from querymesh.stats.profile import Profile, Route

FOLDS = 5
MOST_ROWS = 600
"""More rows are not learned from: the work grows with their third power."""
DEAR_SHARE = 0.01
"""Of what all operators cost: one that costs less comes first anyway, and is not foretold."""

LEAST_EACH = 10
"""Rows that an operator dropped, and rows that it let pass, at the least."""


@dataclass(frozen=True)
class Predicted:
    """Foretells what each operator will do with a row, and orders them by that.

    Parameters
    ----------
    features
        From Arrow arrays, one for each of `columns`, to a two-dimensional array of numbers with a
        row for each, such as embeddings. A row whose columns are all NULL is not asked about.
        Defaults to None: words of texts, ranges of numbers and categories are hashed.
    columns
        What is looked at; needed with `features`, else all columns of the sample that can be.
    """

    features: Callable[..., Any] | None = None
    columns: Sequence[str] = field(default=())
    kind = KIND

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or not all(isinstance(c, str) for c in self.columns):
            raise OptionError(f"columns is a list of columns' names, not {self.columns!r}")
        if self.features is not None and not callable(self.features):
            raise OptionError(
                "features is a function from Arrow arrays to an array of numbers, not "
                f"{type(self.features).__name__}"
            )
        if self.features is not None and not self.columns:
            raise OptionError("features of your own need columns=[...], which they are made of")
        object.__setattr__(self, "columns", tuple(self.columns))

    def fit_outcomes(self, profile: Profile, rng: np.random.Generator) -> Learned | None:
        """What is foretold of each row; None where that is nothing beyond chance."""
        missing = sorted(set(self.columns) - set(profile.sample.column_names))
        if missing:
            raise OptionError(
                f"columns of classifier {KIND}: {missing[0]!r} is not among the sampled columns "
                f"{', '.join(profile.sample.column_names)}"
            )
        if profile.operators > MOST_OPERATORS:
            return None
        features = self._features_of(profile.sample)
        if not features.columns:
            return None
        return _Fitting(profile, features, rng.permutation(profile.rows)).learned()

    def _features_of(self, sample: pa.Table) -> Features:
        if self.features is None:
            return HashedFeatures.of(sample, self.columns)
        return OwnFeatures.of(self.features, self.columns, sample)

    def from_json(self, content: Mapping[str, Any]) -> OutcomeModel:
        """The classifier that was saved."""
        return model_from_json(content, self.features)


@dataclass(frozen=True)
class Learned:
    """What was learned from a profile: `passes` as `Foretold` says, and the foreteller of all."""

    profile: Profile
    foreteller: Foreteller
    passes: Floats

    @property
    def foretold(self) -> Sequence[int]:
        """The places of operators that rows do not pass alike."""
        return self.foreteller.foretold

    def classifier(self, routes: tuple[Route, ...]) -> OutcomeModel:
        """What tells the route that is expected to cost a row least."""
        return OutcomeModel(self.foreteller, routes, self.profile.drop_us, self.profile.pass_us)


@dataclass(frozen=True)
class _OfOperator:
    """What was learned of one operator: a weight for each feature, and a rate's log odds."""

    operator: int
    weights: Floats
    bias: float
    passes: Floats


class _Fitting:
    """Learns from the first rows of a permutation; the others are told by what was learned."""

    def __init__(self, profile: Profile, features: Features, order: Ints) -> None:
        self._profile, self._features = profile, features
        self._order = order[:MOST_ROWS]
        seen = profile.take(self._order)
        self._outcomes = seen.outcomes
        columns = {name: one_piece(seen.sample.column(name)) for name in features.columns}
        self._matrix = features.matrix(columns.__getitem__, len(self._order)).astype(np.float32)
        self._products = (self._matrix @ self._matrix.T).astype(np.float64)

    def learned(self) -> Learned | None:
        """All that is foretold beyond chance."""
        profile = self._profile
        found = [each for alike in self._alike() for each in self._of_operators(*alike)]
        if not found:
            return None
        foreteller = Foreteller(
            self._features,
            tuple(each.operator for each in found),
            np.stack([each.weights for each in found], axis=1),
            np.array([each.bias for each in found]),
            profile.pass_rates(),
        )
        columns = {n: one_piece(profile.sample.column(n)) for n in self._features.columns}
        passes = foreteller.passes(columns.__getitem__, profile.rows)
        for each in found:
            passes[self._order, each.operator] = each.passes
        return Learned(profile, foreteller, passes)

    def _alike(self) -> Iterator[tuple[list[int], Ints]]:
        """Operators of which there is enough to learn, with the rows that they met: those that
        passed all that comes before them."""
        groups: dict[bytes, tuple[list[int], Ints]] = {}
        cost_us = self._profile.cost_us
        for operator, after in enumerate(self._profile.after):
            if cost_us[operator] < DEAR_SHARE * float(cost_us.sum()):
                continue
            before = [k - 1 for k in sorted(after)]
            met = np.flatnonzero(self._outcomes[:, before].prod(axis=1) > 0)
            passed = self._outcomes[met, operator]
            if not np.isin(passed, (0.0, 1.0)).all():
                continue
            if np.bincount(passed.astype(np.int64), minlength=2).min() >= LEAST_EACH:
                groups.setdefault(met.tobytes(), ([], met))[0].append(operator)
        yield from groups.values()

    def _of_operators(self, operators: list[int], met: Ints) -> Iterator[_OfOperator]:
        """What is known of operators that met the same rows; none of those that seem to pass them
        alike."""
        passed = self._outcomes[:, operators]
        passes, gained = self._held_back(passed, met)
        best = gained.mean(axis=0).argmax(axis=1)
        weights: Floats | None = None
        for number, operator in enumerate(operators):
            own = gained[:, number, best[number]]
            if float(own.mean()) <= float(own.std(ddof=1)) / math.sqrt(len(own)):
                continue
            if weights is None:
                weights = row_weights(self._products[np.ix_(met, met)], passed[met], PENALTIES)
            of_rows = weights[:, number, best[number]]
            bias = log_odds(passed[met, number]) + BIAS * float(of_rows.sum())
            learned = of_rows.astype(np.float32) @ self._matrix[met]
            told = passes[:, number, best[number]]
            yield _OfOperator(operator, learned.astype(np.float64), bias, told)

    def _held_back(self, passed: Floats, met: Ints) -> tuple[Floats, Floats]:
        """For each row, operator and penalty what is foretold from rows of other parts; and of rows
        that were met, how much less it surprises than the rate."""
        rows, operators = passed.shape
        passes = np.empty((rows, operators, len(PENALTIES)))
        by_rate = np.empty((rows, operators))
        for part in np.array_split(np.arange(rows), FOLDS):
            others = np.setdiff1d(met, part)
            weights = row_weights(self._products[np.ix_(others, others)], passed[others], PENALTIES)
            offsets = np.array([log_odds(each) for each in passed[others].T])
            near = self._products[np.ix_(part, others)] + BIAS
            scores = np.tensordot(near, weights, axes=1)
            passes[part] = sigmoid(scores + offsets[None, :, None])
            by_rate[part] = sigmoid(offsets)
        less = loss(passed, by_rate)[:, :, None] - loss(passed[:, :, None], passes)
        return passes, less[met]
