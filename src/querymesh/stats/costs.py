"""What operators cost while the query runs, from the time their visits take.

Only how costs stand to each other decides an order, and a machine that is busy with something else
slows all of them: so an operator's cost is compared with what the others' did. It is corrected only
when it is off by half and that is no accident: timings are noisy, and an order must not follow
noise. What an operator costs may also depend on the rows that other orders leave to it, and then
every new order would bring a new correction: so each waits for twice the batches of the last. How
the cost of a dropped row stands to that of a passed one is kept as profiling found it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Floats
from querymesh.stats.decay import DecayedMean

LEAST_BATCHES = 4
LEAST_RATIO = 1.5
SURENESS = 3.0
KEEP = 0.9
"""What an observed cost still counts one batch later."""

VISIBLE_US = 5000.0
"""Visits whose rows should take less than this a call are not looked at: on a busy machine the call
itself takes one or two milliseconds."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What one operator did for one leaf in a batch."""

    calls: int
    evaluations: int
    passed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CostShift:
    """An operator whose cost is no longer what it was, as seen beside the others."""

    operator: int
    before_us: float
    now_us: float


class RunningCosts:
    """Costs by outcome; those of operators that are `measured` follow the run.

    `call_us` is the time of a call on nothing, which is not a cost of rows.
    """

    def __init__(self, drop_us: Floats, pass_us: Floats, measured: list[bool], call_us: float):
        self.drop_us = np.array(drop_us, dtype=np.float64)
        self.pass_us = np.array(pass_us, dtype=np.float64)
        self._measured = measured
        self._call_us = call_us
        self._off = [DecayedMean() for _ in measured]
        self._least_batches = LEAST_BATCHES

    def cost_us(self, pass_rates: Floats) -> Floats:
        """The mean cost of each operator at these pass rates."""
        passed = np.clip(pass_rates, 0.0, 1.0)
        return np.asarray(self.drop_us + (self.pass_us - self.drop_us) * passed)

    def observe(self, visits: Iterable[tuple[int, Timing]]) -> list[CostShift]:
        """Take in a batch, as operator indices and their visits; the costs that were corrected."""
        known_us, seen_us = np.zeros((2, len(self._measured)))
        for index, timing in visits:
            passed = min(timing.passed, timing.evaluations)
            dropped = timing.evaluations - passed
            expected_us = dropped * self.drop_us[index - 1] + passed * self.pass_us[index - 1]
            if self._measured[index - 1] and expected_us >= VISIBLE_US * timing.calls:
                known_us[index - 1] += expected_us
                seen_us[index - 1] += 1e6 * timing.seconds - timing.calls * self._call_us
        for j, off in enumerate(self._off):
            if known_us[j] > 0 and seen_us[j] > 0:
                off.add(math.log(seen_us[j] / known_us[j]), keep=KEEP)
        known = [off.mean for off in self._off if off.observations >= self._least_batches]
        if len(known) < 2:
            return []
        common = float(np.median(known))
        shifts = []
        for j, off in enumerate(self._off):
            ratio = off.mean - common
            if off.observations < self._least_batches or abs(ratio) < math.log(LEAST_RATIO):
                continue
            if abs(ratio) > SURENESS * off.error:
                before = float(self.drop_us[j] + self.pass_us[j]) / 2
                shifts.append(CostShift(j + 1, before, before * math.exp(ratio)))
                self.drop_us[j] *= math.exp(ratio)
                self.pass_us[j] *= math.exp(ratio)
        if shifts:
            self._least_batches *= 2
            self._off = [DecayedMean() for _ in self._off]
        return shifts
