"""What a filter was decided to be, remembered for the session by plan and conditions."""

from __future__ import annotations

import weakref
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.mesh.mesh import Mesh
from querymesh.mesh.written import written_in_stages
from querymesh.optimize.train.learned_line import tell_learned
from querymesh.optimize.train.training import Training
from querymesh.query.predicate.predicate import Predicate
from querymesh.runtime.preparation import Preparation
from querymesh.spark.filters.filter_job import FilterJob
from querymesh.spark.filters.learning.fixed_engine import FixedEngineLearning
from querymesh.spark.filters.learning.learning import Learning
from querymesh.spark.filters.learning.limits import TOO_SMALL
from querymesh.spark.inputs import Data
from querymesh.spark.prices.machine_prices import price_level
from querymesh.worker_cache import WorkerCache

KEPT = 64
"""Decisions that a session remembers."""


class PreparedTrainer:
    """Learns how one filter should run; `preparation` is what came of it."""

    def __init__(self, job: FilterJob) -> None:
        self.job = job
        self.preparation: Preparation | None = None

    def train(
        self, training: Training, *, one_route: bool
    ) -> tuple[dict[str, Mesh], dict[str, float]]:
        """The mesh by alias, with the stages in which it runs."""
        bound = self.job.bound
        if not bound.operators:  # all is left to Spark
            return {bound.source.alias: written_in_stages(bound)}, {}
        self.preparation = prepared(self.job, training, one_route=one_route)
        return {bound.source.alias: self.preparation.mesh}, {}


OTHER_PRICES, OTHER_PRICES_LEARNED = 1.2, 2.0
"""By which factor prices must have been corrected since for what was decided to be decided anew: by
prices alone, which costs nothing, and from a sample."""

_decided: WorkerCache[tuple[object, ...], tuple[Preparation, float]] = WorkerCache(KEPT)


def learning_of(job: FilterJob, training: Training, *, one_route: bool) -> Learning:
    """What learns how the filter should run."""
    kind = Learning if job.engine == "auto" else FixedEngineLearning
    return kind(job, training, one_route)


def prepared(job: FilterJob, training: Training, *, one_route: bool) -> Preparation:
    """How the filter should run, by what an earlier call decided or by a sample."""
    learning = learning_of(job, training, one_route=one_route)
    if job.engine == "auto" and learning.is_small:
        return learning.as_written(TOO_SMALL)
    key = _identity(job, training, one_route)
    kept = _decided.get(key)
    if kept is not None and _still_holds(*kept, price_level(job.whole.sparkSession)):
        _decided.put(key, kept)
        return replace(kept[0], remembered=True)
    found = learning.learn()
    _decided.put(key, (found, price_level(job.whole.sparkSession)))
    if found.learned:
        why = found.mesh.why if found.decision is None else found.decision.why
        tell_learned(found.sample_rows, found.seconds, why, found.calls)
    return found


def keep(job: FilterJob, training: Training, found: Preparation, *, one_route: bool) -> None:
    """Remember for this session what was decided: who asks the same again need not learn it."""
    level = price_level(job.source.sparkSession)
    _decided.put(_identity(job, training, one_route), (found, level))


def _still_holds(found: Preparation, level: float, now: float) -> bool:
    """Whether prices are about what they were when it was decided."""
    most = OTHER_PRICES_LEARNED if found.learned else OTHER_PRICES
    return max(level / now, now / level) < most


def _identity(job: FilterJob, training: Training, one_route: bool) -> tuple[object, ...]:
    """The same plan, conditions and functions in the same session."""
    # A UDF is taken out of its Column anew each time: its pickled form tells it.
    functions = tuple((name, _function(each)) for name, each in job.bound.query.functions.items())
    plan = job.source.semanticHash()
    tables = tuple((alias, _same(each)) for alias, each in job.data.items())
    return (
        id(job.whole.sparkSession), plan, job.bound.query.sql, functions, _same(job.sample),
        tables, job.engine, job.named, one_route, repr(training), job.on_error, job.budget,
    )  # fmt: skip


def _function(each: Predicate) -> tuple[object, ...]:
    """The function itself, and what it costs and how it is called."""
    itself = getattr(each.fn, "commands", id(each.fn))
    how = each.calling, each.price, each.memo, each.proxy, each.deterministic, each.cost_us
    return itself, *how


def _same(given: Data | None) -> object:
    """What tells a table from others: its plan, or that it is the very same object."""
    if isinstance(given, DataFrame):
        return given.semanticHash()
    return None if given is None else _TheSame(given)


class _TheSame:
    """An Arrow table as part of a key: equal to itself alone, and to nothing once it is gone."""

    def __init__(self, table: pa.Table) -> None:
        self._table = weakref.ref(table)
        self._number = id(table)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        table = self._table()
        return isinstance(other, _TheSame) and table is not None and other._table() is table
