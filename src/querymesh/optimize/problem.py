"""One search problem: what a partition of the training tuples costs as a mesh.

A partition becomes a mesh in three steps (QM § 4.6, lines 8 to 10): the best route of each group,
a classifier induced to tell the groups apart by content, and eq. 2 on where that classifier really
sends the sampled tuples. The classifier is then pruned by the same cost: a test that does not pay
for itself is not asked. Groups and partitions already seen are remembered, so an unchanged subset
is never costed twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from querymesh.classify.condense import TrainingSet
from querymesh.classify.induce import Growth, induce
from querymesh.classify.tree import Leaf, Split, Tree, answers, leaves
from querymesh.cost.mesh import Overheads
from querymesh.optimize.best_route import EXACT_LIMIT, exact_route, greedy_route
from querymesh.optimize.lattice import Partition
from querymesh.stats.profile import Floats, Ints, Route, survivors

MAX_LEAVES = 32


@dataclass(frozen=True)
class Solution:
    """A mesh found: its classifier, whose labels index `routes`, and its cost by eq. 2."""

    partition: Partition
    tree: Tree
    routes: tuple[Route, ...]
    cost_us: float


class Problem:
    """Costs partitions of one training set, remembering what it has seen."""

    def __init__(self, training: TrainingSet, overheads: Overheads) -> None:
        self.training = training
        self.overheads = overheads
        profile = training.profile
        self._after = profile.after
        self._costs = (profile.drop_us, profile.pass_us)
        self._survivors: Floats | None = None
        if profile.operators <= EXACT_LIMIT:
            self._survivors = survivors(profile.outcomes, training.member, training.size)
        self._routes: dict[tuple[int, ...], Route] = {}
        self._realized: dict[Route, Floats] = {}
        self._solutions: dict[Partition, Solution] = {}

    @property
    def evaluated(self) -> int:
        """How many different partitions have been costed."""
        return len(self._solutions)

    def route(self, group: tuple[int, ...]) -> Route:
        """The best route for a group of training tuples."""
        if group not in self._routes:
            if self._survivors is not None:
                together = self._survivors[list(group)].sum(axis=0)
                self._routes[group] = exact_route(together, *self._costs, self._after)[0]
            else:
                rows = np.isin(self.training.member, group)
                outcomes = self.training.profile.outcomes[rows]
                self._routes[group] = greedy_route(outcomes, *self._costs, self._after)
        return self._routes[group]

    def realized(self, route: Route) -> Floats:
        """What each sampled tuple costs on a route."""
        if route not in self._realized:
            self._realized[route] = self.training.profile.realized_us(route)
        return self._realized[route]

    def solve(self, groups: Partition) -> Solution:
        """The mesh of a partition."""
        if groups not in self._solutions:
            self._solutions[groups] = self._solve(groups)
        return self._solutions[groups]

    def _solve(self, groups: Partition) -> Solution:
        of_group = [self.route(group) for group in groups]
        routes = tuple(dict.fromkeys(of_group))
        label_of_tuple = np.zeros(self.training.size, dtype=np.int64)
        for group, route in zip(groups, of_group, strict=True):
            label_of_tuple[list(group)] = routes.index(route)
        rows = self.training.profile.rows
        growth = Growth(max_leaves=MAX_LEAVES, min_weight=max(2.0, 0.005 * rows))
        labels = label_of_tuple[self.training.member]
        tree = induce(self.training.attributes, self.training.codes, labels, np.ones(rows), growth)
        tree, row_us = self._prune(tree, routes, np.arange(rows))
        total_us = float(row_us.sum())
        if not isinstance(tree, Leaf):
            total_us += self._leaf_us * len(list(leaves(tree)))
        tree, routes = _only_used(tree, routes)
        return Solution(groups, tree, routes, total_us / max(rows, 1))

    @property
    def _leaf_us(self) -> float:
        """|R| · OVH's share of one leaf, over the whole sample."""
        profile = self.training.profile
        return self.overheads.route_us(profile.operators) * profile.rows

    def _prune(self, tree: Tree, routes: tuple[Route, ...], rows: Ints) -> tuple[Tree, Floats]:
        """The tree cut back to the tests that pay, and what each of these rows then costs.

        A test pays if what its two sides save over the best single leaf in its place is more than
        the test, one more leaf, and the standard error of that saving.
        """
        if isinstance(tree, Leaf):
            return tree, self.realized(routes[tree.label])[rows]
        yes = answers(tree.test, self.training.column(tree.test.attribute))[rows]
        yes_tree, yes_us = self._prune(tree.yes, routes, rows[yes])
        no_tree, no_us = self._prune(tree.no, routes, rows[~yes])
        split_us = np.empty(len(rows))
        split_us[yes], split_us[~yes] = yes_us, no_us
        split_us += self.overheads.node_us
        labels = sorted({leaf.label for leaf, _ in leaves(tree)})
        candidates = [self.realized(routes[label])[rows] for label in labels]
        best = min(range(len(labels)), key=lambda k: float(candidates[k].sum()))
        saved = candidates[best] - split_us
        added_leaves = len(list(leaves(Split(tree.test, yes_tree, no_tree)))) - 1
        doubt = float(saved.std()) * math.sqrt(len(saved)) if len(saved) else 0.0
        if float(saved.sum()) <= added_leaves * self._leaf_us + doubt:
            return Leaf(labels[best]), candidates[best]
        return Split(tree.test, yes_tree, no_tree), split_us


def _only_used(tree: Tree, routes: tuple[Route, ...]) -> tuple[Tree, tuple[Route, ...]]:
    """Drop routes that no leaf points to, and renumber the leaves."""
    used = list(dict.fromkeys(leaf.label for leaf, _ in leaves(tree)))

    def renumber(node: Tree) -> Tree:
        if isinstance(node, Leaf):
            return Leaf(used.index(node.label))
        return Split(node.test, renumber(node.yes), renumber(node.no))

    return renumber(tree), tuple(routes[label] for label in used)
