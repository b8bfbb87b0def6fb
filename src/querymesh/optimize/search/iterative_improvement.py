"""II-QM: iterative improvement over the lattice of partitions (QM § 4.7, Fig. 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from querymesh.errors import OptionError
from querymesh.optimize.search.lattice import (
    Partition,
    neighbour_count,
    neighbours,
    random_neighbour,
)
from querymesh.optimize.search.problem import Problem, Solution
from querymesh.optimize.search.start import Start, extreme_1, random_pick
from querymesh.optimize.search.stop import DEFAULT_STOP, Stop, Tally


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
    the training tuples, and at least 30. One with no more neighbours than that has them all tried,
    so that its local minimum is proven.
    """
    if patience is None:
        patience = max(30, 4 * problem.training.size)
    elif patience < 1:
        raise OptionError(f"patience must be at least 1 neighbour, not {patience}")
    tally = Tally(stop, problem)
    best = current = problem.solve(start(problem, rng))
    tally.step(better=True)
    while not tally.over:
        while (cheaper := _downhill(problem, current, patience, rng, tally, best)) is not None:
            current = cheaper
            best = min(best, current, key=_cost_us)
        tally.walked()
        if problem.training.size < 2:
            tally.end("one training tuple has one partition")
        if not tally.over:
            again = extreme_1 if tally.walks == 1 else random_pick
            current = problem.solve(again(problem, rng))
            tally.step(better=current.cost_us < best.cost_us)
            best = min(best, current, key=_cost_us)
    return replace(best, stopped=tally.reason)


def _downhill(
    problem: Problem,
    current: Solution,
    patience: int,
    rng: np.random.Generator,
    tally: Tally,
    best: Solution,
) -> Solution | None:
    """The first cheaper neighbour met; None at a local minimum, or when the search is over."""
    for neighbour in _tries(current.partition, patience, rng):
        if tally.over:
            return None
        cheaper = problem.solve_below(neighbour, current.cost_us)
        tally.step(better=cheaper is not None and cheaper.cost_us < best.cost_us)
        if cheaper is not None:
            return cheaper
    return None


def _tries(groups: Partition, patience: int, rng: np.random.Generator) -> Iterator[Partition]:
    """All neighbours in random order if they are few, else random ones, as many as patience has."""
    if neighbour_count(groups) <= patience:
        near = list(neighbours(groups))
        return (near[k] for k in rng.permutation(len(near)))
    return (random_neighbour(groups, rng) for _ in range(patience))


def _cost_us(solution: Solution) -> float:
    return solution.cost_us
