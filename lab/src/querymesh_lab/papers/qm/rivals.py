"""Rivals on one query and one data set: profiled, trained, then run through Spark in turn.

All run on the same fabric with the same operators. What a run costs is read twice: the fabric's own
seconds, summed over its tasks, and the seconds of the whole Spark job. The paper's engine has no
border between two languages to carry tuples over, so its figures are compared with the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from querymesh.cost.route_time import Overheads
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.fabric.profile.profiler import profile_sample
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.model import BoundQuery, Query
from querymesh.spark.inputs import bind_inputs, static_tables
from querymesh.spark.remembered import inspect
from querymesh.spark.run import run
from querymesh.stats.profile import Profile
from querymesh_lab.bench import fingerprint
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.filters.contest import cached
from querymesh_lab.bench.fingerprint import Fingerprint
from querymesh_lab.bench.measure import CONTROL, Timing, interleave

QM, SP = "QM", "SP"
WINDOW = 50_000
"""Tuples classified together. The paper's 1000 suit an engine that works tuple by tuple; one that
works on vectors pays for each ruster at each operator, and wants them large."""

SAMPLE = 4000
ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


@dataclass(frozen=True)
class LookUpSubject:
    """A query with its source and its static partners; `source` names the source."""

    query: Query
    source: str
    table: pa.Table
    partners: Mapping[str, pa.Table]

    def profile(self, rows: int) -> Profile:
        """What every operator does with the first rows, which come in random order."""
        sample = self.table.slice(0, rows)
        given = bind_inputs(self.query, {self.source: sample, **self.partners})
        bound, data = given.bound, given.data
        assert isinstance(bound, BoundQuery)
        return profile_sample(bound, sample, make_tables(bound, static_tables(bound, data)))


def paper_training(**changes: object) -> Training:
    """Table 1's strategies (route-driven, II, k = 3), on a larger sample and window."""
    settings: dict[str, object] = {"sample_rows": SAMPLE, "window": WINDOW}
    return Training(**{**settings, **changes})  # type: ignore[arg-type]


def overheads() -> Overheads:
    """What a test and a ruster cost on this machine, at our window."""
    return calibrate(WINDOW)


def train_rivals(subject: LookUpSubject, profile: Profile, seed: int = 0) -> dict[str, Mesh]:
    """QM's mesh, and SP's plan: the best single order of the same profiled sample.

    It is found by dynamic programming over the joint outcomes, so it is at least MJoin's [14] best
    plan, which knows each operator's own selectivity only.
    """
    seen = profile.take(np.arange(min(SAMPLE, profile.rows)))
    training = paper_training(seed=seed)
    return {
        QM: train_mesh(subject.query, seen, overheads(), training),
        SP: train_mesh(subject.query, seen, overheads(), training, one_route=True),
    }


@dataclass
class LookUpRace:
    """Rivals timed against each other; `fabric` and `job` are two readings of the same runs."""

    fabric: Timing
    job: Timing
    last: Mapping[str, Metrics]


@dataclass
class _Runs:
    """What each run of a rival took, in order."""

    fabric: list[float] = field(default_factory=list)
    job: list[float] = field(default_factory=list)
    last: Metrics = field(default_factory=Metrics)


def race(
    bench: Bench, subject: LookUpSubject, meshes: Mapping[str, Mesh], rounds: int
) -> LookUpRace:
    """Run the rivals interleaved, with the first of them twice a round; all must agree."""
    runs = {name: _Runs() for name in meshes}
    warm_ups = 1
    with arrow_batches(bench.session):
        source = cached(bench.session, subject.table)
        inputs: dict[str, DataFrame | pa.Table] = {subject.source: source, **subject.partners}
        actions: dict[str, Callable[[], Fingerprint]] = {
            name: partial(_run, mesh, inputs, runs[name]) for name, mesh in meshes.items()
        }
        timing = interleave(actions, rounds, warm_ups=warm_ups, log=bench.log)
        source.unpersist()
    return LookUpRace(
        fabric=_timing({name: run.fabric for name, run in runs.items()}, timing, warm_ups),
        job=_timing({name: run.job for name, run in runs.items()}, timing, warm_ups),
        last={name: run.last for name, run in runs.items()},
    )


def _run(mesh: Mesh, inputs: Mapping[str, DataFrame | pa.Table], runs: _Runs) -> Fingerprint:
    started = perf_counter()
    out = run(mesh, inputs, engine="fabric")
    answer = fingerprint.of_ids(out)
    runs.job.append(perf_counter() - started)
    runs.last = inspect(out).counts
    runs.fabric.append(runs.last.total_seconds)
    return answer


def _timing(seconds: Mapping[str, list[float]], of: Timing, warm_ups: int) -> Timing:
    """The runs by contender: the control's are every second one of the contender it repeats."""
    by_name = {
        name: tuple(taken[warm_ups:]) for name, taken in seconds.items() if name != of.control
    }
    twice = seconds[of.control][2 * warm_ups :]
    by_name[of.control], by_name[CONTROL] = tuple(twice[::2]), tuple(twice[1::2])
    return Timing(by_name, of.control, of.answer)


@contextmanager
def arrow_batches(session: SparkSession, rows: int = WINDOW) -> Iterator[None]:
    """Arrow batches of so many rows, a whole classification window, while this lasts."""
    before = session.conf.get(ARROW_ROWS)
    session.conf.set(ARROW_ROWS, str(rows))
    try:
        yield
    finally:
        session.conf.set(ARROW_ROWS, before or "10000")
