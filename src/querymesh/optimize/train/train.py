"""Training: from a profile to a mesh (QM § 4, Fig. 3), with the checks that keep it honest.

    profile -> condense -> start -> search -> does it pay on tuples the search never saw?
            -> fold what does not -> mesh

That question guards against learning the sample by heart: the search sees a part of the profiled
tuples, two thirds unless told, and its mesh is accepted only if the others say it is cheaper than
the best single route, overheads included, by more than the standard error of that saving. Otherwise
the mesh *is* the single route. One standard error is enough, because a split had to be unlikely as
chance to be proposed at all (`condense`), and had to pay beyond doubt to survive pruning
(`problem`). The same unseen tuples tell the sample's accuracy (`_accuracy`), and which parts of an
accepted mesh to fold (`fold`): it is accepted before that, so they judge nothing they have chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.classify.attributes import LeftOut
from querymesh.classify.condense import condense
from querymesh.classify.tree import Leaf, attributes_of, leaves
from querymesh.cost.route_time import Overheads
from querymesh.deadline import NEVER, Deadline
from querymesh.errors import TrainingError
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.search.problem import Problem, Solution
from querymesh.optimize.search.searches import SEARCHES
from querymesh.optimize.search.start import STARTS, Start, checked
from querymesh.optimize.strategy import chosen, name_of
from querymesh.optimize.train.describe import (
    best_single,
    costs_us,
    describe,
    leave_open,
    route_search_for,
    single_mesh,
)
from querymesh.optimize.train.fold import folded
from querymesh.optimize.train.folds import JUDGES
from querymesh.optimize.train.predicted_mesh import (
    FORETELLING_S,
    beyond_chance,
    is_worth_foretelling,
    judged_by,
    predicted_mesh,
    saves_for_sure,
)
from querymesh.optimize.train.training import Training
from querymesh.query.model import Query
from querymesh.stats.profile import Profile, Route

NO_ROWS: Ints = np.empty(0, dtype=np.int64)


def train_mesh(
    query: Query,
    profile: Profile,
    overheads: Overheads,
    training: Training | None = None,
    *,
    one_route: bool = False,
) -> Mesh:
    """The mesh of a query learned from its profile; with `one_route` the best single route."""
    return train_judged(query, profile, overheads, training, one_route=one_route).mesh


@dataclass(frozen=True)
class Trained:
    """A mesh, and whether a better one is in doubt: it saves on unseen tuples, but no more than
    chance could. A larger sample would tell. `unseen` are the rows that no search has seen, by
    which two meshes can be compared; all of them where there was nothing to search."""

    mesh: Mesh
    in_doubt: bool
    unseen: Ints = field(default_factory=lambda: NO_ROWS)


def train_judged(
    query: Query,
    profile: Profile,
    overheads: Overheads,
    training: Training | None = None,
    *,
    one_route: bool = False,
    predict: bool = True,
) -> Trained:
    """As `train_mesh`, with the judge's doubt. Without `predict` no outcomes are foretold beside a
    tree, whatever `training` says."""
    training = training or Training()
    trained = _best_mesh(query, profile, overheads, training, one_route)
    if predict and not nothing_to_search(profile, one_route):
        trained = _or_predicted(trained, query, profile, overheads, training)
    mesh = replace(
        trained.mesh,
        window=training.window,
        least_ruster=training.least_ruster,
        classify_every=training.classify_every,
    )
    return replace(trained, mesh=leave_open(mesh, profile, training.tolerance))


def _best_mesh(
    query: Query, profile: Profile, overheads: Overheads, training: Training, one_route: bool
) -> Trained:
    if profile.rows == 0:
        raise TrainingError(
            "the sample is empty: there is nothing to learn from. Give a sample with rows, "
            "or run without training"
        )
    single = best_single(profile, route_search_for(profile, training))
    why = nothing_to_search(profile, one_route)
    if why or training.outcome_learner is not None:
        why = why or "no outcome is foretold well enough for another order to save beyond chance"
        return Trained(single_mesh(query, profile, single, (), why), False)
    found, judged = _search_and_judge(profile, overheads, training, single)
    mesh = _verdict(query, profile, single, found, judged, overheads)
    asked = training.accuracy is not None or training.judge not in (None, "holdout")
    accuracy = judged.accuracy if asked and not math.isnan(judged.accuracy) else None
    method = f"{name_of(training.search)} from {name_of(training.start)}"
    text = found_by(method, found.problem, found.solution)
    searched = sum(1 for _ in leaves(found.solution.tree))
    if 1 < len(mesh.leaves) < searched:
        text += f"; of its {searched} leaves unseen tuples left {len(mesh.leaves)}"
    in_doubt = not isinstance(found.solution.tree, Leaf) and 0 < judged.mean_us <= judged.error_us
    return Trained(mesh.found(text, accuracy), in_doubt, found.unseen)


def _or_predicted(
    trained: Trained, query: Query, profile: Profile, overheads: Overheads, training: Training
) -> Trained:
    """What was trained, or the mesh by what is foretold of rows, where that is cheaper beyond
    chance: than one order for all, and than what was trained on rows that its search had not seen.
    """
    mesh, learner = trained.mesh, training.outcome_learner
    in_time = training.seconds is None or training.seconds >= FORETELLING_S
    wished = training.predict and training.learner is None and in_time
    if learner is None and not (wished and is_worth_foretelling(query, profile, mesh.single)):
        return trained
    found = predicted_mesh(profile, overheads, mesh.single, training.seed, learner)
    if found is None:
        return trained
    us = found.row_us(profile, overheads)
    saved_us = profile.realized_us(mesh.single) - us
    if not saves_for_sure(saved_us):
        return replace(trained, in_doubt=trained.in_doubt or float(saved_us.mean()) > 0)
    if not mesh.is_single:
        judges = trained.unseen if len(trained.unseen) else np.arange(profile.rows)
        trained_us = costs_us(profile, mesh.tree, mesh.routes, overheads)
        if not beyond_chance((trained_us - us)[judges]):
            return trained
    left_out = tuple(each for each in mesh.left_out if each.name not in attributes_of(found.tree))
    described = describe(
        query, profile, found.told, found.routes, mesh.single, left_out, overheads, found.by
    )
    described = replace(described, tree=found.tree).found(judged_by(profile), mesh.accuracy)
    return replace(trained, mesh=described, in_doubt=False)


def nothing_to_search(profile: Profile, one_route: bool) -> str:
    """Why there is only one route to choose; empty where there is something to search."""
    if one_route:
        return "policy single was asked for"
    return "fewer than two operators have one order" if profile.operators < 2 else ""


@dataclass(frozen=True)
class _Found:
    """The solution of one search, the problem that it solves, and the rows of the whole profile
    that it did not see."""

    solution: Solution
    problem: Problem
    unseen: Ints

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return tuple(self.problem.training.left_out)


def found_by(method: str, problem: Problem, solution: Solution) -> str:
    """A search in one sentence: its method, what it looked at, and why it ended."""
    return (
        f"{method}, {_counted(problem.evaluated, 'partition')} of "
        f"{_counted(problem.training.size, 'training tuple')} as "
        f"{_counted(problem.meshes_costed, 'mesh', 'meshes')}; {solution.stopped or 'it was done'}"
    )


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


@dataclass(frozen=True)
class _Judged:
    """What the mesh saves over the single route on each unseen tuple, and the sample's accuracy."""

    saved_us: Floats
    accuracy: float

    @property
    def mean_us(self) -> float:
        return float(self.saved_us.mean()) if len(self.saved_us) else math.nan

    @property
    def error_us(self) -> float:
        """The standard error of the mean."""
        rows = len(self.saved_us)
        return float(self.saved_us.std(ddof=1)) / math.sqrt(rows) if rows > 1 else 0.0


def _search(
    profile: Profile,
    overheads: Overheads,
    training: Training,
    rng: np.random.Generator,
    deadline: Deadline,
    unseen: Ints = NO_ROWS,
) -> _Found:
    problem = make_problem(profile, overheads, training, deadline)
    return _Found(find(problem, training, rng), problem, unseen)


def make_problem(
    profile: Profile, overheads: Overheads, training: Training, deadline: Deadline = NEVER
) -> Problem:
    """The search problem of a profile, with the condensing and the route search asked for."""
    condensed = condense(profile, training.training_tuples, deadline=deadline)
    route_search = route_search_for(profile, training)
    return Problem(condensed, overheads, route_search, deadline, training.label_learner)


def find(
    problem: Problem, training: Training, rng: np.random.Generator, start: Start | None = None
) -> Solution:
    """What `training.search` finds from `start`, or from `training.start` if none is given.

    Search and start may be a caller's own: what they return is checked here.
    """
    search = chosen("search", training.search, SEARCHES)
    begin = checked(start or chosen("start", training.start, STARTS))
    found: object = search(problem, begin, rng, training.stop)
    if not isinstance(found, Solution):
        raise TrainingError(
            f"search {name_of(search)} returned {found!r}: a search returns the best of the "
            "solutions that `problem.solve` gave it"
        )
    return found


def _search_and_judge(
    profile: Profile, overheads: Overheads, training: Training, single: Route
) -> tuple[_Found, _Judged]:
    """Search in each fold and judge by its unseen tuples; several folds are only for judging.

    Every search has an equal part of the time that is left.
    """
    deadline = Deadline(training.seconds)
    rng = np.random.default_rng(training.seed)
    folds = chosen("judge", training.judged_by, JUDGES)(
        profile.rows, training.holdout, training.folds, rng
    )
    found: _Found | None = None
    saved, times, accuracies = np.zeros(profile.rows), np.zeros(profile.rows), []
    searches = len(folds) + (len(folds) != 1)
    for number, fold in enumerate(folds):
        seen = profile.take(fold.seen)
        part = deadline.part(searches - number)
        found = _search(seen, overheads, training, rng, part, fold.unseen)
        if len(fold.unseen) == 0:
            continue
        unseen = profile.take(fold.unseen)
        solution = found.solution
        costs = costs_us(unseen, solution.tree, solution.routes, overheads)
        saved[fold.unseen] += unseen.realized_us(single) - costs
        times[fold.unseen] += 1
        accuracies.append(_accuracy(solution.cost_us, float(costs.mean())))
    if found is None or len(folds) > 1:
        found = _search(profile, overheads, training, rng, deadline)
    judged = times > 0
    accuracy = float(np.mean(accuracies)) if accuracies else math.nan
    return found, _Judged(saved[judged] / times[judged], accuracy)


def _accuracy(predicted_us: float, realized_us: float) -> float:
    """How well the seen tuples foretold the unseen: 1 - |predicted - realized| / realized cost of
    the mesh learned from the seen, 0 at least. Over several folds it is the mean."""
    if realized_us <= 0:
        return 1.0 if predicted_us <= 0 else 0.0
    return max(0.0, 1.0 - abs(predicted_us - realized_us) / realized_us)


def _verdict(
    query: Query,
    profile: Profile,
    single: Route,
    found: _Found,
    judged: _Judged,
    overheads: Overheads,
) -> Mesh:
    """Accept what was found if it pays on unseen tuples; else fall back to the single route."""
    left_out, tree, routes = found.left_out, found.solution.tree, found.solution.routes
    if isinstance(tree, Leaf):
        why = "no split of the data costs less than the best single route"
        return single_mesh(query, profile, single, left_out, why)
    if judged.mean_us <= judged.error_us:
        why = (
            f"a mesh of {len(routes)} routes was found, but on {len(judged.saved_us):,} tuples it "
            "had not seen its saving could be chance"
        )
        return single_mesh(query, profile, single, left_out, why)
    tree, routes = folded(profile, tree, routes, found.unseen, overheads)
    mesh = describe(query, profile, tree, routes, single, left_out, overheads)
    if mesh.expected_us > mesh.single_us:
        why = "over the whole sample the best single route costs less"
        return single_mesh(query, profile, single, left_out, why)
    return mesh
