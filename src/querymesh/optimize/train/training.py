"""How to train: every choice of QM § 4 that is left to the caller, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeVar, cast

from querymesh.cost.route_time import WINDOW
from querymesh.errors import QueryMeshError, TrainingError
from querymesh.optimize.routes.best_route import ROUTE_SEARCHES, RouteSearch
from querymesh.optimize.search.searches import SEARCHES, Search
from querymesh.optimize.search.start import STARTS, Start
from querymesh.optimize.search.stop import DEFAULT_STOP, Stop
from querymesh.optimize.train.folds import JUDGES, Judge
from querymesh.options import check_name

Strategy = TypeVar("Strategy")

LEAST: Mapping[str, int] = {
    "sample_rows": 1,
    "training_tuples": 1,
    "folds": 2,
    "most_sample_rows": 1,
    "window": 1,
    "least_ruster": 0,
    "seed": 0,
}
"""The settings that are integers, and the least they can be."""


@dataclass(frozen=True, slots=True)
class Training:
    """How to train. The defaults follow QM's Table 1, with a larger sample and training set;
    `Training.preset` has both of the paper's tables.

    `sample_rows` tuples are profiled and condensed to at most `training_tuples`. `start`, `search`
    and `route_search` are names from `STARTS`, `SEARCHES` and `ROUTE_SEARCHES`, or functions of the
    same kind, such as `functools.partial(iterative_improvement, patience=500)`; `stop` bounds the
    search. `window` tuples are classified together (W^TC) and a ruster
    has at least `least_ruster` of them.

    `judge` says on which tuples the result is judged: a `holdout` share kept back, each of `folds`
    parts in turn ("cross-validation"), or what each of `folds` draws with replacement left out
    ("bootstrap"). If `accuracy` (a share, such as 0.95) is asked for, the sample is doubled until
    it is reached or the sample has `most_sample_rows`. Unless told, the judge is a holdout, and
    cross-validation where an accuracy is asked for, which one lucky holdout must not decide.

    Orders that cost at most a `tolerance` (a share, such as 0.05) more than the best are left to a
    lottery while the query runs (QM § 5.4); 0 leaves none.
    """

    sample_rows: int = 2000
    training_tuples: int = 24
    start: str | Start = "route-driven"
    search: str | Search = "iterative-improvement"
    route_search: str | RouteSearch = "auto"
    stop: Stop = DEFAULT_STOP
    judge: str | Judge | None = None
    holdout: float = 1 / 3
    folds: int = 5
    accuracy: float | None = None
    most_sample_rows: int = 32_000
    tolerance: float = 0.0
    window: int = WINDOW
    least_ruster: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, Integral):
                raise TrainingError(f"{name} must be an integer, not {number!r}")
            if number < least:
                raise TrainingError(f"{name} must be at least {least}, not {number}")
        for name in ("holdout", "tolerance", "accuracy"):
            share = getattr(self, name)
            given = share is not None or name != "accuracy"
            if given and (isinstance(share, bool) or not isinstance(share, Real)):
                raise TrainingError(f"{name} must be a number, not {share!r}")
        if not isinstance(self.stop, Stop):
            raise TrainingError(
                f"stop must be a Stop, such as Stop(iterations=3), not {self.stop!r}"
            )
        if not 0 <= self.holdout < 1:
            raise TrainingError(f"holdout is a share from 0 to below 1, not {self.holdout}")
        if not (0 <= self.tolerance < math.inf):
            raise TrainingError(
                f"tolerance is a share from 0 (no uncertain routes) upwards, not {self.tolerance}"
            )
        self._check_accuracy()
        chosen("start", self.start, STARTS)
        chosen("search", self.search, SEARCHES)
        chosen("route search", self.route_search, ROUTE_SEARCHES)
        chosen("judge", self.judged_by, JUDGES)

    @property
    def judged_by(self) -> str | Judge:
        """The judge asked for, or the one that suits what is asked for."""
        if self.judge is not None:
            return self.judge
        return "holdout" if self.accuracy is None else "cross-validation"

    def _check_accuracy(self) -> None:
        if self.accuracy is None:
            return
        if not 0 < self.accuracy < 1:
            raise TrainingError(f"accuracy is a share between 0 and 1, not {self.accuracy}")
        if self.judge in ("holdout", JUDGES["holdout"]) and self.holdout == 0:
            raise TrainingError(
                "accuracy is measured on tuples kept back: give a holdout greater than 0, or "
                "judge='cross-validation' or 'bootstrap'"
            )
        if self.most_sample_rows < self.sample_rows:
            raise TrainingError(
                f"most_sample_rows, {self.most_sample_rows:,}, is less than sample_rows, "
                f"{self.sample_rows:,}"
            )

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Training:
        """The defaults of one of the paper's tables, "table-1" or "table-3", with changes."""
        from querymesh.optimize.train.presets import PRESETS

        return cls(**{**chosen("preset", name, PRESETS), **changes})


def chosen(what: str, choice: str | Strategy, known: Mapping[str, Strategy]) -> Strategy:
    """The strategy of that name, or the one that was given itself."""
    if isinstance(choice, str):
        check_name(what, choice, known)
        return known[choice]
    if not callable(choice):
        raise QueryMeshError(
            f"a {what} is a name or a function, not {choice!r}. Known: {', '.join(sorted(known))}"
        )
    return cast(Strategy, choice)
