"""The engines beside plain Spark, each with its placement, its best single order, and a mesh.

native
    Everything in Catalyst, every kind of tuple in its own order; nothing crosses.
fabric
    Everything in Python; every row crosses.
sandwich
    Each operator where that is cheapest: Catalyst before, Python, Catalyst after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from querymesh.arrays import Floats
from querymesh.classify.tree import Leaf, Split, Tree, paths_us, relabelled
from querymesh.cost.route_time import Overheads
from querymesh.mesh.mesh import LeafStats, Mesh
from querymesh.mesh.stages import Parts, Stage, Stages
from querymesh.optimize.placement.costs import (
    Costs,
    Placement,
    in_python,
    least_us,
    left_by,
    placement_of,
    staged_us,
)
from querymesh.optimize.placement.leaf_stages import (
    LeafParts,
    could_be_chance,
    crossing_us,
    leaves_us,
    with_leaf_stages,
)
from querymesh.optimize.placement.place import best_parts, best_placement, staged
from querymesh.optimize.train.describe import describe, reach, route_search_for
from querymesh.optimize.train.folds import holdout
from querymesh.optimize.train.train import train_judged
from querymesh.optimize.train.training import Training
from querymesh.query.model import Query
from querymesh.stats.profile import Profile


def _native(profile: Profile, costs: Costs) -> Placement | str:
    if costs.python_only:
        return f"{profile.names[min(costs.python_only) - 1]} runs in Python only"
    return (Stage.BEFORE,) * costs.operators


def _fabric(profile: Profile, costs: Costs) -> Placement | str:
    if costs.catalyst_only:
        return f"{profile.names[min(costs.catalyst_only) - 1]} runs in Catalyst only"
    return (Stage.PYTHON,) * costs.operators


def _sandwich(profile: Profile, costs: Costs) -> Placement | str:
    placement = best_placement(profile, costs)
    if placement is None:
        return "a condition that runs in Catalyst only must come between two Python functions"
    if len(set(placement)) == 1:
        where = "Python" if Stage.PYTHON in placement else "Catalyst"
        return f"every operator is best off in {where}"
    return placement


ENGINES: Mapping[str, Callable[[Profile, Costs], Placement | str]] = {
    "native": _native,
    "fabric": _fabric,
    "sandwich": _sandwich,
}
"""By name, where an engine runs each operator; or, as text, why it does not run this filter."""


@dataclass(frozen=True)
class StagedRoutes:
    """A tree with the route of each leaf in parts, and the single order that it is compared with.

    `placement` is that of the single order. `overheads` are those of one test and one leaf, with
    their stages counted in. `trained` is the mesh that the tree is of, if one was trained. Where
    outcomes are foretold, `tree` is what was told of each sampled row unseen, and `asked` the one
    that will be asked about others.
    """

    placement: Placement
    single: Parts
    tree: Tree
    leaf_parts: LeafParts
    overheads: Overheads
    trained: Mesh | None = None
    asked: Tree | None = None

    @property
    def in_python(self) -> frozenset[int]:
        """The operators that run in Python in one leaf at least."""
        return frozenset(k for parts in self.leaf_parts for k in parts.python)

    def row_us(self, profile: Profile, costs: Costs) -> Floats:
        """What each tuple costs, tests and rusters included (QM eq. 2)."""
        us = leaves_us(profile, costs, self.tree, self.leaf_parts)
        if isinstance(self.tree, Leaf):
            return us
        paths = paths_us(self.tree, self.overheads.node_us)
        for (_, path_us), rows in zip(paths, reach(profile, self.tree), strict=True):
            us[rows] += path_us
        return us + (len(self.leaf_parts) - 1) * self.overheads.route_us(profile.operators)

    def single_us(self, profile: Profile, costs: Costs) -> Floats:
        """What each tuple costs on the single order."""
        crossing = costs.crossing_us(in_python(self.placement))
        return staged_us(profile, costs, self.single, crossing)

    def dearest_us(self, costs: Costs) -> float:
        """What a tuple costs, at the most, that passes everything at the dearer of its costs."""
        crossing = crossing_us(costs, self.leaf_parts, frozenset())
        routes = (costs.by_outcome(placement_of(parts)) for parts in self.leaf_parts)
        return crossing + max(float(np.maximum(drop, keep).sum()) for drop, keep in routes)

    def mesh(self, query: Query, profile: Profile, costs: Costs) -> Mesh:
        """The mesh with its stages; its figures count crossings in."""
        leaf_routes = [parts.route for parts in self.leaf_parts]
        routes = tuple(dict.fromkeys(leaf_routes))
        labels = [routes.index(route) for route in leaf_routes]
        tree = relabelled(self.tree, labels)
        drop_us, pass_us = costs.by_outcome(self.placement)
        placed = replace(profile, drop_us=drop_us, pass_us=pass_us)
        single_us, row_us = self.single_us(profile, costs), self.row_us(profile, costs)
        route_us = leaves_us(profile, costs, self.tree, self.leaf_parts)
        trained = self.trained
        mesh = describe(
            query,
            placed,
            tree,
            routes,
            self.single.route,
            () if trained is None else trained.left_out,
            self.overheads,
            None if trained is None or isinstance(tree, Split) else trained.why,
        )
        stats = tuple(
            LeafStats(len(rows) / profile.rows, _mean(route_us[rows]), _mean(single_us[rows]))
            for rows in reach(profile, tree)
        )
        return replace(
            mesh,
            tree=tree if self.asked is None else relabelled(self.asked, labels),
            leaves=stats,
            expected_us=float(row_us.mean()),
            single_us=float(single_us.mean()),
            bound_us=float(least_us(profile, costs).mean()),
            trained_on=mesh.trained_on if trained is None else trained.trained_on,
            window=mesh.window if trained is None else trained.window,
            least_ruster=0 if trained is None else trained.least_ruster,
            classify_every=1 if trained is None else trained.classify_every,
            stages=Stages(tuple(parts.split for parts in self.leaf_parts)),
        )


def _mean(us: Floats) -> float:
    return float(us.mean()) if len(us) else 0.0


def single_order(
    placement: Placement, profile: Profile, costs: Costs, overheads: Overheads, training: Training
) -> StagedRoutes:
    """All tuples on the best single order of a placement."""
    parts = best_parts(profile, costs, placement, route_search_for(profile, training))
    scaled = _with_stages(overheads, placement, profile)
    return StagedRoutes(placement, parts, Leaf(0), (parts,), scaled)


def with_mesh(
    single: StagedRoutes, query: Query, profile: Profile, costs: Costs, training: Training
) -> tuple[StagedRoutes, bool]:
    """The best mesh of a tree that was found, with stages of their own for its leaves where that
    pays, or the single order; and whether a better mesh is in doubt."""
    learned_from = with_crossing(profile, costs, single.placement)
    certain = replace(training, tolerance=0.0)  # what is left open could cross from stage to stage
    found = train_judged(query, learned_from, single.overheads, certain, predict=False)
    mesh = found.mesh
    if isinstance(mesh.tree, Leaf):
        return replace(single, trained=mesh), found.in_doubt
    rng = np.random.default_rng(training.seed)  # the tuples that training kept back, too
    (fold,) = holdout(profile.rows, training.holdout, training.folds, rng)
    leaf_parts = tuple(
        best_parts(profile.take(rows), costs, single.placement) if len(rows) else single.single
        for rows in (np.intersect1d(rows, fold.seen) for rows in reach(profile, mesh.tree))
    )
    leaf_parts = with_leaf_stages(profile, costs, mesh.tree, leaf_parts, fold)
    several = replace(single, tree=mesh.tree, leaf_parts=leaf_parts, trained=mesh)
    saved_us = single.row_us(profile, costs) - several.row_us(profile, costs)
    if float(saved_us.mean()) > 0 and not could_be_chance(saved_us[fold.unseen]):
        return several, found.in_doubt
    why = (
        f"a mesh of {len(set(leaf_parts))} routes was found, but with its stages, and what tells "
        "kinds of tuples apart sent to Python, it saves nothing for sure"
    )
    return replace(single, trained=replace(mesh, why=why)), found.in_doubt


def with_crossing(profile: Profile, costs: Costs, placement: Placement) -> Profile:
    """The profile that a mesh is learned from: costs as placed, and the crossing as one operator.

    It lets every row pass, at the price of a crossing, and Python's operators come after it. So a
    search is free to have each kind of tuples cross early or late; that Catalyst's operators must
    not stand between Python's is seen to afterwards. Where one engine runs all, there is none.
    """
    python = in_python(placement)
    if not python or len(python) == len(placement):
        return staged(profile, costs, placement)
    drop_us, pass_us = costs.by_outcome(placement)
    crossing = len(placement) + 1
    crossing_us = costs.crossing_us(python)
    first = frozenset({crossing})
    after = (own | first if k in python else own for k, own in enumerate(profile.after, 1))
    return replace(
        profile,
        names=(*profile.names, "crossing"),
        after=(*after, frozenset()),
        outcomes=np.column_stack([profile.outcomes, np.ones(profile.rows)]),
        drop_us=np.append(drop_us, crossing_us),
        pass_us=np.append(pass_us, crossing_us),
    )


def _with_stages(overheads: Overheads, placement: Placement, profile: Profile) -> Overheads:
    """Tests are asked in each stage, of the rows that reach it; rusters are made in Python."""
    before, python, after = (
        tuple(k for k, stage in enumerate(placement, 1) if stage == each) for each in Stage
    )
    crossing = float(left_by(profile, before).mean())
    asked = bool(before) + bool(python) * crossing
    if after:
        asked += float(left_by(profile, before + python).mean())
    rusters = overheads.ruster_us * crossing * len(python) / len(placement)
    return replace(overheads, node_us=overheads.node_us * asked, ruster_us=rusters)
