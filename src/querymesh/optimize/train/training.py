"""How to train: every choice of QM § 4 that is left to the caller, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from querymesh.classify.classifier import ClassifierKind, Learner, check_learner
from querymesh.classify.classifiers import CLASSIFIERS
from querymesh.classify.outcomes.foretold import OutcomeLearner, learns_labels, learns_outcomes
from querymesh.cost.route_time import WINDOW
from querymesh.errors import OptionError
from querymesh.optimize.routes.route_searches import ROUTE_SEARCHES
from querymesh.optimize.routes.subset import RouteSearch
from querymesh.optimize.search.searches import SEARCHES, Search
from querymesh.optimize.search.start import STARTS, Start
from querymesh.optimize.search.stop import DEFAULT_STOP, Stop
from querymesh.optimize.strategy import chosen
from querymesh.optimize.train.folds import JUDGES, Judge
from querymesh.options import check_integer, check_name, check_number

LEAST: Mapping[str, int] = {
    "sample_rows": 1,
    "training_tuples": 1,
    "folds": 2,
    "most_sample_rows": 1,
    "window": 1,
    "least_ruster": 0,
    "classify_every": 1,
    "seed": 0,
}
"""The options that are integers, and the least they can be."""
TREE = "tree"


@dataclass(frozen=True, slots=True)
class Training:
    """How to train. The defaults follow QM's Table 1, with a larger sample and training set;
    `Training.preset` has both of the paper's tables.

    Parameters
    ----------
    sample_rows
        Tuples that are sampled and profiled. Defaults to 2,000.
    training_tuples
        Training tuples, at most, that the sample is condensed to. Defaults to 24.
    start
        Where the search starts: a name from `STARTS`, or a function of that kind. Defaults to
        "route-driven".
    search
        The search for a partition of the training tuples: a name from `SEARCHES`, or a function of
        that kind, such as `functools.partial(iterative_improvement, patience=500)`. Defaults to
        "iterative-improvement".
    route_search
        The search for the route of a group: a name from `ROUTE_SEARCHES`, or a function of that
        kind. Defaults to "auto".
    classifier
        What tells kinds of tuples apart: "tree", a name from `CLASSIFIERS`, or an object of your
        own that learns and reads one (`querymesh.classify.classifier.Learner`). One that is no tree
        is asked in Python, on the fabric. "predicted", or a `Predicted` with features of your own,
        foretells what each operator does with a row and orders them by that. Defaults to "tree".
    predict
        Whether outcomes are foretold beside a tree where operators are so dear that it could pay;
        the one that is cheaper on rows kept back is taken. Defaults to True.
    stop
        The bounds of the search. Defaults to 3 iterations and 600 partitions.
    judge
        Which tuples are kept back to judge the result by: "holdout" (a share), "cross-validation"
        (each of several parts in turn), "bootstrap" (what draws with replacement left out), or a
        function of that kind. Defaults to a holdout, and to cross-validation where an accuracy is
        asked for, which one lucky holdout must not decide.
    seconds
        Processor time, at most, that training on one sample may take, whatever `stop` says. The
        best mesh found by then stands, and `explain` says that it ran out. None is no bound.
        Defaults to 5.
    holdout
        The share of the sample that judge "holdout" keeps back. Defaults to 1/3.
    folds
        Parts of judge "cross-validation", draws of judge "bootstrap". Defaults to 5.
    accuracy
        How well the sample must foretell tuples that were kept back, as a share such as 0.95; the
        sample is doubled until it does. Defaults to None: the first sample will do.
    most_sample_rows
        Tuples, at most, that are sampled to reach the accuracy. Defaults to 32,000.
    tolerance
        Orders that cost at most this share more than the best, such as 0.05, are left to a lottery
        while the query runs (QM § 5.4). Defaults to 0, which leaves none.
    window
        Tuples that are classified together (W^TC). Defaults to 10,000.
    least_ruster
        Tuples, at least, of a ruster. Defaults to 0.
    classify_every
        Of so many tuples in a row one is classified, and the others follow it (QM § 5.1): for
        streams in which neighbours are of one kind. Defaults to 1, which classifies them all.
    seed
        Of all random choices: the same seed gives the same mesh. Defaults to 0.
    insist
        Whether to learn even where that cannot pay for itself, since the job is small or its
        conditions are cheap. Defaults to False.
    """

    sample_rows: int = 2000
    training_tuples: int = 24
    start: str | Start = "route-driven"
    search: str | Search = "iterative-improvement"
    route_search: str | RouteSearch = "auto"
    classifier: str | ClassifierKind = "tree"
    predict: bool = True
    stop: Stop = DEFAULT_STOP
    seconds: float | None = 5.0
    judge: str | Judge | None = None
    holdout: float = 1 / 3
    folds: int = 5
    accuracy: float | None = None
    most_sample_rows: int = 32_000
    tolerance: float = 0.0
    window: int = WINDOW
    least_ruster: int = 0
    classify_every: int = 1
    seed: int = 0
    insist: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.predict, bool):
            raise OptionError(f"predict is True or False, not {self.predict!r}")
        for name, least in LEAST.items():
            check_integer(name, getattr(self, name), least)
        check_number("holdout", self.holdout)
        check_number("tolerance", self.tolerance)
        if self.seconds is not None:
            check_number("seconds", self.seconds)
            if not 0 < self.seconds < math.inf:
                raise OptionError(
                    f"seconds is a time above 0, or None for no bound, not {self.seconds}"
                )
        if not isinstance(self.stop, Stop):
            raise OptionError(f"stop must be a Stop, such as Stop(iterations=3), not {self.stop!r}")
        if not 0 <= self.holdout < 1:
            raise OptionError(f"holdout is a share from 0 to below 1, not {self.holdout}")
        if not (0 <= self.tolerance < math.inf):
            raise OptionError(
                f"tolerance is a share from 0 (no uncertain routes) upwards, not {self.tolerance}"
            )
        self._check_accuracy()
        chosen("start", self.start, STARTS)
        chosen("search", self.search, SEARCHES)
        chosen("route search", self.route_search, ROUTE_SEARCHES)
        chosen("judge", self.judged_by, JUDGES)
        if isinstance(self.classifier, str):
            check_name("classifier", self.classifier, (TREE, *CLASSIFIERS))
        else:
            check_learner(self.classifier)

    @property
    def learner(self) -> ClassifierKind | None:
        """What makes classifiers; None where they are trees."""
        if isinstance(self.classifier, str):
            return None if self.classifier == TREE else CLASSIFIERS[self.classifier]
        return self.classifier

    @property
    def label_learner(self) -> Learner | None:
        """The same where it learns from labels, in a search for a partition."""
        learner = self.learner
        return learner if learns_labels(learner) else None

    @property
    def outcome_learner(self) -> OutcomeLearner | None:
        """The same where it is shown the outcomes of operators."""
        learner = self.learner
        return learner if learns_outcomes(learner) else None

    @property
    def learners(self) -> tuple[ClassifierKind, ...]:
        """The same as what reads saved classifiers."""
        return () if self.learner is None else (self.learner,)

    @property
    def judged_by(self) -> str | Judge:
        """The judge asked for, or the one that suits what is asked for."""
        if self.judge is not None:
            return self.judge
        return "holdout" if self.accuracy is None else "cross-validation"

    def _check_accuracy(self) -> None:
        if self.accuracy is None:
            return
        check_number("accuracy", self.accuracy)
        if not 0 < self.accuracy < 1:
            raise OptionError(f"accuracy is a share between 0 and 1, not {self.accuracy}")
        if self.judge in ("holdout", JUDGES["holdout"]) and self.holdout == 0:
            raise OptionError(
                "accuracy is measured on tuples kept back: give a holdout greater than 0, or "
                "judge='cross-validation' or 'bootstrap'"
            )
        if self.most_sample_rows < self.sample_rows:
            raise OptionError(
                f"most_sample_rows, {self.most_sample_rows:,}, is less than sample_rows, "
                f"{self.sample_rows:,}"
            )

    def check_shared(self) -> None:
        """Refuse what does not go with queries that share one pass."""
        if self.route_search != "auto":
            raise OptionError(
                "queries that share one pass have a route search of their own: leave route_search "
                "out"
            )

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Training:
        """The defaults of one of the paper's tables, "table-1" or "table-3", with changes."""
        from querymesh.optimize.train.presets import PRESETS

        return cls(**{**chosen("preset", name, PRESETS), **changes})
