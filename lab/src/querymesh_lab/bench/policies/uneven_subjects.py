"""The joins of `bench goals`: streams of unequal rates, which may change half way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh_lab.bench.data.join_data import Design
from querymesh_lab.bench.joins.core_run import steps
from querymesh_lab.bench.policies.join_subjects import STEP, JoinSubject
from querymesh_lab.bench.policies.race import SampledView


@dataclass(frozen=True)
class UnevenSubject(JoinSubject):
    """Streams of which not all rows come: of stream i the share `shares[i]`, and after half of the
    time, if they `swap`, that of the stream as far from the other end."""

    shares: tuple[float, ...] = ()
    swap: bool = False

    @cached_property
    def streams(self) -> dict[str, pa.RecordBatch]:
        """The rows of each stream that come, by alias."""
        rng = np.random.default_rng(self.design.seed + 1)
        found = {}
        for number, (alias, rows) in enumerate(super().streams.items()):
            half = np.arange(rows.num_rows) >= rows.num_rows // 2
            later = self.shares[-1 - number] if self.swap else self.shares[number]
            share = np.where(half, later, self.shares[number])
            found[alias] = rows.filter(pa.array(rng.random(rows.num_rows) < share))
        return found

    def views(self) -> dict[str, SampledView]:
        """Each stream, with a profile of the sample; what arrives in a step is classified at once.

        Training counts with windows of that size, and of the largest steps none is divided.
        """
        largest = dict.fromkeys(self.streams, 1)
        for step in steps(self.join, self.streams, STEP * len(self.streams)):
            largest = {a: max(largest[a], batch.num_rows) for a, batch in step.items()}
        views = super().views()
        return {alias: replace(view, window=largest[alias]) for alias, view in views.items()}


EVEN = (1.0,) * 10
FALLING = (1.0, 0.5, 0.25, 0.12, 0.06)
ROWS, QUICK = 60_000, 600
QUICK_RATE = {"rate": 60.0, "window_s": 4}

DESIGNS: dict[str, tuple[dict[str, Any], tuple[float, ...], bool]] = {
    "5-way, even": ({"shape": "5-way", "matches": 0.8}, EVEN, False),
    "5-way, uneven": ({"shape": "5-way", "matches": 3.0}, FALLING, False),
    "5-way, uneven, swapped": ({"shape": "5-way", "matches": 3.0}, FALLING, True),
    "5-way, kinds": ({"shape": "5-way", "matches": 3.0, "rare": 0.002}, EVEN, False),
    "star, uneven": ({"shape": "star", "matches": 3.0}, FALLING, False),
    "star, kinds": ({"shape": "star", "matches": 3.0, "rare": 0.002}, EVEN, False),
    "clique, even": ({"shape": "clique", "matches": 4.0, "linked": 0.1}, EVEN, False),
    "clique, uneven": ({"shape": "clique", "matches": 4.0, "linked": 0.1}, FALLING, False),
}


def subject_of(name: str, quick: bool) -> UnevenSubject:
    """The streams of a case, by its name."""
    given, shares, swap = DESIGNS[name]
    size: dict[str, Any] = {"rows": QUICK, **QUICK_RATE} if quick else {"rows": ROWS}
    return UnevenSubject(name, Design(**{**given, **size}), shares=shares, swap=swap)
