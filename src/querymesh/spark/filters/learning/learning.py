"""Learning that pays for itself: what a filter may spend on finding out how to run.

::

    plan's own statistics ─> small, or cheap? ──────────────────────────────────────> as written
            │ no: a budget, a share of what could be saved
    a look into its files, or a sample by Spark ─> much to save? ─────────────────no─> as written
            │ yes
    profile (each function once a row) ─> decide ─> worth it? ────────────────────no─> as written
            ^                                │ in doubt, budget left
            └──────── twice as many rows ────┘

What was decided is remembered for the session (`prepared.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from time import perf_counter

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from querymesh.arrays import Ints
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.profile.bounded_profile import (
    FIRST_ROWS,
    called_by_users,
    followed_by,
    profile_within,
)
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.fabric.profile.profiler import profile_counted
from querymesh.fabric.profile.remembered_costs import Remembered, with_remembered
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.written import written_in_stages
from querymesh.optimize.placement.costs import Costs
from querymesh.optimize.placement.decide import PLAIN, Decision, decide
from querymesh.optimize.placement.worth import (
    MOST_SAMPLE_ROWS,
    Job,
    next_sample_rows,
    worth_learning,
)
from querymesh.optimize.train.describe import best_single, route_search_for
from querymesh.optimize.train.training import Training
from querymesh.query.costly.in_run import TaskTallies, is_asked_once
from querymesh.runtime.preparation import Preparation
from querymesh.spark.context import parallelism
from querymesh.spark.filters.filter_job import FilterJob, answered_by_spark
from querymesh.spark.filters.learning.evidence import Evidence
from querymesh.spark.filters.learning.limits import (
    FURTHER_S,
    GLIMPSE_ROWS,
    LEAST_BUDGET_S,
    LEAST_LOOKED_AT,
    LOOK_BUDGET_S,
    LOOKED_AT,
    MOST_BUDGET_S,
    PYTHON_START_S,
    SAMPLE_BYTES,
    SPARE,
    TOO_DEAR,
    TOO_SMALL,
    UNKNOWN_ROWS,
)
from querymesh.spark.filters.learning.priced_sample import money_us, most_priced_rows, rows_worth
from querymesh.spark.filters.native import can_run_plainly
from querymesh.spark.filters.operator_costs import LONG_TEXT, PACKED, OperatorCosts, text_bytes
from querymesh.spark.filters.sampled_columns import opaque_parts, sampled_columns
from querymesh.spark.filters.staged import tellable
from querymesh.spark.prices.condition_costs import mean_bytes
from querymesh.spark.prices.price_loop import priced_stage
from querymesh.spark.sampling.bounded_sample import NoSample, bounded_sample
from querymesh.spark.sampling.glance import glance_at
from querymesh.spark.sampling.plan_statistics import PlanStatistics, plan_statistics
from querymesh.spark.sampling.quick_look import quick_look
from querymesh.spark.workers.worker_python import told_of_worker_python
from querymesh.stats.profile import Profile


class Learning:
    """One filter being learned; `evidence` is there once a sample was profiled."""

    def __init__(self, job: FilterJob, training: Training, one_route: bool) -> None:
        self.job = job
        self.training = training
        self.one_route = one_route
        self.insist = training.insist or job.sample is not None
        self.started = perf_counter()
        self.asked = answered_by_spark(job.bound, job.columns)
        self.kept = 1.0
        self.lengths: Mapping[str, float] = {}
        self.evidence: Evidence | None = None
        self._tallies = TaskTallies(self.asked.query.functions)

    @cached_property
    def statistics(self) -> PlanStatistics:
        """What the plan of a batch tells by itself."""
        return plan_statistics(self.job.source)

    @cached_property
    def tasks(self) -> int:
        """How many tasks run at once."""
        return parallelism(self.job.whole.sparkSession)

    @cached_property
    def is_small(self) -> bool:
        """Whether learning cannot pay, by a glance at the sources: most jobs that last a tenth of a
        second are known by it, and Spark need not plan them twice."""
        if self.insist:
            return False
        seen = glance_at(self.job.whole)
        if seen is None:
            return False
        if self._pays_s(seen.rows, LONG_TEXT) < LOOK_BUDGET_S:
            return True
        # What Catalyst computes is in no file: there is no look into them.
        by_files = text_bytes(seen.bytes, seen.rows)
        return bool(opaque_parts(self.asked)) and self._pays_s(seen.rows, by_files) < LEAST_BUDGET_S

    def _pays_s(self, rows: float, text_bytes: float) -> float:
        """What learning may take for so many rows, with texts of so many bytes."""
        costs = OperatorCosts(self.job, self.asked, text_bytes)
        return worth_learning(costs.plain_range_us(), rows, self.tasks)

    @cached_property
    def rows(self) -> float | None:
        """About how many rows the job has; None where nobody knows, as of a stream."""
        if self.job.source.isStreaming:
            return None
        estimate = self.statistics.estimated_rows()
        return None if estimate is None else estimate.rows

    @cached_property
    def can_pay(self) -> bool:
        """Whether the plan's own statistics, and a look at its files, leave room for learning."""
        if self._affordable_s(self.costs.plain_range_us(LONG_TEXT)) < LOOK_BUDGET_S:
            return False
        least_s = LEAST_BUDGET_S if self.looked_at is None else LOOK_BUDGET_S
        return self._affordable_s(self.costs.plain_range_us()) >= least_s

    @cached_property
    def looked_at(self) -> pa.Table | None:
        """Rows of the files that were looked at without Spark; None where it must be asked.

        What was seen sharpens what operators cost and how many rows they meet.
        """
        job = self.job
        if self.insist or opaque_parts(self.asked) or len(self.statistics.sources) != 1:
            return None
        sources = self.statistics.sources
        look = quick_look(self.statistics.plan, sources[0])
        if look is None:
            return None
        schema = job.bound.schemas[job.bound.source.alias]
        read = tellable(job.bound, most=0)
        rows = LOOKED_AT * self.training.sample_rows
        found = look.rows(rows, schema, read, telling=tellable(job.bound))
        if found is None or found.table.num_rows < LEAST_LOOKED_AT:
            return None
        self.kept, self.lengths = found.kept, mean_bytes(found.table)
        return found.table

    @property
    def seconds(self) -> float:
        """What learning has taken so far."""
        return perf_counter() - self.started

    def learn(self) -> Preparation:
        """The plan's own statistics first; then a look, or a sample, where that can pay."""
        if not self.insist and not self.can_pay:
            return self.as_written(TOO_SMALL)
        taken = self.take(SPARE * self.training.sample_rows)
        if isinstance(taken, NoSample):
            return self.as_written(f"{taken.reason}: it runs as written")
        if taken.num_rows == 0:
            return self.as_written("the sample is empty: it runs as written")
        if not self.insist and not called_by_users(self.asked):
            plain_us = self._glimpse_us(taken)
            if self._affordable_s((0.0, plain_us)) < FURTHER_S:
                return self.as_written(
                    f"as written a row takes about {plain_us:.2g} µs, and learning more would cost "
                    "more than it is sure to save: it runs as written"
                )
        return self._from(taken)

    def _glimpse_us(self, taken: pa.Table) -> float:
        """What a row costs in plain Spark as written, by a few rows and the table of prices."""
        few = taken.take(pa.array(self._shuffled(taken)[:GLIMPSE_ROWS]))
        profile, _ = profile_counted(self.asked, few, {}, self.job.on_error, timed=False)
        us = self.costs.in_catalyst(taken, budget_s=0.0).us
        written = tuple(range(1, profile.operators + 1))
        return float(replace(profile, drop_us=us, pass_us=us).realized_us(written).mean())

    def _shuffled(self, taken: pa.Table) -> Ints:
        """The rows' numbers in a random order, so that a few stand for all."""
        return np.random.default_rng(self.training.seed).permutation(taken.num_rows)

    def _from(self, taken: pa.Table) -> Preparation:
        """Profile some of the sampled rows, and more of them as long as it is in doubt."""
        bound, on_error = self.asked, self.job.on_error
        order = self._shuffled(taken)
        bytes_of = {name: taken.column(name).nbytes / taken.num_rows for name in taken.column_names}
        table = self.costs.in_catalyst(taken, budget_s=0.0)

        priced_us = money_us(self.job.functions, taken, self.job.budget)

        def budget_s(row_s: float) -> float:
            plain_us = table.together_us + 1e6 * row_s + priced_us
            return self._budget_s((0.0, plain_us)) - self.seconds

        most = self._most_rows(taken, order, {})
        if most < min(FIRST_ROWS, taken.num_rows):
            return self.as_written(TOO_DEAR)
        first = taken.take(pa.array(order[: min(self.training.sample_rows, most)]))
        profile = profile_within(bound, first, {}, on_error, budget_s)
        row_us = table.together_us + self._called_us(profile)
        if not self.insist and self._affordable_s((0.0, row_us)) < FURTHER_S:
            written = self.as_written(
                f"all conditions together take about {row_us:.2g} µs a row, too little for "
                "learning to pay: it runs as written",
                profile,
            )
            return replace(written, plainly=self._spark_can)
        native = self.costs.in_catalyst(taken, budget_s(self._called_us(profile) / 1e6))
        if not self.insist and not native.sure:
            return self.as_written(
                "what a condition costs in Catalyst can only be guessed, and to time it would cost "
                "more than it is sure to save: it runs as written",
                profile,
            )
        while True:
            # As they arrived: an id that only grows is told by that.
            arrived = profile.take(np.argsort(order[: profile.rows]))
            told_by = [name for name in taken.column_names if name in self._told_apart_by]
            ordered = replace(arrived, sample=arrived.sample.select(told_by))
            remembered = self._remembered(ordered)
            ordered = remembered.profile
            costs = self.costs.of_profile(remembered, native, bytes_of)
            decision = self._decide(ordered, costs)
            self.evidence = Evidence(ordered, costs, taken)
            more = next_sample_rows(
                profile.rows,
                in_doubt=decision.in_doubt,
                row_s=self.seconds / profile.rows,
                budget_s=budget_s(self._called_us(profile) / 1e6),
                most_rows=min(self.training.most_sample_rows, most),
            )
            if not more:
                return self._result(decision, profile)
            further = taken.take(pa.array(order[profile.rows : more]))
            profile = followed_by(profile, bound, further, {}, on_error)

    @property
    def _told_apart_by(self) -> list[str]:
        """The columns that kinds of rows may be told apart by: none that Catalyst computed."""
        return list(self.job.bound.schemas[self.job.bound.source.alias].names)

    def _result(self, decision: Decision, profile: Profile) -> Preparation:
        plain = decision.chosen == PLAIN
        mesh = self._written(decision.why) if plain else decision.mesh
        found = Preparation(mesh, decision, self.seconds, profile.rows, self._calls())
        found = replace(found, plainly=plain and self._spark_can)
        if self.evidence is None or found.plainly:
            return found
        priced = self.costs.in_catalyst(self.evidence.sample, budget_s=0.0).us
        return replace(found, priced=priced_stage(mesh, profile, priced, self.job.prices))

    def as_written(self, why: str, profile: Profile | None = None) -> Preparation:
        """As written; `profile` is what was asked until that was clear."""
        rows, calls = (0, 0) if profile is None else (profile.rows, self._calls())
        return Preparation(self._written(why), None, self.seconds, rows, calls)

    @property
    def _spark_can(self) -> bool:
        """Whether Spark's own filter could run it, functions and all, as well as plain Spark."""
        if self.job.source.isStreaming or self.job.on_error != "raise":
            return False
        if any(map(is_asked_once, self.job.bound.query.functions.values())):
            return False
        return can_run_plainly(self.job.bound, self.job.columns)

    def _written(self, why: str) -> Mesh:
        return written_in_stages(self.job.bound, why)

    def _called_us(self, profile: Profile) -> float:
        """What all Python functions together take for a row of which nothing is remembered."""
        called_us = self._remembered(profile).called_us
        return float(called_us[called_by_users(self.asked)].sum())

    def _remembered(self, profile: Profile) -> Remembered:
        return with_remembered(profile, self.asked, self._job_rows)

    def _most_rows(self, taken: pa.Table, order: Ints, tables: Mapping[str, LookupTable]) -> int:
        """About how many sampled rows functions may be asked; if they have a price, by what the
        first ones told."""
        rows = math.inf if self.insist else self._job_rows
        most = most_priced_rows(self.job.functions, taken, rows, self.job.budget)
        priced = [each for each in self.job.functions if each.price]
        # Of what is not remembered the first rows would be asked about twice.
        looked = priced and all(each.may_be_remembered for each in priced)
        if self.insist or most <= FIRST_ROWS or not looked:
            return most
        few = taken.take(pa.array(order[:FIRST_ROWS]))
        profile, _ = profile_counted(self.asked, few, tables, self.job.on_error)
        profile = self._remembered(profile).profile
        best = best_single(profile, route_search_for(profile, self.training))
        best_us = float(profile.realized_us(best).mean())
        return min(most, rows_worth(profile, best_us, self._job_rows))

    @property
    def _job_rows(self) -> float:
        return UNKNOWN_ROWS if self.rows is None else self.rows * self.kept

    def _calls(self) -> int:
        """How many rows Python functions were asked about."""
        return sum(tally.asked for tally in self._tallies.taken().values())

    @property
    def costs(self) -> OperatorCosts:
        """What operators cost, as far as the machine's table tells before there is a sample."""
        return OperatorCosts(self.job, self.asked, self._text_bytes, self.lengths)

    @cached_property
    def _text_bytes(self) -> float:
        """How long texts may be on average, by the bytes that a row has in its files."""
        return LONG_TEXT if self.rows is None else text_bytes(self.statistics.bytes, self.rows)

    def _budget_s(self, plain_us: tuple[float, float]) -> float:
        """What learning may still take; enough for anything where it is insisted upon."""
        return MOST_BUDGET_S if self.insist else self._affordable_s(plain_us)

    def _affordable_s(self, plain_us: tuple[float, float]) -> float:
        """What learning may take if it is to pay for itself."""
        rows = UNKNOWN_ROWS if self.rows is None else self.rows * self.kept
        return min(worth_learning(plain_us, rows, self.tasks), MOST_BUDGET_S)

    def take(self, rows: int) -> pa.Table | NoSample:
        """A sample with the columns that tell kinds apart, and what Catalyst computes."""
        job = self.job
        schema = job.bound.schemas[job.bound.source.alias]
        if self.looked_at is not None:
            return self.looked_at
        computed = job.columns.sampled
        wanted = {part.key for part in opaque_parts(self.asked)}
        if isinstance(job.sample, pa.Table):
            if not wanted:
                return job.sample.select(schema.names).slice(0, rows)
            frame = job.whole.sparkSession.createDataFrame(job.sample)
        else:
            frame = job.source if job.sample is None else job.sample
        if frame is not job.source:
            computed = job.columns.on(job.source, frame)
        extra = {key: column for key, column in computed.items() if key in wanted}
        try:
            with told_of_worker_python():  # functions that only tasks can call are, here
                taken = bounded_sample(
                    frame,
                    min(rows, self._affordable_rows),
                    columns=sampled_columns(job.bound),
                    extra=extra,
                    seed=self.training.seed,
                )
        except (PySparkException, Py4JJavaError) as problem:
            if job.sample is not None:  # who gave it wants to know
                raise
            said = str(problem).strip().partition("\n")[0]
            return NoSample(f"a sample could not be taken ({said[:200]})")
        return taken if isinstance(taken, NoSample) else taken.table

    @property
    def _affordable_rows(self) -> int:
        """How many rows a sample may have, if they are as long as their files say."""
        rows = self.rows
        size = self.statistics.bytes if rows else None
        if not rows or size is None:
            return MOST_SAMPLE_ROWS
        return max(LEAST_LOOKED_AT, int(SAMPLE_BYTES / max(1.0, PACKED * size / rows)))

    def _decide(self, profile: Profile, costs: Costs) -> Decision:
        # Who insists on learning asks what is best for a row.
        known = None if self.insist or self.rows is None else self.rows * self.kept
        job = Job(
            rows=known,
            parallelism=self.tasks,
            python_start_s=PYTHON_START_S,
            learned_s=self.seconds,
        )
        overheads = calibrate(self.training.window)
        return decide(
            self.job.bound.query, profile, costs, overheads, job, self.training,
            one_route=self.one_route,
        )  # fmt: skip
