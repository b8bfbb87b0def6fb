"""Where a search starts (QM § 4.7)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from querymesh.optimize.lattice import Partition, partition
from querymesh.optimize.problem import Problem
from querymesh.stats.profile import Route

Start = Callable[[Problem, np.random.Generator], Partition]


def route_driven(problem: Problem, _: np.random.Generator) -> Partition:
    """RDA: the best route of each training tuple alone; tuples of one route form a group."""
    groups: dict[Route, list[int]] = {}
    for number in range(problem.training.size):
        groups.setdefault(problem.route((number,)), []).append(number)
    return partition(groups.values())


def extreme_1(problem: Problem, _: np.random.Generator) -> Partition:
    """E1R: one route for everything."""
    return partition([range(problem.training.size)])


def random_pick(problem: Problem, rng: np.random.Generator) -> Partition:
    """RP: the cheapest of a few random partitions."""
    size = problem.training.size
    picks = []
    for _ in range(4):
        labels = rng.integers(0, max(2, int(np.sqrt(size)) + 1), size)
        picks.append(partition([np.flatnonzero(labels == k).tolist() for k in np.unique(labels)]))
    return min(picks, key=lambda groups: problem.solve(groups).cost_us)


STARTS: dict[str, Start] = {
    "route-driven": route_driven,
    "extreme-1": extreme_1,
    "random-pick": random_pick,
}
