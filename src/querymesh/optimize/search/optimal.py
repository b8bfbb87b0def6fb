"""Opt-QM: the optimum, by looking at every partition (QM § 4.6, Fig. 5)."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

import numpy as np

from querymesh.errors import TrainingError
from querymesh.optimize.search.lattice import bell_number, every_partition
from querymesh.optimize.search.problem import Problem, Solution
from querymesh.optimize.search.start import Start
from querymesh.optimize.search.stop import DEFAULT_STOP, Stop

OPTIMAL_LIMIT = 10
"""Bell(10) is 115,975 partitions; Bell(12) would be 4,213,597."""


def optimal(
    problem: Problem,
    start: Start,
    rng: np.random.Generator,
    stop: Stop = DEFAULT_STOP,
    *,
    most: int = OPTIMAL_LIMIT,
) -> Solution:
    """The cheapest of all Bell(n) partitions; of equally cheap ones the start.

    It is the baseline that heuristics are measured by, so it stops for nothing but the deadline of
    its training, which it tells, and refuses more than `most` training tuples. Fig. 5 costs the
    power set first and then composes partitions of it; here a subset is routed when first met, and
    remembered by the problem. A bound is found for every partition (`Problem.least_us`), and
    classifiers are induced for those whose bound is below the best cost, the most promising first.
    """
    size = problem.training.size
    if size > most:
        raise TrainingError(
            f"search 'optimal' would look at {bell_number(size):,} partitions of {size} training "
            f"tuples; it takes at most {most}: set training_tuples={most} or less, or "
            "search='iterative-improvement'"
        )
    best = problem.solve(start(problem, rng))
    bounded = []
    for groups in every_partition(size):
        bounded.append((problem.least_us(groups), groups))
        if problem.deadline.over:
            break
    done = f"all {bell_number(size):,} partitions were looked at"
    for least_us, groups in sorted(bounded, key=itemgetter(0)):
        if least_us >= best.cost_us:
            break
        if problem.deadline.over:
            done = problem.deadline.reason
            break
        candidate = problem.solve(groups)
        if candidate.cost_us < best.cost_us:
            best = candidate
    if len(bounded) < bell_number(size):
        done = problem.deadline.reason
    return replace(best, stopped=done)
