"""SA-QM: simulated annealing over the lattice of partitions (QM § 4.7, Fig. 7)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from querymesh.errors import OptionError
from querymesh.optimize.search.lattice import random_neighbour
from querymesh.optimize.search.problem import Problem, Solution
from querymesh.optimize.search.start import Start
from querymesh.optimize.search.stop import DEFAULT_STOP, Stop, Tally

TEMPERATURE = 0.01
FROZEN = 1e-4
MOST_STEPS = 300
"""Of one cooling, unless it is told how fast to cool."""


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
    told, ρ cools so slowly that an iteration tries twenty candidates a training tuple, MOST_STEPS
    at most, or its share of `stop.partitions`. The next iteration heats up again from the best
    solution.

    Fig. 7 returns bestQM, which it never sets, and exits with the solution it stands on; here the
    best solution met is kept and returned.
    """
    if not FROZEN < temperature < math.inf:
        raise OptionError(
            f"temperature is a share of the start's cost above {FROZEN:g}, where it is frozen, "
            f"not {temperature}"
        )
    if cooling is None:
        cooling = (FROZEN / temperature) ** (1 / _steps(problem, stop))
    elif not 0 < cooling < 1:
        raise OptionError(f"cooling is a factor between 0 and 1, not {cooling}")
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


def _steps(problem: Problem, stop: Stop) -> int:
    """The candidates of one cooling."""
    steps = min(20 * max(problem.training.size, 5), MOST_STEPS)
    if stop.partitions is None:
        return steps
    walks = 1 if stop.iterations is None else stop.iterations
    return min(steps, max(1, stop.partitions // walks))
