"""Profiling within a task: a share of its rows on every operator, beside the query (QM § 5.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.profile.profiler import profile_counted, profile_outcomes
from querymesh.optimize.adapt.budget import rows_to_profile
from querymesh.query.model import BoundQuery
from querymesh.runtime.reports import Report


@dataclass
class Profiling:
    """Profiles a share of the rows that go by, `most` at most, into the task's report.

    `timed` measures costs too, which runs operators more than once: for a first mesh only.
    """

    bound: BoundQuery
    tables: Mapping[str, LookupTable]
    on_error: str
    report: Report
    rng: np.random.Generator
    share: float = 0.0
    most: float = math.inf
    timed: bool = False

    def see(self, batch: pa.RecordBatch) -> None:
        """Profile some rows of a batch.

        An operator that raises here may have met a row that its route would have spared it: the
        query goes on, and raises if it comes to that row.
        """
        if self.share <= 0 or self.most < 1:
            return
        wanted = rows_to_profile(self.share, self.most, batch.num_rows, self.rng)
        if wanted == 0:
            return
        rows = np.sort(self.rng.choice(batch.num_rows, wanted, replace=False))
        self.most -= len(rows)
        try:
            self._profile(pa.Table.from_batches([batch.take(pa.array(rows))]))
        except Exception as problem:
            spent = len(rows) * len(self.bound.operators)  # at most
            self.report.metrics.profile_evaluations += spent
            self.report.asked_evaluations += 0 if self.timed else spent
            self.report.problems.append(
                f"rows could not be profiled, so the mesh is not learned from them ({problem}). "
                "If a function may only meet what another condition lets through, say so by after="
            )
            self.share = 0.0

    def _profile(self, sample: pa.Table) -> None:
        started = perf_counter()
        args = (self.bound, sample, self.tables, self.on_error)
        if self.timed:
            profile, evaluations = profile_counted(*args)
        else:
            profile, evaluations = profile_outcomes(*args)
            self.report.asked_evaluations += evaluations
        self.report.add_profile(profile)
        metrics = self.report.metrics
        metrics.profile_seconds += perf_counter() - started
        metrics.profiled_rows += profile.rows
        metrics.profile_evaluations += evaluations
