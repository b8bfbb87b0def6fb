"""Cutting a classifier back to the tests that pay, by the cost of the mesh (QM eq. 2).

A test pays if what its two sides save over the best single leaf in its place is more than the test,
the leaves it adds, and the standard error of that saving. From the leaves up, all in sums over
cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.classify.induce import Node
from querymesh.classify.tree import Leaf, Split, Tree
from querymesh.optimize.search.cell_costs import CellCosts
from querymesh.stats.profile import Route


@dataclass(frozen=True, slots=True)
class LeafTuples:
    """The tuples of a leaf: their cells, their number, and what they cost on each route.

    `tests` are those on the path to the leaf.
    """

    label: int
    cells: Ints
    weight: float
    totals: Floats
    tests: int = 0


@dataclass(frozen=True, slots=True)
class Pruned:
    """A subtree after pruning, its leaves, and what its tuples cost: in the subtree, and on each
    route of the mesh. Labels are positions in the mesh's routes."""

    tree: Tree
    leaves: list[LeafTuples]
    cost_us: float
    weight: float
    totals: Floats

    @classmethod
    def leaf(cls, label: int, cells: Ints, weight: float, totals: Floats) -> Pruned:
        """One leaf for all these cells."""
        leaf = LeafTuples(label, cells, weight, totals)
        return cls(Leaf(label), [leaf], float(totals[label]), weight, totals)


class Pruner:
    """Prunes the classifier of a mesh; `position` is that of each label's route in `routes`."""

    def __init__(
        self,
        costs: CellCosts,
        routes: tuple[Route, ...],
        position: dict[int, int],
        node_us: float,
        leaf_us: float,
    ) -> None:
        self._costs = costs
        self._weights = costs.cells.weights
        self._routes = routes
        self._position = position
        self._node_us = node_us
        self._leaf_us = leaf_us
        self._sums = np.stack([costs.sums(route) for route in routes])

    def prune(self, node: Node) -> Pruned:
        """The tree below a node, cut back, and what it then costs without its leaves' overhead."""
        if node.yes is None or node.no is None or node.test is None:
            weight = float(self._weights[node.rows].sum())
            totals = self._sums[:, node.rows].sum(axis=1)
            return Pruned.leaf(self._position[node.label], node.rows, weight, totals)
        yes, no = self.prune(node.yes), self.prune(node.no)
        weight, totals = yes.weight + no.weight, yes.totals + no.totals
        cost_us = yes.cost_us + no.cost_us + self._node_us * weight
        best = int(totals.argmin())
        saved_us = float(totals[best]) - cost_us
        beyond_us = saved_us - (len(yes.leaves) + len(no.leaves) - 1) * self._leaf_us
        if beyond_us > 0:
            leaves = [
                LeafTuples(leaf.label, leaf.cells, leaf.weight, leaf.totals, leaf.tests + 1)
                for leaf in yes.leaves + no.leaves
            ]
            if beyond_us > self._doubt_us(best, leaves, saved_us, weight):
                tree = Split(node.test, yes.tree, no.tree)
                return Pruned(tree, leaves, cost_us, weight, totals)
        return Pruned.leaf(best, node.rows, weight, totals)

    def _doubt_us(
        self, best: int, leaves: list[LeafTuples], saved_us: float, weight: float
    ) -> float:
        """The standard error of the sum of what each tuple saves by these leaves over `best`.

        A tuple saves d - k, where d is the difference of two routes and k the cost of its tests:
        the sum of squares is Σ d² - 2 k Σ d + n k².
        """
        squares = 0.0
        for leaf in leaves:
            k = leaf.tests * self._node_us
            squares += k * k * leaf.weight
            if leaf.label != best:
                of_cell = self._costs.squares(self._routes[best], self._routes[leaf.label])
                squares += float(of_cell[leaf.cells].sum())
                squares -= 2 * k * float(leaf.totals[best] - leaf.totals[leaf.label])
        variance = squares / weight - (saved_us / weight) ** 2
        return math.sqrt(max(variance, 0.0) * weight)
