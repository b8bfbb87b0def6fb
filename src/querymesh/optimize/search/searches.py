"""The searches of QM § 4.6 and 4.7, by name; a new one is one new file and one new line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from querymesh.optimize.search.iterative_improvement import iterative_improvement
from querymesh.optimize.search.optimal import optimal
from querymesh.optimize.search.problem import Problem, Solution
from querymesh.optimize.search.simulated_annealing import simulated_annealing
from querymesh.optimize.search.start import Start
from querymesh.optimize.search.stop import Stop


class Search(Protocol):
    """Walks the lattice of partitions from a start until it has to stop."""

    def __call__(
        self, problem: Problem, start: Start, rng: np.random.Generator, stop: Stop = ..., /
    ) -> Solution:
        """The best of the solutions of `problem.solve` that were met, the start's among them, with
        `stopped` saying why there are no more. All chance comes from `rng`."""
        ...


SEARCHES: Mapping[str, Search] = {
    "iterative-improvement": iterative_improvement,
    "simulated-annealing": simulated_annealing,
    "optimal": optimal,
}
