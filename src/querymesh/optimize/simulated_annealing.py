"""SA-QM: simulated annealing over the lattice of partitions (QM § 4.7, Fig. 7)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from querymesh.optimize.lattice import random_neighbour
from querymesh.optimize.problem import Problem, Solution
from querymesh.optimize.start import Start
from querymesh.optimize.stop import DEFAULT_STOP, Stop, Tally

TEMPERATURE = 0.01
FROZEN = 1e-4


def simulated_annealing(
    problem: Problem,
    start: Start,
    rng: np.random.Generator,
    stop: Stop = DEFAULT_STOP,
    *,
    temperature: float = TEMPERATURE,
    cooling: float | None = None,
) -> Solution:
    """The best solution met on walks that accept a worse neighbour with probability e^(-δ/τ).

    τ begins at `temperature` times the start's cost and is multiplied by `cooling` (the paper's ρ)
    after each candidate, until it is FROZEN times the start's cost: that is one iteration. Unless
    told, ρ cools so slowly that an iteration tries twenty candidates a training tuple, or its share
    of `stop.partitions`. The next iteration heats up again from the best solution.

    Fig. 7 returns bestQM, which it never sets, and exits with the solution it stands on; here the
    best solution met is kept and returned.
    """
    steps = 20 * max(problem.training.size, 5)
    if stop.partitions is not None:
        steps = min(steps, max(1, stop.partitions // (stop.iterations or 1)))
    cooling = cooling or (FROZEN / temperature) ** (1 / steps)
    tally = Tally(stop, problem)
    best = current = problem.solve(start(problem, rng))
    tally.step(better=True)
    coldest = FROZEN * best.cost_us
    hottest = temperature * best.cost_us
    while not tally.over:
        tau = hottest
        while tau > coldest and not tally.over:
            # Accepted if u < e^(-δ/τ): the dice are cast first, to know what cost is too much.
            limit_us = current.cost_us - tau * math.log(1.0 - rng.random())
            neighbour = random_neighbour(current.partition, rng)
            current = problem.solve_below(neighbour, math.nextafter(limit_us, math.inf)) or current
            tally.step(better=current.cost_us < best.cost_us)
            if current.cost_us < best.cost_us:
                best = current
            tau *= cooling
        tally.walked()
        current = best
        if problem.training.size < 2:
            tally.end("one training tuple has one partition")
        if best.cost_us <= 0:
            tally.end("nothing costs less than nothing")
    return replace(best, stopped=tally.reason)
