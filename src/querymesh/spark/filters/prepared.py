"""What a filter was decided to be, remembered for the session by plan and conditions."""

from __future__ import annotations

from dataclasses import replace

from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.learned_line import tell_learned
from querymesh.optimize.train.training import Training
from querymesh.runtime.preparation import Preparation
from querymesh.runtime.worker_cache import WorkerCache
from querymesh.spark.filters.filter_job import FilterJob
from querymesh.spark.filters.learning import TOO_SMALL, Learning
from querymesh.spark.filters.written import written_in_stages

KEPT = 64
"""Decisions that a session remembers."""


class StagedTrainer:
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


_decided: WorkerCache[tuple[object, ...], Preparation] = WorkerCache(KEPT)


def prepared(job: FilterJob, training: Training, *, one_route: bool) -> Preparation:
    """How the filter should run, by what an earlier call decided or by a sample."""
    learning = Learning(job, training, one_route)
    if learning.is_small:
        return learning.as_written(TOO_SMALL)
    key = _identity(job, training, one_route)
    known = _decided.get(key)
    if known is not None:
        _decided.put(key, known)
        return replace(known, remembered=True)
    found = learning.learn()
    _decided.put(key, found)
    if found.decision is not None:
        tell_learned(found.sample_rows, found.seconds, found.decision.why, found.calls)
    return found


def keep(job: FilterJob, training: Training, found: Preparation, *, one_route: bool) -> None:
    """Remember for this session what was decided: who asks the same again need not learn it."""
    _decided.put(_identity(job, training, one_route), found)


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
        id(job.whole.sparkSession), plan, job.bound.query.sql, functions, sampled, one_route,
        repr(training), job.on_error,
    )  # fmt: skip
