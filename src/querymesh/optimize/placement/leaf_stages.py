"""Stages of their own for each leaf of a mesh, where that pays.

A mesh is trained with one placement for all tuples. The tuples of one leaf may be better off with
another: where Catalyst drops nearly all of them, none need cross. Two proposals are made from a
part of the tuples, and each is kept only if the others say that it saves more than its error:

- each leaf is placed anew by itself, among the operators whose columns are sent anyway;
- all leaves at once, with whatever one of them would like to have in Python.

Spark sends every row that survives `before` to Python, as soon as one leaf has a Python part. So a
leaf without one still pays for the rows that it keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.classify.tree import Tree, attributes_of
from querymesh.mesh.stages import Parts
from querymesh.optimize.placement.costs import Costs, staged_us
from querymesh.optimize.placement.place import best_parts, best_placement
from querymesh.optimize.train.describe import reach
from querymesh.optimize.train.folds import Fold
from querymesh.stats.profile import Profile

LeafParts = tuple[Parts, ...]
"""The route of each leaf in its three parts, left to right."""

LEAST_TUPLES = 30
"""Tuples, at least, to place a leaf by, and again to judge that by."""

MOST_OPERATORS = 9
"""Operators, at most: the exact search is made several times for each leaf."""


def crossing_us(costs: Costs, leaf_parts: LeafParts, columns: frozenset[str]) -> float:
    """What a crossing row costs, by all that some leaf has in Python; `columns` are asked by the
    classifier, which Python needs only where leaves differ in their Python parts."""
    python = [parts.python for parts in leaf_parts]
    asked = columns if len(set(python)) > 1 else frozenset()
    return costs.crossing_us(frozenset(k for route in python for k in route), asked)


def leaves_us(profile: Profile, costs: Costs, tree: Tree, leaf_parts: LeafParts) -> Floats:
    """What each tuple costs on its leaf's route, without the tests that lead there."""
    crossing = crossing_us(costs, leaf_parts, attributes_of(tree))
    us = np.zeros(profile.rows)
    for rows, parts in zip(reach(profile, tree), leaf_parts, strict=True):
        us[rows] = staged_us(profile.take(rows), costs, parts, crossing)
    return us


def with_leaf_stages(
    profile: Profile, costs: Costs, tree: Tree, leaf_parts: LeafParts, fold: Fold
) -> LeafParts:
    """The leaves' routes in parts, some of them placed anew where that saves beyond doubt."""
    if len(leaf_parts) < 2 or profile.operators > MOST_OPERATORS:
        return leaf_parts
    leaves = _Leaves(profile, costs, tree, fold)
    for propose in (_each_by_itself, _all_at_once):
        leaf_parts = propose(leaves, leaf_parts)
    return leaf_parts


@dataclass(frozen=True)
class _Leaves:
    profile: Profile
    costs: Costs
    tree: Tree
    fold: Fold

    @cached_property
    def rows(self) -> list[tuple[Ints, Ints]]:
        """For each leaf, the tuples to place it by, and those to judge that by."""
        seen = np.zeros(self.profile.rows, dtype=bool)
        unseen = np.zeros(self.profile.rows, dtype=bool)
        seen[self.fold.seen] = True
        unseen[self.fold.unseen] = True
        return [(rows[seen[rows]], rows[unseen[rows]]) for rows in reach(self.profile, self.tree)]

    @property
    def columns(self) -> frozenset[str]:
        return attributes_of(self.tree)

    def placed(
        self, leaf: int, allowed: frozenset[int], crossing: Callable[[frozenset[int]], float]
    ) -> Parts | None:
        """The best route of a leaf's seen tuples, with only `allowed` operators in Python; None
        where they are too few, or there is no such route."""
        seen, unseen = self.rows[leaf]
        if min(len(seen), len(unseen)) < LEAST_TUPLES:
            return None
        here, costs = self.profile.take(seen), _only(self.costs, allowed)
        placement = best_placement(here, costs, crossing)
        return None if placement is None else best_parts(here, costs, placement)

    def us(self, leaf_parts: LeafParts) -> Floats:
        return leaves_us(self.profile, self.costs, self.tree, leaf_parts)

    def better(self, new: LeafParts, old: LeafParts) -> bool:
        """Whether new parts save on all tuples, and more than their error on those not seen."""
        saved = self.us(old) - self.us(new)
        return float(saved.mean()) > 0 and not could_be_chance(saved[self.fold.unseen])


def _each_by_itself(leaves: _Leaves, leaf_parts: LeafParts) -> LeafParts:
    sent = frozenset(k for parts in leaf_parts for k in parts.python)
    if not sent:
        return leaf_parts
    cost_us = leaves.costs.crossing_us(sent, leaves.columns)
    free = frozenset(
        int(j) + 1
        for j in np.flatnonzero(leaves.costs.in_python)
        if leaves.costs.crossing_us(sent | {int(j) + 1}, leaves.columns) <= cost_us
    )
    for leaf in range(len(leaf_parts)):
        parts = leaves.placed(leaf, sent | free, lambda _: cost_us)
        if parts is not None and parts != leaf_parts[leaf]:
            new = (*leaf_parts[:leaf], parts, *leaf_parts[leaf + 1 :])
            if leaves.better(new, leaf_parts):
                leaf_parts = new
    return leaf_parts


def _all_at_once(leaves: _Leaves, leaf_parts: LeafParts) -> LeafParts:
    """With all in Python that one leaf, crossing alone, would like to have there."""
    costs, columns = leaves.costs, leaves.columns
    every = frozenset(range(1, costs.operators + 1))
    wished: frozenset[int] = frozenset()
    for leaf in range(len(leaf_parts)):
        parts = leaves.placed(leaf, every, costs.crossing_us)
        wished |= frozenset(() if parts is None else parts.python)
    if not wished or wished == frozenset(k for parts in leaf_parts for k in parts.python):
        return leaf_parts
    cost_us = costs.crossing_us(wished, columns)
    found = [leaves.placed(leaf, wished, lambda _: cost_us) for leaf in range(len(leaf_parts))]
    new = tuple(parts or old for parts, old in zip(found, leaf_parts, strict=True))
    return new if leaves.better(new, leaf_parts) else leaf_parts


def could_be_chance(saved_us: Floats) -> bool:
    """Whether tuples save no more on average than the standard error of that; of fewer than two,
    nobody can tell."""
    if len(saved_us) < 2:
        return False
    error = float(saved_us.std(ddof=1)) / math.sqrt(len(saved_us))
    return float(saved_us.mean()) <= error


def _only(costs: Costs, allowed: frozenset[int]) -> Costs:
    """The costs with Python open to `allowed` operators, and to those that run nowhere else."""
    numbers = np.arange(1, costs.operators + 1)
    shut = ~np.isin(numbers, sorted(allowed)) & costs.in_catalyst
    return replace(
        costs,
        python_drop_us=np.where(shut, np.inf, costs.python_drop_us),
        python_pass_us=np.where(shut, np.inf, costs.python_pass_us),
    )
