"""What profiling may cost while a query runs: never more than a share of the work.

A token bucket in two currencies. Every evaluation the query makes earns `share` of an evaluation,
and `share` of its cost; a profiled row spends one evaluation of every operator, and their costs. So
neither a cheap operator's count nor a dear one's time can pass the share. Half of the income keeps
the profile fresh, row by row; what is left is saved, up to one burst, for the moment when the data
changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Floats

BURST_ROWS = 1000
"""The most profiled rows that are saved up for."""

STEADY = 0.5
"""The part of the income that is spent at once, to keep the profile fresh."""

LUMP_ROWS = 32
"""Calling every operator on a few rows costs as much as on this many, so a task profiles this many
at a time, and more rarely."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What tasks are asked to profile: a share of their rows, and once, in one batch, more.

    The burst is for batch `batch`, for tasks of partitions below `tasks`, and at most `most` rows
    each, so that it costs no more than was saved, whatever that batch turns out to be.
    """

    share: float = 0.0
    batch: int = -1
    burst_share: float = 0.0
    most: int = 0
    tasks: int = 0

    def for_task(self, batch: int | None, partition: int) -> tuple[float, float]:
        """The share of its rows a task is to profile, and how many at most."""
        if batch == self.batch and partition < self.tasks:
            return self.burst_share, float(self.most)
        return self.share, math.inf


def rows_to_profile(share: float, most: float, rows: int, rng: np.random.Generator) -> int:
    """How many of a task's rows to profile: the share on average, but none or at least a lump."""
    expected = min(share * rows, most, rows)
    lump = min(float(LUMP_ROWS), most, rows)
    if expected >= lump:
        return int(expected)
    return int(lump) if rng.random() * lump < expected else 0


@dataclass
class Allowance:
    """Profiling by the clock, for operators so cheap that the calls cost more than the rows: the
    share of tuples, as long as profiling has taken no larger share of the time.

    >>> allowance = Allowance(0.01)
    >>> allowance.observe(profiled_s=0.3, worked_s=10.0)
    >>> allowance.now
    0.0
    >>> allowance.observe(profiled_s=0.0, worked_s=25.0)
    >>> allowance.now
    0.01
    """

    share: float
    profiled_s: float = 0.0
    worked_s: float = 0.0

    def observe(self, profiled_s: float, worked_s: float) -> None:
        """What a batch took for profiling, and for everything else."""
        self.profiled_s += profiled_s
        self.worked_s += worked_s

    @property
    def now(self) -> float:
        """The share of the next batch's tuples that may be profiled."""
        return self.share if self.profiled_s <= self.share * self.worked_s else 0.0


class Budget:
    """The token bucket, on the driver. `cost_us` is what one evaluation of each operator costs."""

    def __init__(self, share: float, cost_us: Floats) -> None:
        self._share = share
        self._cost_us = cost_us
        self._evaluations = 0.0
        self._us = 0.0
        self._income_rows = 0.0

    def observe(self, rows: int, evaluations: Floats, profiled: Floats) -> None:
        """What a batch evaluated and profiled, by operator."""
        earned = self._share * float(evaluations.sum())
        earned_us = self._share * float(evaluations @ self._cost_us)
        row_evaluations, row_us = self._of_a_row
        self._evaluations += earned - float(profiled.sum())
        self._evaluations = min(self._evaluations, BURST_ROWS * row_evaluations)
        self._us += earned_us - float(profiled @ self._cost_us)
        self._us = min(self._us, BURST_ROWS * row_us)
        if rows:
            self._income_rows = min(earned / row_evaluations, earned_us / row_us) / rows

    @property
    def _of_a_row(self) -> tuple[float, float]:
        """Evaluations and microseconds that profiling one row takes."""
        return float(len(self._cost_us)), float(self._cost_us.sum())

    @property
    def rows(self) -> int:
        """How many rows can be profiled now."""
        row_evaluations, row_us = self._of_a_row
        return max(0, math.floor(min(self._evaluations / row_evaluations, self._us / row_us)))

    def ask(self, wanted: int, batch: int, rows: int, tasks: int) -> Ask:
        """What to ask of the next batch, `batch`, if it is like the last, of `rows` and `tasks`."""
        spare = self.rows
        share = STEADY * self._income_rows
        if spare < min(LUMP_ROWS * tasks, BURST_ROWS // 2):
            share = 0.0  # what is taken in lumps must be there
        most = min(wanted, spare) // max(tasks, 1)
        if most * tasks < LUMP_ROWS or rows < 1:
            return Ask(share)
        return Ask(share, batch, min(1.0, most * tasks / rows), most, tasks)

    def recost(self, cost_us: Floats) -> None:
        """Take in new costs of the operators; what was saved is worth the same number of rows."""
        _, before = self._of_a_row
        self._cost_us = np.asarray(cost_us, dtype=np.float64)
        self._us *= self._of_a_row[1] / before
