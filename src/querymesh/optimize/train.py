"""Training: from a profile to a mesh (QM § 4, Fig. 3), with the checks that keep it honest.

    profile -> condense -> start -> search -> does it pay on tuples the search never saw? -> mesh

The last step guards against learning the sample by heart: the search sees a part of the profiled
tuples, two thirds unless told, and its mesh is accepted only if the others say it is cheaper than
the best single route, overheads included, by more than the standard error of that saving. Otherwise
the mesh *is* the single route. One standard error is enough, because a split had to be unlikely as
chance to be proposed at all (`condense`), and had to pay beyond doubt to survive pruning
(`problem`). The same unseen tuples tell the sample's accuracy (`_accuracy`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from querymesh.classify.attributes import LeftOut, one_piece
from querymesh.classify.condense import condense
from querymesh.classify.tree import Leaf, Tree, attributes_of, leaves, leaves_of
from querymesh.cost.mesh import LeafCost, Overheads, mesh_cost_us
from querymesh.errors import TrainingError
from querymesh.optimize.best_route import ROUTE_SEARCHES, RouteSearch, Subset, auto, written_route
from querymesh.optimize.folds import JUDGES
from querymesh.optimize.mesh import LeafStats, Mesh, OperatorStats
from querymesh.optimize.problem import Problem, Solution
from querymesh.optimize.search import SEARCHES
from querymesh.optimize.shared_route import SharedRoutes
from querymesh.optimize.start import STARTS, Start
from querymesh.optimize.training import Training, chosen, known_name, name_of
from querymesh.optimize.uncertain import uncertain_route
from querymesh.query.model import Query
from querymesh.stats.profile import Floats, Ints, Profile, Route

__all__ = [
    "POLICIES",
    "SEARCHES",
    "STARTS",
    "Training",
    "best_single",
    "describe",
    "find",
    "known_name",
    "make_problem",
    "train_mesh",
    "untrained_mesh",
]

POLICIES = ("mesh", "single")


def train_mesh(
    query: Query,
    profile: Profile,
    overheads: Overheads,
    training: Training | None = None,
    policy: str = "mesh",
) -> Mesh:
    """The mesh of a query for the profiled tuples; with policy "single" its best single route."""
    training = training or Training()
    known_name("policy", policy, POLICIES)
    mesh = _best_mesh(query, profile, overheads, training, policy)
    mesh = replace(mesh, window=training.window, least_ruster=training.least_ruster)
    return _leave_open(mesh, profile, training.tolerance)


def _leave_open(mesh: Mesh, profile: Profile, tolerance: float) -> Mesh:
    """The mesh with uncertain routes where orders cost about the same (QM § 5.4)."""
    if tolerance == 0:
        return mesh
    uncertain = tuple(
        uncertain_route(route, profile.take(rows) if len(rows) else profile, tolerance)
        for route, rows in zip(mesh.leaf_routes, _reach(profile, mesh.tree), strict=True)
    )
    return replace(mesh, uncertain=uncertain)


def _best_mesh(
    query: Query, profile: Profile, overheads: Overheads, training: Training, policy: str
) -> Mesh:
    if profile.rows == 0:
        raise TrainingError(
            "the sample is empty: there is nothing to learn from. Give a sample with rows, "
            "or run without training"
        )
    single = best_single(profile, _route_search(profile, training))
    if policy == "single":
        return _single_mesh(query, profile, single, (), "policy single was asked for")
    if profile.operators < 2:
        return _single_mesh(query, profile, single, (), "fewer than two operators have one order")
    found, judged = _search_and_judge(profile, overheads, training, single)
    mesh = _verdict(query, profile, single, found, judged, overheads)
    asked = training.accuracy is not None or training.judge != "holdout"
    accuracy = judged.accuracy if asked else math.nan
    return replace(mesh, found_by=found.found_by(training), accuracy=accuracy)


@dataclass(frozen=True)
class _Found:
    """What one search found, and in what."""

    solution: Solution
    problem: Problem

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return tuple(self.problem.training.left_out)

    def found_by(self, training: Training) -> str:
        problem = self.problem
        return (
            f"{name_of(training.search)} from a {name_of(training.start)} start costed "
            f"{problem.evaluated:,} partitions of {problem.training.size} training tuples as "
            f"{problem.meshes_costed:,} different meshes, and stopped because "
            f"{self.solution.stopped or 'it was done'}"
        )


@dataclass(frozen=True)
class _Judged:
    """What the mesh saves over the single route on each unseen tuple; the sample's accuracy."""

    saved_us: Floats
    accuracy: float


def _search(
    profile: Profile, overheads: Overheads, training: Training, rng: np.random.Generator
) -> _Found:
    problem = make_problem(profile, overheads, training)
    return _Found(find(problem, training, rng), problem)


def make_problem(profile: Profile, overheads: Overheads, training: Training) -> Problem:
    """The search problem of a profile, with the condensing and the route search asked for."""
    condensed = condense(profile, training.training_tuples)
    return Problem(condensed, overheads, _route_search(profile, training))


def _route_search(profile: Profile, training: Training) -> RouteSearch:
    """The route search asked for; queries that share one pass have one of their own."""
    asked = chosen("route search", training.route_search, ROUTE_SEARCHES)
    return SharedRoutes(profile.serves) if profile.serves else asked


def find(
    problem: Problem, training: Training, rng: np.random.Generator, start: Start | None = None
) -> Solution:
    """What the search asked for finds, from the start asked for or another."""
    search = chosen("search", training.search, SEARCHES)
    return search(problem, start or chosen("start", training.start, STARTS), rng, training.stop)


def _search_and_judge(
    profile: Profile, overheads: Overheads, training: Training, single: Route
) -> tuple[_Found, _Judged]:
    """Search in each fold and judge by its unseen tuples; several folds are only for judging."""
    rng = np.random.default_rng(training.seed)
    folds = chosen("judge", training.judge, JUDGES)(
        profile.rows, training.holdout, training.folds, rng
    )
    found: _Found | None = None
    saved, times, accuracies = np.zeros(profile.rows), np.zeros(profile.rows), []
    for fold in folds:
        found = _search(profile.take(fold.seen), overheads, training, rng)
        if len(fold.unseen) == 0:
            continue
        unseen = profile.take(fold.unseen)
        solution = found.solution
        costs = _costs(unseen, solution.tree, solution.routes, overheads)
        saved[fold.unseen] += unseen.realized_us(single) - costs
        times[fold.unseen] += 1
        accuracies.append(_accuracy(solution.cost_us, float(costs.mean())))
    if found is None or len(folds) > 1:
        found = _search(profile, overheads, training, rng)
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
        return _single_mesh(query, profile, single, left_out, why)
    saved = judged.saved_us
    error = float(saved.std(ddof=1)) / math.sqrt(len(saved)) if len(saved) > 1 else 0.0
    if len(saved) and float(saved.mean()) <= error:
        why = (
            f"a mesh of {len(routes)} routes was found, but on {len(saved):,} tuples it had "
            "not seen its saving could be chance"
        )
        return _single_mesh(query, profile, single, left_out, why)
    mesh = describe(query, profile, tree, routes, single, left_out, overheads)
    if mesh.expected_us > mesh.single_us:
        why = "over the whole sample the best single route costs less"
        return _single_mesh(query, profile, single, left_out, why)
    return mesh


def best_single(profile: Profile, route_search: RouteSearch = auto) -> Route:
    """The best single order for all tuples: what an expert would write."""
    if profile.operators == 0:
        return ()
    if profile.serves:
        route_search = SharedRoutes(profile.serves)
    return route_search(Subset(profile.outcomes, profile.drop_us, profile.pass_us, profile.after))


def _costs(profile: Profile, tree: Tree, routes: tuple[Route, ...], overheads: Overheads) -> Floats:
    """What each tuple costs in the mesh, its tests and its share of the rusters included."""
    costs = np.full(profile.rows, 0.0)
    ends = list(leaves(tree))
    for (leaf, tests), rows in zip(ends, _reach(profile, tree), strict=True):
        costs[rows] = profile.realized_us(routes[leaf.label])[rows] + tests * overheads.node_us
    return costs + (len(ends) > 1) * len(ends) * overheads.route_us(profile.operators)


def _reach(profile: Profile, tree: Tree) -> list[Ints]:
    columns = {name: one_piece(profile.sample.column(name)) for name in attributes_of(tree)}
    return leaves_of(tree, columns.__getitem__, profile.rows)


def describe(
    query: Query,
    profile: Profile,
    tree: Tree,
    routes: tuple[Route, ...],
    single: Route,
    left_out: tuple[LeftOut, ...],
    overheads: Overheads,
    why: str | None = None,
) -> Mesh:
    """A mesh with its figures over the profiled tuples."""
    single_us = profile.realized_us(single)
    stats, costs = [], []
    for (leaf, tests), rows in zip(leaves(tree), _reach(profile, tree), strict=True):
        share = len(rows) / profile.rows
        own = float(profile.realized_us(routes[leaf.label])[rows].mean()) if len(rows) else 0.0
        other = float(single_us[rows].mean()) if len(rows) else 0.0
        stats.append(LeafStats(share, own, other))
        costs.append(LeafCost(share, own, tests))
    return Mesh(
        query=query,
        operators=tuple(
            OperatorStats(name, after, float(cost), float(rate))
            for name, after, cost, rate in zip(
                profile.names, profile.after, profile.cost_us, profile.pass_rates(), strict=True
            )
        ),
        tree=tree,
        routes=routes,
        leaves=tuple(stats),
        single=single,
        expected_us=mesh_cost_us(costs, profile.operators, overheads),
        single_us=float(single_us.mean()),
        bound_us=float(profile.clairvoyant_us().mean()),
        sample_rows=profile.rows,
        left_out=left_out,
        why=why or f"{len(stats)} kinds of tuples are worth telling apart",
    )


def _single_mesh(
    query: Query, profile: Profile, route: Route, left_out: tuple[LeftOut, ...], why: str
) -> Mesh:
    free = Overheads(0.0, 0.0, 1)
    return describe(query, profile, Leaf(0), (route,), route, left_out, free, why)


def untrained_mesh(query: Query, names: tuple[str, ...], after: tuple[frozenset[int], ...]) -> Mesh:
    """The order as written, for a stream of which nothing is known yet (plan staging, QM § 4.2)."""
    route = written_route(after)
    operators = tuple(
        OperatorStats(name, before, float("nan"), float("nan"))
        for name, before in zip(names, after, strict=True)
    )
    nothing = float("nan")
    leaf = LeafStats(1.0, nothing, nothing)
    why = (
        "nothing is known yet: the order as written, until a sample is profiled"
        if len(names) > 1
        else "fewer than two operators have one order"
    )
    return Mesh(
        query, operators, Leaf(0), (route,), (leaf,), route,
        nothing, nothing, nothing, 0, (), why,
    )  # fmt: skip
