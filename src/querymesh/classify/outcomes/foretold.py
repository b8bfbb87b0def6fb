"""What can be foretold of sampled rows, and by whom: the protocol of learners of outcomes.

A classifier of routes is usually learned from labels: the cheapest route of each row. A dropped row
says nothing of the operators behind the one that dropped it, and with k operators there are k!
labels for a few hundred rows. A learner of outcomes is shown the profile itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard

import numpy as np

from querymesh.arrays import Floats
from querymesh.classify.classifier import Classifier, ClassifierKind, Learner
from querymesh.stats.profile import Profile, Route


class Foretold(Protocol):
    """Probabilities for the rows of a profile, and classifiers made of what foretells them."""

    @property
    def passes(self) -> Floats:
        """The probability that each operator lets a row pass which those before it have passed:
        rows × operators, each foretold without having seen what became of the row itself."""

    @property
    def foretold(self) -> Sequence[int]:
        """The places, from 0, of operators that rows do not pass alike."""

    def classifier(self, routes: tuple[Route, ...]) -> Classifier:
        """What tells the route that is expected to cost a row least, as its class."""


class OutcomeLearner(ClassifierKind, Protocol):
    """Learns from outcomes, costs and precedence rather than from labels."""

    def fit_outcomes(self, profile: Profile, rng: np.random.Generator) -> Foretold | None:
        """What it foretells of the rows of a profile; None where that is nothing beyond chance."""


def learns_labels(learner: object) -> TypeGuard[Learner]:
    """Whether a learner is shown labels."""
    return callable(getattr(learner, "fit", None)) and not learns_outcomes(learner)


def learns_outcomes(learner: object) -> TypeGuard[OutcomeLearner]:
    """Whether a learner is shown outcomes, and not labels."""
    return callable(getattr(learner, "fit_outcomes", None))
