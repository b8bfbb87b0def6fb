"""Learning where the engine is settled beforehand: one that was named, or the fabric, on which
look-ups and several queries in one pass run.

The rule is that of `learning.py`, with less to decide: the plan's own statistics first, a sample of
bounded size, functions called as often as the budget pays for, the search within what is left of
it. Who names an engine wants an order for it: then learning may take `NAMED_BUDGET_S`, however
small the job is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.profile.bounded_profile import (
    FIRST_ROWS,
    called_by_users,
    followed_by,
    profile_within,
)
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.mesh.mesh import Mesh, written_mesh
from querymesh.optimize.placement.worth import next_sample_rows
from querymesh.optimize.train.train import train_judged
from querymesh.runtime.preparation import Preparation
from querymesh.spark.filters.filter_train import FilterTrainer
from querymesh.spark.filters.learning.learning import Learning
from querymesh.spark.filters.learning.limits import FURTHER_S, SPARE, TOO_DEAR, TOO_SMALL
from querymesh.spark.filters.learning.priced_sample import money_us
from querymesh.spark.sample import take_sample
from querymesh.spark.sampling.bounded_sample import NoSample
from querymesh.stats.profile import Profile

NAMED_BUDGET_S = 2.0
"""What learning may take for an engine that was named, if it can save less than that is a share of.
"""

LEAST_SEARCH_S = 0.1
"""What the search for kinds of tuples has in any case: it is there to use what was profiled."""

BUILD_US = 1.0
"""What a row of a look-up table takes until it can be searched, about."""


class FixedEngineLearning(Learning):
    """One filter being learned whose engine is settled."""

    def learn(self) -> Preparation:
        """The plan's own statistics first; then a sample, where that can pay or is wished for."""
        job, training = self.job, self.training
        if len(job.bound.operators) < 2:
            return Preparation(written_mesh(job.bound), None, self.seconds)
        if job.columns.remote:
            return self.as_written(
                f"{min(job.columns.remote)} can only be called in tasks: the order as written"
            )
        if training.accuracy is not None:
            return self._until_accurate()
        if not self._wished_for and not self.can_pay:
            return self.as_written(TOO_SMALL)
        taken = self.take(SPARE * training.sample_rows)
        if isinstance(taken, NoSample):
            return self.as_written(f"{taken.reason}: it runs as written")
        if taken.num_rows == 0:
            return self.as_written("the sample is empty: it runs as written")
        return self._from(taken)

    @property
    def _wished_for(self) -> bool:
        return self.insist or self.job.named

    def _budget_s(self, plain_us: tuple[float, float]) -> float:
        allowed_s = super()._budget_s(plain_us)
        return max(allowed_s, NAMED_BUDGET_S) if self.job.named else allowed_s

    def _from(self, taken: pa.Table) -> Preparation:
        """Profile some of the sampled rows, and more of them as long as it is in doubt."""
        bound, on_error, training = self.job.bound, self.job.on_error, self.training
        beside_us = self.costs.beside_functions_us()

        priced_us = money_us(self.job.functions, taken, self.job.budget)

        def budget_s(row_s: float) -> float:
            return self._budget_s((0.0, beside_us + 1e6 * row_s + priced_us)) - self.seconds

        rows = sum(table.num_rows for table in self.job.tables.values())
        if not self.insist and BUILD_US * rows / 1e6 > budget_s(0.0):
            return self.as_written(
                f"its look-up tables have {rows:,} rows, and to search them for a sample would "
                "cost more than it is sure to save: it runs as written"
            )
        tables = make_tables(bound, self.job.tables, on_error)
        order = self._shuffled(taken)
        most = self._most_rows(taken, order, tables)
        if most < min(FIRST_ROWS, taken.num_rows):
            return self.as_written(TOO_DEAR)
        first = taken.take(pa.array(order[: min(training.sample_rows, most)]))
        profile = profile_within(bound, first, tables, on_error, budget_s)
        row_us = float(profile.cost_us.sum())
        if not self._wished_for and self._affordable_s((0.0, row_us)) < FURTHER_S:
            return self.as_written(
                f"all operators together take about {row_us:.2g} µs a row, too little for "
                "learning to pay: it runs as written",
                profile,
            )
        while True:
            row_s = float(profile.cost_us[called_by_users(bound)].sum()) / 1e6
            arrived = profile.take(np.argsort(order[: profile.rows]))
            arrived = self._remembered(arrived).profile
            mesh, in_doubt = self._trained(arrived, taken, budget_s(row_s))
            more = next_sample_rows(
                profile.rows,
                in_doubt=in_doubt,
                row_s=self.seconds / profile.rows,
                budget_s=budget_s(row_s),
                most_rows=min(training.most_sample_rows, most),
            )
            if not more:
                return Preparation(mesh, None, self.seconds, profile.rows, self._calls())
            profile = self._with_further(profile, taken.take(pa.array(order[:more])), tables)

    def _with_further(
        self, profile: Profile, taken: pa.Table, tables: dict[str, LookupTable]
    ) -> Profile:
        further = taken.slice(profile.rows)
        return followed_by(profile, self.job.bound, further, tables, self.job.on_error)

    def _trained(self, profile: Profile, taken: pa.Table, left_s: float) -> tuple[Mesh, bool]:
        """The mesh of a profile, and whether a better one is in doubt."""
        told_by = [name for name in profile.sample.column_names if name in self._told_apart_by]
        profile = replace(profile, sample=profile.sample.select(told_by))
        overheads = calibrate(self.training.window)
        if self.job.engine == "native":
            native_us = self.costs.in_catalyst(taken, left_s).us
            profile = replace(profile, drop_us=native_us, pass_us=native_us)
            overheads = replace(overheads, ruster_us=0.0)  # generated code has no rusters
        seconds = max(LEAST_SEARCH_S, left_s)
        if self.training.seconds is not None:
            seconds = min(seconds, self.training.seconds)
        found = train_judged(
            self.job.bound.query,
            profile,
            overheads,
            replace(self.training, seconds=seconds),
            one_route=self.one_route,
        )
        return found.mesh, found.in_doubt

    def _until_accurate(self) -> Preparation:
        """Who asks for an accuracy has samples of all rows, each twice as large as the last."""
        job, training = self.job, self.training
        trainer = FilterTrainer(
            job.bound, {**job.data, job.bound.source.alias: job.source}, job.on_error,
            job.engine, job.columns,
        )  # fmt: skip
        given = trainer.with_opaque(job.source if job.sample is None else job.sample)
        first = take_sample(given, training.sample_rows, training.seed)
        if first.num_rows == 0:
            return self.as_written("the sample is empty: it runs as written")
        mesh = trainer.train_on(given, first, training, one_route=self.one_route)
        return Preparation(mesh, None, self.seconds, mesh.sample_rows, trainer.calls)

    def _written(self, why: str) -> Mesh:
        return written_mesh(self.job.bound, why)
