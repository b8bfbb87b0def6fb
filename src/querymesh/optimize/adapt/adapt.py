"""Adapting a mesh to data that changed (QM § 5.3): is another mesh cheaper, and is that no chance?

Two questions, of growing price, both on a recent profile and both answered by the mean saving of a
tuple with its standard error:

`consider`     would the running classifier with other routes do, or one order for all? Fitted on
               one half of the tuples and judged on the other, and the other way round.
`better_mesh`  a search, warm-started from the running mesh. What it finds is judged on tuples it
               never saw, against the mesh that runs, and must win by `doubt` standard errors and by
               `least_gain`. So a stable stream keeps its mesh.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from querymesh.arrays import Floats
from querymesh.classify.attributes import LeftOut
from querymesh.classify.tree import Classes, Leaf, Split, Tree, relabelled
from querymesh.cost.route_time import Overheads
from querymesh.deadline import Deadline
from querymesh.errors import OptionError
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.routes.subset import RouteSearch
from querymesh.optimize.search.start import from_tree
from querymesh.optimize.strategy import name_of
from querymesh.optimize.train.describe import (
    best_single,
    costs_us,
    describe,
    leave_open,
    reach,
    route_search_for,
)
from querymesh.optimize.train.fold import folded
from querymesh.optimize.train.folds import holdout
from querymesh.optimize.train.predicted_mesh import (
    PredictedMesh,
    is_worth_foretelling,
    predicted_mesh,
)
from querymesh.optimize.train.train import find, found_by, make_problem
from querymesh.optimize.train.training import Training
from querymesh.options import check_integer
from querymesh.stats.profile import Profile, Route

Candidate = tuple[Tree, tuple[Route, ...]]
"""A classifier and the routes its labels point to."""

LEAST_ROWS = 90
"""Fewer profiled tuples than this, a third of them held back, judge no mesh."""


@dataclass(frozen=True, slots=True)
class Adaptation:
    """How the mesh of a stream adapts to data that changes.

    Parameters
    ----------
    budget
        The share of the query's evaluations, and of their cost, that profiling may add. Defaults
        to 0.01.
    half_life_rows
        Rows after which what was counted of pass rates weighs half. Defaults to 2,000.
    profile_rows
        The most recent profiled rows that are kept to learn from and to judge by. Defaults to
        2,000.
    least_gain
        The share of its cost that another mesh must save to replace the running one. Defaults to
        0.03.
    doubt
        Standard errors by which that saving must exceed 0. Defaults to 3.
    """

    budget: float = 0.01
    half_life_rows: int = 2000
    profile_rows: int = 2000
    least_gain: float = 0.03
    doubt: float = 3.0

    def __post_init__(self) -> None:
        if not 0 < self.budget <= 1:
            raise OptionError(
                f"budget is a share of the evaluations, above 0 and at most 1, not {self.budget}: "
                "adapt=False profiles nothing"
            )
        check_integer("half_life_rows", self.half_life_rows, 1)
        check_integer("profile_rows", self.profile_rows, LEAST_ROWS, " to judge a mesh by")
        if not 0 <= self.least_gain < 1:
            raise OptionError(
                f"least_gain is a share of the cost, from 0 to below 1, not {self.least_gain}"
            )
        if self.doubt < 0:
            raise OptionError(f"doubt is in standard errors, not below 0: {self.doubt}")


@dataclass(frozen=True, slots=True)
class MeshSaving:
    """What the running mesh costs a tuple, and what another would save, on `rows` tuples.

    `error_us` is the standard error of the saving.
    """

    running_us: float
    saving_us: float
    error_us: float
    rows: int

    def pays(self, doubt: float, least_gain: float) -> bool:
        """Whether the saving is beyond doubt, and large enough to care."""
        if self.rows < 2:
            return False
        return self.saving_us > max(doubt * self.error_us, least_gain * self.running_us)

    @property
    def share(self) -> float:
        """The saving as a share of the running cost."""
        return self.saving_us / self.running_us if self.running_us > 0 else 0.0


@dataclass(frozen=True)
class FoundMesh:
    """A mesh that was searched for, compared with the one that runs."""

    mesh: Mesh
    saving: MeshSaving


def consider(
    mesh: Mesh,
    profile: Profile,
    overheads: Overheads,
    training: Training,
    *,
    one_route: bool = False,
) -> MeshSaving:
    """What the running mesh costs against a cheap challenger, over all profiled tuples; with
    `one_route` that is another order for all of them."""
    route_search = route_search_for(profile, training)
    running = costs_us(profile, mesh.tree, mesh.routes, overheads)
    challenger = np.empty(profile.rows)
    halves = [np.arange(profile.rows)[k::2] for k in (0, 1)]
    for judged, fitted in (halves, halves[::-1]):
        seen, unseen = profile.take(fitted), profile.take(judged)
        tree, routes = _cheapest(_challengers(mesh, seen, one_route, route_search), seen, overheads)
        challenger[judged] = costs_us(unseen, tree, routes, overheads)
    return _compare(running, challenger)


def better_mesh(
    mesh: Mesh,
    profile: Profile,
    overheads: Overheads,
    training: Training,
    *,
    one_route: bool = False,
) -> FoundMesh:
    """The best mesh found from the running one; `saving.pays` tells whether to switch.

    It takes no longer than training may (`Training.seconds`).
    """
    deadline = Deadline(training.seconds)
    rng = np.random.default_rng((training.seed, profile.rows))
    (fold,) = holdout(profile.rows, training.holdout or 1 / 3, training.folds, rng)
    seen, unseen = profile.take(fold.seen), profile.take(fold.unseen)
    route_search = route_search_for(profile, training)
    candidates = [
        (each, costs_us(seen, *each, overheads))
        for each in _challengers(mesh, seen, one_route, route_search)
    ]
    left_out: tuple[LeftOut, ...] = mesh.left_out
    search = ""
    if not one_route:
        predicted = _predicted(mesh, seen, overheads, training, route_search)
        if predicted is not None:
            foretold = predicted.tree, predicted.routes
            candidates.append((foretold, predicted.row_us(seen, overheads)))
    if not one_route and training.outcome_learner is None:
        problem = make_problem(seen, overheads, training, deadline)
        left_out = tuple(problem.training.left_out)
        solution = find(problem, training, rng, from_tree(mesh.tree))
        searched = solution.tree, solution.routes
        candidates.append((searched, costs_us(seen, *searched, overheads)))
        method = f"{name_of(training.search)} warm-started from the running mesh"
        search = found_by(method, problem, solution)
    (tree, routes), _ = min(candidates, key=lambda each: float(each[1].sum()))
    saving = _compare(
        costs_us(unseen, mesh.tree, mesh.routes, overheads),
        costs_us(unseen, tree, routes, overheads),
    )
    tree, routes = folded(profile, tree, routes, fold.unseen, overheads)
    described = describe(
        mesh.query, profile, tree, routes, best_single(profile, route_search), left_out, overheads
    )
    described = replace(
        described,
        window=mesh.window,
        least_ruster=mesh.least_ruster,
        classify_every=mesh.classify_every,
    )
    described = described.found(search)
    return FoundMesh(leave_open(described, profile, training.tolerance), saving)


def _predicted(
    mesh: Mesh, seen: Profile, overheads: Overheads, training: Training, route_search: RouteSearch
) -> PredictedMesh | None:
    """A mesh by what is foretold, where that was asked for or might pay."""
    single, learner = best_single(seen, route_search), training.outcome_learner
    wished = training.predict and training.learner is None
    if learner is None and not (wished and is_worth_foretelling(mesh.query, seen, single)):
        return None
    return predicted_mesh(seen, overheads, single, training.seed, learner)


def _cheapest(candidates: Iterable[Candidate], profile: Profile, overheads: Overheads) -> Candidate:
    def total_us(candidate: Candidate) -> float:
        tree, routes = candidate
        return float(costs_us(profile, tree, routes, overheads).sum())

    return min(candidates, key=total_us)


def _challengers(
    mesh: Mesh, profile: Profile, one_route: bool, route_search: RouteSearch
) -> Iterator[Candidate]:
    """The best single order; and the running classifier with the best route of each leaf."""
    yield Leaf(0), (best_single(profile, route_search),)
    if one_route or isinstance(mesh.tree, Leaf):
        return
    ends = reach(profile, mesh.tree)
    of_leaf = [
        best_single(profile.take(rows), route_search) if len(rows) else route
        for rows, route in zip(ends, mesh.leaf_routes, strict=True)
    ]
    routes = tuple(dict.fromkeys(of_leaf))
    labels = [routes.index(route) for route in of_leaf]
    yield _merged(relabelled(mesh.tree, labels)), routes


def _merged(tree: Tree) -> Tree:
    """A test whose answers lead to the same route is not asked."""
    if isinstance(tree, Leaf):
        return tree
    if isinstance(tree, Classes):
        return tree.ends[0] if len(set(tree.ends)) == 1 else tree
    yes, no = _merged(tree.yes), _merged(tree.no)
    return yes if yes == no else Split(tree.test, yes, no)


def _compare(running: Floats, challenger: Floats) -> MeshSaving:
    saved = running - challenger
    error = float(saved.std(ddof=1)) / math.sqrt(len(saved)) if len(saved) > 1 else math.inf
    return MeshSaving(float(running.mean()), float(saved.mean()), error, len(saved))
