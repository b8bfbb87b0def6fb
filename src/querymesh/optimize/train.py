"""Training: from a profile to a mesh (QM § 4, Fig. 3), with the checks that keep it honest.

    profile -> condense -> start -> search -> does it pay on tuples the search never saw? -> mesh

The last step guards against learning the sample by heart: the search sees two thirds of the
profiled tuples, and its mesh is accepted only if the other third says it is cheaper than the best
single route, overheads included, by more than the standard error of that saving. Otherwise the mesh
*is* the single route. One standard error is enough, because a split had to be unlikely as chance to
be proposed at all (`condense`), and had to pay beyond doubt to survive pruning (`problem`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np

from querymesh.classify.attributes import LeftOut, one_piece
from querymesh.classify.condense import TrainingSet, condense
from querymesh.classify.tree import Leaf, Tree, attributes_of, leaves, leaves_of
from querymesh.cost.mesh import LeafCost, Overheads, mesh_cost_us
from querymesh.errors import QueryMeshError, TrainingError, did_you_mean
from querymesh.optimize.best_route import EXACT_LIMIT, exact_route, greedy_route, written_route
from querymesh.optimize.iterative_improvement import iterative_improvement
from querymesh.optimize.mesh import LeafStats, Mesh, OperatorStats
from querymesh.optimize.problem import Problem, Solution
from querymesh.optimize.start import STARTS, Start
from querymesh.optimize.uncertain import uncertain_route
from querymesh.query.model import Query
from querymesh.stats.profile import Ints, Profile, Route, survivors

Search = Callable[[Problem, Start, np.random.Generator], Solution]

SEARCHES: dict[str, Search] = {"iterative-improvement": iterative_improvement}

POLICIES = ("mesh", "single")


@dataclass(frozen=True, slots=True)
class Training:
    """How to train. The defaults follow QM's Table 1, with a larger sample and training set.

    `sample_rows` tuples are profiled and condensed to at most `training_tuples`. `holdout` is the
    share kept back to judge the result. Orders that cost at most a `tolerance` (a share, such as
    0.05) more than the best are left to a lottery while the query runs (QM § 5.4); 0 leaves none.
    """

    sample_rows: int = 2000
    training_tuples: int = 24
    start: str = "route-driven"
    search: str = "iterative-improvement"
    holdout: float = 1 / 3
    tolerance: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sample_rows < 1:
            raise TrainingError(f"sample_rows must be at least 1, not {self.sample_rows}")
        if self.training_tuples < 1:
            raise TrainingError(f"training_tuples must be at least 1, not {self.training_tuples}")
        if not 0 <= self.holdout < 1:
            raise TrainingError(f"holdout is a share from 0 to below 1, not {self.holdout}")
        if not (0 <= self.tolerance < math.inf):
            raise TrainingError(
                f"tolerance is a share from 0 (no uncertain routes) upwards, not {self.tolerance}"
            )
        known_name("start", self.start, STARTS)
        known_name("search", self.search, SEARCHES)


def known_name(what: str, name: str, known: Collection[str]) -> None:
    """Refuse an unknown strategy, policy or engine, listing those there are."""
    if name not in known:
        raise QueryMeshError(f"unknown {what} {name!r}: {did_you_mean(name, known)}")


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
    if policy == "single":
        return _single_mesh(query, profile, best_single(profile), (), "policy single was asked for")
    if profile.operators < 2:
        return _single_mesh(
            query, profile, best_single(profile), (), "fewer than two operators have one order"
        )
    rng = np.random.default_rng(training.seed)
    seen, unseen = _split(profile.rows, training.holdout, rng)
    condensed = condense(profile.take(seen), training.training_tuples)
    problem = Problem(condensed, overheads)
    found = SEARCHES[training.search](problem, STARTS[training.start], rng)
    return _verdict(query, profile, profile.take(unseen), condensed, found, overheads)


def _split(rows: int, holdout: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    shuffled = rng.permutation(rows)
    kept_back = int(rows * holdout)
    return np.sort(shuffled[kept_back:]), np.sort(shuffled[:kept_back])


def _verdict(
    query: Query,
    profile: Profile,
    unseen: Profile,
    condensed: TrainingSet,
    found: Solution,
    overheads: Overheads,
) -> Mesh:
    """Accept what was found if it pays on unseen tuples; else fall back to the single route."""
    left_out = tuple(condensed.left_out)
    single = best_single(profile)
    if isinstance(found.tree, Leaf):
        why = "no split of the data costs less than the best single route"
        return _single_mesh(query, profile, single, left_out, why)
    saved = unseen.realized_us(single) - _costs(unseen, found.tree, found.routes, overheads)
    error = float(saved.std(ddof=1)) / math.sqrt(len(saved)) if len(saved) > 1 else 0.0
    if len(saved) and float(saved.mean()) <= error:
        why = (
            f"a mesh of {len(found.routes)} routes was found, but on {len(saved):,} tuples it had "
            "not seen its saving could be chance"
        )
        return _single_mesh(query, profile, single, left_out, why)
    mesh = describe(query, profile, found.tree, found.routes, single, left_out, overheads)
    if mesh.expected_us > mesh.single_us:
        why = "over the whole sample the best single route costs less"
        return _single_mesh(query, profile, single, left_out, why)
    return mesh


def best_single(profile: Profile) -> Route:
    """The best single order for all tuples: what an expert would write."""
    if profile.operators == 0:
        return ()
    costs = (profile.drop_us, profile.pass_us)
    if profile.operators > EXACT_LIMIT:
        return greedy_route(profile.outcomes, *costs, profile.after)
    everyone = np.zeros(profile.rows, dtype=np.int64)
    together = survivors(profile.outcomes, everyone, 1)[0]
    return exact_route(together, *costs, profile.after)[0]


def _costs(
    profile: Profile, tree: Tree, routes: tuple[Route, ...], overheads: Overheads
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What each tuple costs in the mesh, its tests and its share of the rusters included."""
    costs = np.full(profile.rows, 0.0)
    ends = list(leaves(tree))
    for (leaf, tests), rows in zip(ends, _reach(profile, tree), strict=True):
        costs[rows] = profile.realized_us(routes[leaf.label])[rows] + tests * overheads.node_us
    return costs + len(ends) * overheads.route_us(profile.operators)


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
