"""Classifiers that are no trees, by name; a new one is one new file and one new line here."""

from __future__ import annotations

from collections.abc import Mapping

from querymesh.classify.classifier import ClassifierKind
from querymesh.classify.naive_bayes import NaiveBayesLearner
from querymesh.classify.outcomes.predicted import Predicted

CLASSIFIERS: Mapping[str, ClassifierKind] = {
    "naive-bayes": NaiveBayesLearner(),
    "predicted": Predicted(),
}
