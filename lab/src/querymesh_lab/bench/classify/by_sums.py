"""Tuples of three kinds that the sum of several weak columns tells, each dropped by an operator of
its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.stats.profile import Profile

CUTS = (-0.43, 0.43)
"""Thirds of a normal distribution."""
DROPS = 0.9
"""The share of a kind's tuples that its operator drops; the others drop the rest of them."""
CATEGORIES = 8


@dataclass(frozen=True)
class Weak:
    """How many columns there are, and whether they hold numbers or categories."""

    columns: int
    numbers: bool = True

    @property
    def text(self) -> str:
        """The columns, as people read of them."""
        return f"{self.columns} {'numbers' if self.numbers else 'categories'}"


def by_sums(shape: Weak, rows: int, seed: int, operator_us: float) -> tuple[Profile, Ints]:
    """So many tuples as a profile of three operators, and the kind of each."""
    rng = np.random.default_rng(seed)
    if shape.numbers:
        values = rng.normal(size=(rows, shape.columns))
        total = values.sum(axis=1) / np.sqrt(shape.columns)
    else:
        values = rng.integers(0, CATEGORIES, (rows, shape.columns)).astype(np.float64)
        spread = np.sqrt(shape.columns * (CATEGORIES**2 - 1) / 12)
        total = (values.sum(axis=1) - shape.columns * (CATEGORIES - 1) / 2) / spread
    kind = np.digitize(total, CUTS)
    passes = np.where(np.eye(3), 1 - DROPS, DROPS)[kind]
    outcomes = (rng.random((rows, 3)) < passes).astype(float)
    dtype = np.float64 if shape.numbers else np.int64
    sample = pa.table({f"x{k}": values[:, k].astype(dtype) for k in range(shape.columns)})
    return three_operators(sample, outcomes, operator_us), kind


def three_operators(sample: pa.Table, outcomes: np.ndarray, operator_us: float) -> Profile:
    """A profile of operators that cost about the same."""
    us = operator_us * np.array([1.0, 1.05, 1.1])
    nothing: frozenset[int] = frozenset()
    return Profile(sample, ("p1", "p2", "p3"), (nothing,) * 3, outcomes, us, us)
