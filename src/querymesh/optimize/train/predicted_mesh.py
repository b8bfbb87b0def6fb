"""Meshes in which the outcomes of operators are foretold, row by row, and decide the order.

A search over partitions looks for columns that tell kinds of rows apart. Of texts there may be
none: each row has its own. Here a model foretells what every operator would do with a row, and the
orders that are best for enough rows become the routes. It costs what eq. 2 of QM says: the time of
foretelling, measured, for each row, and one more ruster a window for each further route.

What the sampled rows cost is reckoned by what was foretold of each without having seen its own
outcomes (`PredictedMesh.told`), so that they can judge what was learned from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.classify.attributes import one_piece
from querymesh.classify.classifier import Classifier
from querymesh.classify.outcomes.expected import expected_us, orders_by_rank
from querymesh.classify.outcomes.foretold import Foretold, OutcomeLearner
from querymesh.classify.outcomes.outcome_model import MOST_ROUTES
from querymesh.classify.outcomes.predicted import Predicted
from querymesh.classify.tree import Classes, Leaf
from querymesh.cost.route_time import Overheads
from querymesh.optimize.search.classified_mesh import telling_us
from querymesh.query.model import Query
from querymesh.stats.profile import Profile, Route

LEAST_GAIN_US = 100.0
"""Foretelling takes 2 to 10 µs a row, and what a clairvoyant would save is seldom saved by half.
Where he would save less than this, nothing is foretold unless it was asked for."""

ERRORS = 2.0
"""Over one order for all it must save more than so many standard errors. One, as for a tree, let 4
to 7 of 100 data sets through whose words meant nothing: what is foretold, and whether it saves, is
judged by the same rows. Two let 1 to 2 through."""

FORETELLING_S = 1.0
"""What learning to foretell takes, about, of the most rows that are learned from. Nothing is
foretold unasked where less time is left, or a clairvoyant would not save as much."""

LEAST_ROWS = 50
"""Sampled rows, at least, to learn from."""

LEAST_SHARE = 0.005
"""A further route must be expected to save this share of what a row costs."""

MOST_CANDIDATES = 64
"""Orders, at most, of which the routes are chosen: those that are best for the most rows."""

TIMED_ROWS = 1000
"""Foretelling is timed on so many rows."""


@dataclass(frozen=True)
class Told:
    """What a classifier said of the rows of one sample before it had learned from them; for these
    rows alone, in their order."""

    said: Ints
    columns: tuple[str, ...]
    kind: str

    def classes(self, _: object, rows: int) -> Ints:
        """What was said of each row."""
        if rows != len(self.said):
            raise ValueError(f"{len(self.said):,} rows were told, and these are {rows:,}")
        return self.said

    def to_json(self) -> dict[str, list[int]]:
        """The class of each row; no file ever holds it."""
        return {"said": self.said.tolist()}


@dataclass(frozen=True)
class PredictedMesh:
    """A classifier of routes by what it foretells. `told` is the same with what it said of each
    sampled row unseen: whatever is reckoned over the sample goes by that."""

    tree: Classes
    told: Classes
    routes: tuple[Route, ...]
    by: str

    def row_us(self, profile: Profile, overheads: Overheads) -> Floats:
        """What each sampled row costs: its route, foretelling, and its share of rusters."""
        us = np.stack([profile.realized_us(route) for route in self.routes], axis=1)
        said = self.told.classifier.classes(lambda _: None, profile.rows)
        more_us = (len(self.routes) - 1) * overheads.route_us(profile.operators)
        return np.asarray(us[np.arange(profile.rows), said] + self.tree.us + more_us)


def is_worth_foretelling(query: Query, profile: Profile, single: Route) -> bool:
    """Whether operators are so dear, and a clairvoyant so much cheaper than one order for all, that
    outcomes are foretold without having been asked for.

    It needs functions of the user: what runs in Catalyst alone could not ask a model.
    """
    if not query.functions or profile.serves or profile.rows < LEAST_ROWS:
        return False
    gain_us = profile.realized_us(single) - profile.clairvoyant_us()
    return float(gain_us.mean()) >= LEAST_GAIN_US


def predicted_mesh(
    profile: Profile,
    overheads: Overheads,
    single: Route,
    seed: int,
    learner: OutcomeLearner | None = None,
) -> PredictedMesh | None:
    """The mesh by what a learner foretells; None where nothing is, or one order is best for all."""
    if profile.serves or profile.operators < 2:
        return None
    foretold = (learner or Predicted()).fit_outcomes(profile, np.random.default_rng(seed))
    if foretold is None:
        return None
    routes = _routes(foretold, profile, overheads, single)
    if len(routes) < 2:
        return None
    classifier = foretold.classifier(routes)
    us = expected_us(foretold.passes, routes, profile.drop_us, profile.pass_us)
    said = Told(us.argmin(axis=1), classifier.columns, classifier.kind)
    ends = tuple(Leaf(number) for number in range(len(routes)))
    took_us = _timed_us(classifier, profile, len(routes))
    names = ", ".join(profile.names[j] for j in sorted(foretold.foretold))
    by = f"what becomes of a row in {names} is foretold from {', '.join(classifier.columns)}"
    return PredictedMesh(
        Classes(classifier, ends, took_us), Classes(said, ends, took_us), routes, by
    )


def saves_for_sure(saved_us: Floats) -> bool:
    """Whether rows save enough over one order for all."""
    return beyond_chance(saved_us, ERRORS)


def beyond_chance(saved_us: Floats, errors: float = 1.0) -> bool:
    """Whether rows save more on average than so many standard errors of that."""
    if len(saved_us) < 2:
        return False
    error = float(saved_us.std(ddof=1)) / math.sqrt(len(saved_us))
    return float(saved_us.mean()) > errors * error


def judged_by(profile: Profile) -> str:
    """How a mesh by foretelling was judged, in words."""
    return f"each of {profile.rows:,} rows was judged by what was foretold of it unseen"


def _routes(
    foretold: Foretold, profile: Profile, overheads: Overheads, single: Route
) -> tuple[Route, ...]:
    """The best single route, and with it, one after the other, the order that is expected to save
    most on the rows that it suits; chosen by what is foretold, not by what came of it."""
    costs = profile.drop_us, profile.pass_us
    orders = orders_by_rank(foretold.passes, profile.after, *costs)
    distinct, rows = np.unique(orders, axis=0, return_counts=True)
    most = np.argsort(-rows, kind="stable")[:MOST_CANDIDATES]
    candidates = [single, *(r for r in map(tuple, distinct[most].tolist()) if r != single)]
    us = expected_us(foretold.passes, candidates, *costs)
    least = us[:, 0]
    chosen = [0]
    more_us = overheads.route_us(profile.operators)
    needed_us = max(LEAST_SHARE * float(least.mean()), more_us)
    while len(chosen) < min(MOST_ROUTES, len(candidates)):
        saved_us = np.maximum(least[:, None] - us, 0.0).mean(axis=0)
        best = int(saved_us.argmax())
        if float(saved_us[best]) <= needed_us:
            break
        chosen.append(best)
        least = np.minimum(least, us[:, best])
    return tuple(candidates[number] for number in chosen)


def _timed_us(classifier: Classifier, profile: Profile, classes: int) -> float:
    columns = {name: one_piece(profile.sample.column(name)) for name in classifier.columns}
    return telling_us(classifier, columns, profile.rows, classes, TIMED_ROWS)
