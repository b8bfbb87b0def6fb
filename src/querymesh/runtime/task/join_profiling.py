"""Profiling within a task of a join: some arrivals of a stream on every operator of its view."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.fabric.profile.join_profile import profile_arrivals
from querymesh.optimize.adapt.budget import rows_to_profile
from querymesh.runtime.reports import Report


@dataclass
class ViewProfiling:
    """Profiles a share of a stream's arrivals, `most` at most, into the task's report.

    They must be stored and not settled yet: they probe what came before them, as they do later.
    """

    fabric: JoinFabric
    alias: str
    on_error: str
    report: Report
    rng: np.random.Generator
    share: float = 0.0
    most: float = 0.0
    timed: bool = False

    def see(self, arrivals: Arrivals) -> None:
        """Profile some arrivals; an operator that raises here need not raise on its route."""
        if self.share <= 0 or self.most < 1 or len(arrivals) == 0:
            return
        wanted = rows_to_profile(self.share, self.most, len(arrivals), self.rng)
        if wanted == 0:
            return
        chosen = np.zeros(len(arrivals), dtype=bool)
        chosen[self.rng.choice(len(arrivals), wanted, replace=False)] = True
        try:
            self._profile(arrivals.some(chosen))
        except Exception as problem:
            spent = wanted * len(self.fabric.views[self.alias].modules)  # at most
            self.report.metrics.profile_evaluations += spent
            self.report.asked_evaluations += 0 if self.timed else spent
            self.report.problems.append(
                f"arrivals on {self.alias} could not be profiled, so the mesh is not learned from "
                f"them ({problem})"
            )

    def _profile(self, arrivals: Arrivals) -> None:
        started = perf_counter()
        profile, evaluations = profile_arrivals(
            self.fabric.join, self.alias, self.fabric.stems, arrivals, self.on_error, self.timed
        )
        if not self.timed:
            self.report.asked_evaluations += evaluations
        if profile.rows:
            self.report.add_profile(profile)
        metrics = self.report.metrics
        metrics.profile_seconds += perf_counter() - started
        metrics.profiled_rows += profile.rows
        metrics.profile_evaluations += evaluations
