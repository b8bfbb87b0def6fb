"""II-QM: iterative improvement over the lattice of partitions (QM § 4.7, Fig. 6)."""

from __future__ import annotations

import numpy as np

from querymesh.optimize.lattice import random_neighbour
from querymesh.optimize.problem import Problem, Solution
from querymesh.optimize.start import STARTS, Start


def iterative_improvement(
    problem: Problem,
    start: Start,
    rng: np.random.Generator,
    *,
    iterations: int = 3,
    most_partitions: int = 600,
) -> Solution:
    """The best local minimum found, walking downhill from a few starts.

    The first local optimization starts from `start`, later ones from random partitions; a solution
    counts as a local minimum (Fig. 6, line 4) after as many failed random neighbours in a row as
    twice the training tuples. Stops after `iterations` (Table 1: k = 3) or `most_partitions`, never
    by the clock, so that a seed gives the same mesh on every machine.
    """
    patience = 2 * problem.training.size
    best = problem.solve(start(problem, rng))
    for iteration in range(iterations):
        current = best if iteration == 0 else problem.solve(STARTS["random-pick"](problem, rng))
        failures = 0
        while failures < patience and problem.evaluated < most_partitions:
            candidate = problem.solve(random_neighbour(current.partition, rng))
            if candidate.cost_us < current.cost_us:
                current, failures = candidate, 0
            else:
                failures += 1
        if current.cost_us < best.cost_us:
            best = current
        if problem.training.size < 2:
            break
    return best
