"""One search problem: what a partition of the training tuples costs as a mesh.

A partition becomes a mesh in three steps (QM § 4.6, lines 8 to 10): the best route of each subset,
a classifier induced to tell the subsets apart by content, and eq. 2 on where that classifier really
sends the sampled tuples. The classifier is then pruned by the same cost: a test that does not pay
for itself is not asked.

Candidates are costed incrementally. Remembered are the route of each subset; the mesh of each
*assignment* of routes to training tuples, which many partitions share; and, inside an induction,
the best test of each part of the data whose labels have been seen (`induce.grow`). So an unchanged
subset is never costed twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from sys import getsizeof

import numpy as np

from querymesh.arrays import Floats
from querymesh.classify.classifier import Learner
from querymesh.classify.condense import TrainingSet
from querymesh.classify.induce import Growth, Node, Remembered, grow
from querymesh.classify.tree import Tree, leaves, only_used
from querymesh.cost.route_time import Overheads
from querymesh.deadline import NEVER, Deadline
from querymesh.optimize.routes.dynamic_programming import EXACT_LIMIT
from querymesh.optimize.routes.route_searches import auto
from querymesh.optimize.routes.subset import RouteSearch, Subset, checked_route
from querymesh.optimize.search.cell_costs import CellCosts
from querymesh.optimize.search.classified_mesh import ClassifiedMeshes
from querymesh.optimize.search.lattice import Group, Partition
from querymesh.optimize.search.prune import Pruner
from querymesh.stats.profile import Route, survivors

MAX_LEAVES = 32
SURVIVORS_MB = 64
"""Survivor tables of the training tuples are kept up to this size, else made for each subset."""
ROUNDING = 1e-12
ENTRY_BYTES = 110
OBJECT_BYTES = 64
"""About what an entry of a dictionary and a small object take."""


@dataclass(frozen=True)
class Solution:
    """A mesh found: its classifier, whose labels index `routes`, and its cost by eq. 2.

    `stopped` says why the search that returned it ended; a solution merely costed has none.
    """

    partition: Partition
    tree: Tree
    routes: tuple[Route, ...]
    cost_us: float
    stopped: str = ""


class Problem:
    """Costs partitions of one training set, remembering what it has seen.

    At its `deadline` every search ends, whatever its own bounds. With a `learner`, classifiers are
    of its kind; else they are trees.
    """

    def __init__(
        self,
        training: TrainingSet,
        overheads: Overheads,
        route_search: RouteSearch = auto,
        deadline: Deadline = NEVER,
        learner: Learner | None = None,
    ) -> None:
        self.deadline = deadline
        self.training = training
        self.overheads = overheads
        self.route_search = route_search
        profile = training.profile
        self._growth = Growth(max_leaves=MAX_LEAVES, min_weight=max(2.0, 0.005 * profile.rows))
        self._leaf_us = overheads.route_us(profile.operators) * profile.rows
        self._costs = CellCosts(training)
        self._classified = (
            None if learner is None else ClassifiedMeshes(training, overheads, learner)
        )
        # Routes go by numbers, in the order of their discovery.
        self._routes: list[Route] = []
        self._number_of: dict[Route, int] = {}
        self._subsets: dict[Group, int] = {}
        self._least_us: dict[frozenset[int], float] = {}
        self._meshes: dict[tuple[int, ...], Solution] = {}
        self._partitions: set[Partition] = set()
        self._tests: Remembered = {}
        self._trees: dict[bytes, Node] = {}
        self._bytes = 0

    @property
    def subsets_routed(self) -> int:
        """How many different subsets of training tuples got a route."""
        return len(self._subsets)

    @property
    def meshes_costed(self) -> int:
        """How many different assignments of routes to training tuples were costed."""
        return len(self._meshes)

    @property
    def evaluated(self) -> int:
        """How many different partitions were looked at: costed, or bounded from below."""
        return len(self._partitions)

    @property
    def memory_mb(self) -> float:
        """About what is remembered, in MB: arrays and keys by their size, objects by number."""
        made = self._survivors.nbytes if "_survivors" in self.__dict__ else 0
        return (self._bytes + self._costs.remembered_bytes + made) / 1e6

    def route(self, group: Group) -> Route:
        """The best route for a subset of the training tuples."""
        return self._routes[self._route_number(group)]

    def _route_number(self, group: Group) -> int:
        number = self._subsets.get(group)
        if number is None:
            route = checked_route(self.route_search, self._subset(group))
            number = self._number_of.setdefault(route, len(self._routes))
            if number == len(self._routes):
                self._routes.append(route)
            self._subsets[group] = number
            self._bytes += getsizeof(group) + ENTRY_BYTES
        return number

    def _subset(self, group: Group) -> Subset:
        profile = self.training.profile
        table_mb = self.training.size * 8 * 2.0**profile.operators / 1e6
        kept = profile.operators <= EXACT_LIMIT and table_mb <= SURVIVORS_MB
        table = partial(self._survivors_of, group) if kept else None
        inside = np.zeros(self.training.size, dtype=bool)
        inside[list(group)] = True
        outcomes = profile.outcomes[inside[self.training.member]]
        return Subset(outcomes, profile.drop_us, profile.pass_us, profile.after, table)

    @cached_property
    def _survivors(self) -> Floats:
        """The survivor table of each training tuple, made when a route search first asks for one:
        it has 2^m numbers a tuple."""
        training = self.training
        return survivors(training.profile.outcomes, training.member, training.size)

    def _survivors_of(self, group: Group) -> Floats:
        return np.asarray(self._survivors[list(group)].sum(axis=0))

    def least_us(self, groups: Partition) -> float:
        """What the mesh of a partition costs at the least, without inducing its classifier.

        That is each cell on the cheapest of the routes, with one test and one more leaf; or all on
        one route.
        """
        self._look_at(groups)
        if self._classified is not None:
            return self._classified.least_us({self.route(group) for group in groups})
        numbers = frozenset(map(self._route_number, groups))
        least = self._least_us.get(numbers)
        if least is None:
            rows = max(self.training.profile.rows, 1)
            sums = np.stack([self._costs.sums(self._routes[number]) for number in numbers])
            least = float(sums.sum(axis=1).min())
            if len(numbers) > 1:
                told_apart = float(sums.min(axis=0).sum()) + rows * self.overheads.node_us
                least = min(least, told_apart + self._leaf_us)
            least = self._least_us[numbers] = least / rows * (1 - ROUNDING)
            self._bytes += getsizeof(numbers) + ENTRY_BYTES
        return least

    def _look_at(self, groups: Partition) -> None:
        if groups not in self._partitions:
            self._partitions.add(groups)
            self._bytes += ENTRY_BYTES + OBJECT_BYTES * len(groups) + 8 * self.training.size

    def solve_below(self, groups: Partition, limit_us: float) -> Solution | None:
        """The mesh of a partition if it costs less than the limit, else None.

        Where `least_us` is not below the limit, no classifier is induced.
        """
        if self.least_us(groups) >= limit_us:
            return None
        solution = self.solve(groups)
        return solution if solution.cost_us < limit_us else None

    def solve(self, groups: Partition) -> Solution:
        """The mesh of a partition: a classifier of its groups, the best route of each, the cost."""
        self._look_at(groups)
        assignment = [0] * self.training.size
        for group in groups:
            number = self._route_number(group)
            for member in group:
                assignment[member] = number
        key = tuple(assignment)
        mesh = self._meshes.get(key)
        if mesh is None:
            mesh = self._meshes[key] = self._mesh(groups, key)
            leaf_count = sum(1 for _ in leaves(mesh.tree))
            self._bytes += getsizeof(key) + OBJECT_BYTES * (3 * leaf_count + 5) + ENTRY_BYTES
        if mesh.partition == groups:
            return mesh
        return Solution(groups, mesh.tree, mesh.routes, mesh.cost_us)

    def _mesh(self, groups: Partition, assignment: tuple[int, ...]) -> Solution:
        """The mesh in which training tuple i takes the route of number `assignment[i]`."""
        # A route is labelled by its first tuple: what changes elsewhere leaves it its label.
        label_of: dict[int, int] = {}
        of_tuple = [label_of.setdefault(number, i) for i, number in enumerate(assignment)]
        routes = tuple(self._routes[number] for number in label_of)
        if self._classified is not None:
            tree, cost_us = self._classified.mesh(routes)
            tree, used = only_used(tree, routes)
            return Solution(groups, tree, used, cost_us)
        position = {label: k for k, label in enumerate(label_of.values())}
        pruner = Pruner(self._costs, routes, position, self.overheads.node_us, self._leaf_us)
        pruned = pruner.prune(self._classifier(of_tuple))
        total_us = pruned.cost_us + self._leaf_us * (len(pruned.leaves) - 1)
        tree, used = only_used(pruned.tree, routes)
        return Solution(groups, tree, used, total_us / max(self.training.profile.rows, 1))

    def _classifier(self, label_of_tuple: list[int]) -> Node:
        """The tree that tells the training tuples' labels apart."""
        cells = self.training.cells
        labels = np.array(label_of_tuple, dtype=np.int64)[cells.member]
        key = labels.tobytes()
        if key not in self._trees:
            attributes, tests_before = self.training.attributes, len(self._tests)
            tree = self._trees[key] = grow(
                attributes, cells.codes, labels, cells.weights, self._growth, self._tests
            )
            self._bytes += 2 * len(key) + ENTRY_BYTES + 2 * OBJECT_BYTES * _nodes(tree)
            self._bytes += _tests_bytes(self._tests, len(self._tests) - tests_before)
        return self._trees[key]


def _nodes(node: Node) -> int:
    if node.yes is None or node.no is None:
        return 1
    return 1 + _nodes(node.yes) + _nodes(node.no)


def _tests_bytes(tests: Remembered, newest: int) -> int:
    """What the newest of the remembered tests take: their keys, and of a candidate its counts, its
    order of bins, and the rows on either side, which the nodes of trees share."""
    size = 0
    for (rows, labels), choice in islice(reversed(tests.items()), newest):
        size += len(rows) + len(labels) + ENTRY_BYTES + 4 * OBJECT_BYTES
        if choice.candidate is not None:
            size += len(rows) + choice.candidate.counts.nbytes + 8 * choice.candidate.attribute.bins
            size += 12 * OBJECT_BYTES
    return size
