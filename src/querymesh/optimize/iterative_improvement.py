"""II-QM: iterative improvement over the lattice of partitions (QM § 4.7, Fig. 6)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from querymesh.optimize.lattice import random_neighbour
from querymesh.optimize.problem import Problem, Solution
from querymesh.optimize.start import Start, extreme_1, random_pick
from querymesh.optimize.stop import DEFAULT_STOP, Stop, Tally


def iterative_improvement(
    problem: Problem,
    start: Start,
    rng: np.random.Generator,
    stop: Stop = DEFAULT_STOP,
    *,
    patience: int | None = None,
) -> Solution:
    """The best local minimum found, walking downhill from several starts.

    The first local optimization starts from `start`, the second (as in example 3) from one route
    for all, later ones from random picks. A solution counts as a local minimum (Fig. 6, line 4)
    after `patience` random neighbours in a row that are no better; unless told, that is four times
    the training tuples, and at least 30.
    """
    patience = patience or max(30, 4 * problem.training.size)
    tally = Tally(stop, problem)
    best = current = problem.solve(start(problem, rng))
    tally.step(better=True)
    while not tally.over:
        failures = 0
        while failures < patience and not tally.over:
            neighbour = random_neighbour(current.partition, rng)
            cheaper = problem.solve_below(neighbour, current.cost_us)
            failures = failures + 1 if cheaper is None else 0
            current = cheaper or current
            tally.step(better=current.cost_us < best.cost_us)
            if current.cost_us < best.cost_us:
                best = current
        tally.walked()
        if problem.training.size < 2:
            tally.end("one training tuple has one partition")
        if not tally.over:
            again = extreme_1 if tally.walks == 1 else random_pick
            current = problem.solve(again(problem, rng))
    return replace(best, stopped=tally.reason)
