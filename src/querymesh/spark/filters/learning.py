"""Learning that pays for itself: what a filter may spend on finding out how to run.

::

    plan's own statistics ─> small, or cheap? ──────────────────────────────────────> as written
            │ no: a budget, a share of what could be saved
    a bounded sample ─> profile (each function once a row) ─> decide ─> worth it? ─no─> as written
                              ^                                  │ in doubt, budget left
                              └──────── twice as many rows ──────┘

What was decided is remembered for the session, by plan and conditions.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.arrays import Floats, Ints
from querymesh.cost.catalyst_cost import estimate_us
from querymesh.fabric.profile.bounded_profile import (
    called_by_users,
    followed_by,
    profile_within,
)
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.placement.costs import Costs
from querymesh.optimize.placement.decide import PLAIN, Decision, decide
from querymesh.optimize.placement.worth import Job, next_sample_rows, worth_learning
from querymesh.optimize.train.training import Training
from querymesh.query.expr import Opaque, opaque_parts_of, user_calls_of
from querymesh.query.model import BoundQuery, Filter, Operator
from querymesh.runtime.preparation import Preparation
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.context import parallelism
from querymesh.spark.filters.native import CatalystColumns
from querymesh.spark.filters.staged import read_by
from querymesh.spark.filters.written import needs_python, written_in_stages
from querymesh.spark.sampling.bounded_sample import NoSample, bounded_sample
from querymesh.spark.sampling.plan_statistics import plan_statistics
from querymesh.stats.profile import Profile

log = logging.getLogger("querymesh")

LEAST_BUDGET_S = 0.25
"""A sample takes about as long: a job that cannot pay for it is not sampled."""

MOST_BUDGET_S = 20.0
"""However large the job, learning takes no longer."""

UNKNOWN_ROWS = 1_000_000
"""What a job is taken for whose size nobody knows."""

PYTHON_US = (1.0, 50.0)
"""What one call of a Python function may cost, before anybody has called it."""

SPARE = 4
"""So many times the rows that are profiled first are sampled, in case they leave it in doubt."""

CATALYST_DOUBT = 1.5
"""Catalyst's costs are told by a table: they may be too high by this factor."""

CROSSING_US, BYTE_US = 0.7, 0.001
"""A row's way to Python and back: its fixed price, and that of each byte."""

PYTHON_START_S = 0.3
"""What the first Python workers take to start."""

REMOTE_US = 10.0
"""What a call is taken to cost of a function that the driver cannot make, and so cannot time."""

KEPT = 64
"""Decisions that a session remembers."""


@dataclass(frozen=True)
class FilterJob:
    """A filter about to run, and all that is known of it beforehand."""

    source: DataFrame
    bound: BoundQuery
    columns: CatalystColumns
    trees: Mapping[int, Node]
    sample: DataFrame | pa.Table | None
    on_error: str


class StagedTrainer:
    """Learns how one filter should run; `preparation` is what came of it."""

    def __init__(self, job: FilterJob) -> None:
        self.job = job
        self.preparation: Preparation | None = None

    def train(
        self, training: Training, *, one_route: bool
    ) -> tuple[dict[str, Mesh], dict[str, float]]:
        """The mesh by alias, with the stages in which it runs."""
        self.preparation = prepared(self.job, training, one_route=one_route)
        return {self.job.bound.source.alias: self.preparation.mesh}, {}


_decided: OrderedDict[tuple[object, ...], Preparation] = OrderedDict()


def prepared(job: FilterJob, training: Training, *, one_route: bool) -> Preparation:
    """How the filter should run, by what an earlier call decided or by a sample."""
    key = _identity(job, training, one_route)
    if key in _decided:
        _decided.move_to_end(key)
        return replace(_decided[key], remembered=True)
    found = _Learning(job, training, one_route).learn()
    _decided[key] = found
    while len(_decided) > KEPT:
        _decided.popitem(last=False)
    _tell(found)
    return found


def _identity(job: FilterJob, training: Training, one_route: bool) -> tuple[object, ...]:
    """The same plan, conditions and functions in the same session."""
    # A UDF is taken out of its Column anew each time: its pickled form tells it.
    functions = tuple(
        (name, getattr(each.fn, "commands", id(each.fn)))
        for name, each in job.bound.query.functions.items()
    )
    plan = job.source.semanticHash()
    sampled = id(job.sample) if job.sample is not None else None
    return (
        id(job.source.sparkSession), plan, job.bound.query.sql, functions, sampled, one_route,
        repr(training), job.on_error,
    )  # fmt: skip


def _as_spark_answers(bound: BoundQuery, columns: CatalystColumns) -> BoundQuery:
    """The query with functions that only tasks can call as columns that Spark computes."""

    def answered(operator: Operator) -> Operator:
        called = user_calls_of(operator.expr) if isinstance(operator, Filter) else frozenset()
        keys = [columns.remote[name] for name in sorted(called) if name in columns.remote]
        if not isinstance(operator, Filter) or not keys:
            return operator
        return replace(operator, expr=Opaque(operator.name, (), pa.bool_(), keys[0]))

    return replace(bound, operators=tuple(map(answered, bound.operators)))


def _is_opaque(operator: Operator) -> bool:
    return isinstance(operator, Filter) and bool(opaque_parts_of(operator.expr))


def _tell(found: Preparation) -> None:
    if found.decision is not None:
        log.info(
            "learned from %s rows in %.1f s (%s calls of Python functions): %s",
            f"{found.sample_rows:,}", found.seconds, f"{found.calls:,}", found.decision.why,
        )  # fmt: skip


class _Learning:
    """One filter being learned."""

    def __init__(self, job: FilterJob, training: Training, one_route: bool) -> None:
        self.job = job
        self.training = training
        self.one_route = one_route
        self.insist = training.insist or job.sample is not None
        self.started = perf_counter()
        self.asked = _as_spark_answers(job.bound, job.columns)

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    def learn(self) -> Preparation:
        """The plan's own statistics first; a sample only where that can pay."""
        rows = self._estimated_rows()
        budget_s = self._budget_s(self._plain_range_us(), rows)
        if not self.insist and budget_s < LEAST_BUDGET_S:
            return self._as_written(
                "the job is too small, or its conditions too cheap, for learning to pay: it runs "
                "as written"
            )
        taken = self._take(SPARE * self.training.sample_rows)
        if isinstance(taken, NoSample):
            return self._as_written(f"{taken.reason}: it runs as written")
        if taken.num_rows == 0:
            return self._as_written("the sample is empty: it runs as written")
        return self._from(taken, rows)

    def _from(self, taken: pa.Table, rows: float | None) -> Preparation:
        """Profile some of the sampled rows, and more of them as long as it is in doubt.

        Rows are profiled in a random order, so that a few stand for all.
        """
        bound, on_error = self.asked, self.job.on_error
        order = np.random.default_rng(self.training.seed).permutation(taken.num_rows)
        bytes_of = {name: taken.column(name).nbytes / taken.num_rows for name in taken.column_names}
        native_us = self._native_us(bytes_of)

        def budget_s(row_s: float) -> float:
            plain_us = float(native_us[np.isfinite(native_us)].sum()) + 1e6 * row_s
            return self._budget_s((0.0, plain_us), rows) - self.seconds

        first = taken.take(pa.array(order[: self.training.sample_rows]))
        profile = profile_within(bound, first, {}, on_error, budget_s)
        while True:
            ordered = self._in_arrival_order(profile, order)
            costs = self._costs(ordered, native_us, bytes_of)
            decision = self._decide(ordered, costs, rows)
            user_s = float(profile.cost_us[called_by_users(bound)].sum()) / 1e6
            more = next_sample_rows(
                profile.rows,
                in_doubt=decision.in_doubt,
                row_s=self.seconds / profile.rows,
                budget_s=budget_s(user_s),
                most_rows=min(self.training.most_sample_rows, taken.num_rows),
            )
            if not more:
                return self._result(decision, profile)
            further = taken.take(pa.array(order[profile.rows : more]))
            profile = followed_by(profile, bound, further, {}, on_error)

    def _in_arrival_order(self, profile: Profile, order: Ints) -> Profile:
        """The profile with its rows as they arrived, by which an id that only grows is told, and
        without the columns that Catalyst computed: no kinds are told apart by them."""
        names = self.job.bound.schemas[self.job.bound.source.alias].names
        sorted_rows = np.argsort(order[: profile.rows])
        return replace(
            profile.take(sorted_rows),
            sample=profile.sample.select(names).take(pa.array(sorted_rows)),
        )

    def _result(self, decision: Decision, profile: Profile) -> Preparation:
        mesh = decision.mesh
        if decision.chosen == PLAIN:
            mesh = written_in_stages(self.job.bound, decision.why)
        calls = profile.rows * len(called_by_users(self.asked))
        return Preparation(mesh, decision, self.seconds, profile.rows, calls)

    def _as_written(self, why: str) -> Preparation:
        return Preparation(written_in_stages(self.job.bound, why), None, self.seconds)

    def _estimated_rows(self) -> float | None:
        estimate = plan_statistics(self.job.source).estimated_rows()
        return None if estimate is None else estimate.rows

    def _budget_s(self, plain_us: tuple[float, float], rows: float | None) -> float:
        """What learning may still take; enough for anything where it is insisted upon."""
        if self.insist:
            return MOST_BUDGET_S
        tasks = parallelism(self.job.source.sparkSession)
        budget = worth_learning(plain_us, UNKNOWN_ROWS if rows is None else rows, tasks)
        return min(budget, MOST_BUDGET_S)

    def _plain_range_us(self) -> tuple[float, float]:
        """What a row costs in plain Spark: at the least, and at the most."""
        least = most = 0.0
        for operator in self.job.bound.operators:
            if needs_python(operator):
                low, high = PYTHON_US
            else:
                estimate = estimate_us(self.job.trees[operator.index], {})
                low, high = estimate.us / estimate.factor, estimate.us * estimate.factor
            least, most = least + low, most + high
        return least, most

    def _native_us(self, bytes_of: Mapping[str, float]) -> Floats:
        """What each operator costs in Catalyst; infinite for a Python function."""
        return np.array(
            [
                np.inf
                if needs_python(operator)
                else estimate_us(self.job.trees[operator.index], bytes_of).us
                for operator in self.job.bound.operators
            ]
        )

    def _take(self, rows: int) -> pa.Table | NoSample:
        """A sample with the columns that tell kinds apart, and what Catalyst computes."""
        job = self.job
        schema = job.bound.schemas[job.bound.source.alias]
        computed = dict(job.columns.opaque)
        wanted = {part.key for part in self._opaque_parts()}
        if isinstance(job.sample, pa.Table):
            if not wanted:
                return job.sample.select(schema.names).slice(0, rows)
            frame = job.source.sparkSession.createDataFrame(job.sample)
        else:
            frame = job.source if job.sample is None else job.sample
        if frame is not job.source:
            computed = job.columns.on(job.source, frame)
        extra = {key: column for key, column in computed.items() if key in wanted}
        taken = bounded_sample(
            frame, rows, columns=schema.names, extra=extra, seed=self.training.seed
        )
        return taken if isinstance(taken, NoSample) else taken.table

    def _opaque_parts(self) -> list[Opaque]:
        parts = [
            part
            for operator in self.asked.operators
            if isinstance(operator, Filter)
            for part in opaque_parts_of(operator.expr)
        ]
        return list(dict.fromkeys(parts))

    def _costs(self, profile: Profile, native_us: Floats, bytes_of: Mapping[str, float]) -> Costs:
        """What each operator costs in Catalyst and in Python; infinite where it cannot run."""
        drop_us, pass_us = profile.drop_us.copy(), profile.pass_us.copy()
        for operator in self.job.bound.operators:
            at = operator.index - 1
            if not needs_python(operator):
                if _is_opaque(operator):
                    drop_us[at] = pass_us[at] = np.inf
            elif _is_opaque(self.asked.operators[at]):
                drop_us[at] = pass_us[at] = REMOTE_US

        def transport_us(operators: frozenset[int], columns: frozenset[str]) -> float:
            read = read_by(self.job.bound, operators) | columns
            return CROSSING_US + BYTE_US * sum(bytes_of.get(name, 8.0) for name in read)

        return Costs(native_us, drop_us, pass_us, transport_us, catalyst_doubt=CATALYST_DOUBT)

    def _decide(self, profile: Profile, costs: Costs, rows: float | None) -> Decision:
        job = Job(
            rows=rows,
            parallelism=parallelism(self.job.source.sparkSession),
            python_start_s=PYTHON_START_S,
            learned_s=self.seconds,
        )
        overheads = calibrate(self.training.window)
        return decide(
            self.job.bound.query, profile, costs, overheads, job, self.training,
            one_route=self.one_route,
        )  # fmt: skip
