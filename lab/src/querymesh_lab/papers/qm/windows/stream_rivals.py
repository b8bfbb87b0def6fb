"""Rivals on a join of windowed streams: profiled and trained alike, then run in turns.

What a run costs is read twice: the join core alone, in this process and by its processor time
(`core_run`), and a whole Spark job by the clock. The paper's engine has no border between
two languages to carry tuples over, so its figures are compared with the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.cost.route_time import Overheads
from querymesh.fabric.profile.calibrate_join import asking_us, leaf_us
from querymesh.fabric.profile.join_profile import SampledJoin
from querymesh.fabric.routers.make_eddy import CBR
from querymesh.fabric.routers.routing import Routing
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.spark.run import run
from querymesh.stats.profile import Profile
from querymesh_lab.bench import fingerprint
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.filters.contest import cached
from querymesh_lab.bench.fingerprint import Fingerprint
from querymesh_lab.bench.joins.core_run import (
    CoreRun,
    Routers,
    as_batches,
    by_eddies,
    by_meshes,
    run_core,
)
from querymesh_lab.bench.limits import effort_of_mesh, limits
from querymesh_lab.bench.measure import Log, RivalsDisagreeError, Timing, interleave, silent
from querymesh_lab.papers.qm.rivals import QM, SP, arrow_batches, paper_training
from querymesh_lab.papers.qm.windows.ten_streams import TenStreams

STEP = 10_000
"""Tuples of all ten streams that are taken at once: 1,000 of each are classified together (W^TC)
and dequeued at a time (Table 3)."""

SAMPLE_WINDOWS = 2.2
"""Length of the sampled stretch: tuples of its second half meet full windows."""

ARROW_BATCH = 100_000
"""Rows that a Spark job carries to Python at once."""

MR, MR_BATCHES = "MR+CBR", "MR+CBR in batches"
"""The Eddy with content-based routing: each tuple on its own way, or in naive batches [13]."""

BATCH = 100
"""Tuples that arrived one after the other and travel together (§ 6.2)."""

EDDIES: Mapping[str, Routing] = {
    MR: Routing(),
    MR_BATCHES: Routing(chunk=BATCH, one_route_per_chunk=True),
}
"""What each form of the Eddy runs with, here and in Figure 11."""

CALIBRATIONS = 7
SHARDS = 2
Profiles = Mapping[str, Profile]


@dataclass(frozen=True)
class StreamSubject:
    """A join of streams, its data, and a stretch of the same kind of data to learn from."""

    design: TenStreams
    windows: float

    @property
    def join(self) -> JoinQuery:
        """The query with its columns known."""
        schema = self.design.tables(0)["S0"].schema
        return bind_join(self.design.query(), {a.upper(): schema for a in self.design.aliases})

    def tables(self) -> dict[str, pa.Table]:
        """All rows of each stream, by name."""
        return self.design.tables(self.windows)

    def profiles(self, rows: int) -> Profiles:
        """What every probe does with so many tuples of each stream.

        All probes are of one kind and their windows about as long, so what their measured costs
        differ by is noise, which only adds: each counts with one of the least.
        """
        sample = self.design.tables(SAMPLE_WINDOWS, seed=1)
        join = self.join
        sampled = SampledJoin(join, as_batches(_by_alias(sample)), {})
        found = {alias: sampled.profile(alias, rows, seed=0) for alias in join.aliases}
        cost_us = float(np.quantile([profile.drop_us for profile in found.values()], 0.1))
        even = np.full(len(join.aliases) - 1, cost_us)
        return {a: replace(profile, drop_us=even, pass_us=even) for a, profile in found.items()}


def _by_alias(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {name.lower(): table for name, table in tables.items()}


def quiet_overheads(window: int) -> Overheads:
    """What tests and leaves cost a join, in windows of so many tuples of a stream."""
    return Overheads(*_quiet_prices(), window)


@cache
def _quiet_prices() -> tuple[float, float]:
    """The least of several readings, since a busy machine only adds."""
    test_us = min(asking_us.__wrapped__() for _ in range(CALIBRATIONS))
    return test_us, min(leaf_us.__wrapped__() for _ in range(CALIBRATIONS))


def train_stream_rivals(
    join: JoinQuery, profiles: Profiles, step: int = STEP, training: Training | None = None
) -> dict[str, JoinMesh]:
    """QM's mesh for each stream, and SP's: MJoin's [14] best order for each stream.

    Each single order is found by dynamic programming over the joint outcomes of the sample that QM
    learns from, so it is at least as good as one by each stream's own selectivity.
    """
    window = max(step // len(join.aliases), 1)
    training = replace(training or paper_training(), window=window)
    overheads = quiet_overheads(window)
    made = {}
    for name, one_route in ((QM, False), (SP, True)):
        meshes = {
            alias: train_mesh(join.query, profile, overheads, training, one_route=one_route)
            for alias, profile in profiles.items()
        }
        made[name] = JoinMesh(join.query, meshes)
    return made


@dataclass(frozen=True)
class ProbesATuple:
    """Probes a tuple over profiled tuples, the mean of all streams: no machine changes them."""

    sp: float
    qm: float
    oracle: float
    bound: float
    results: float


def probes_a_tuple(
    design: TenStreams, profiles: Profiles, meshes: Mapping[str, JoinMesh]
) -> ProbesATuple:
    """Each rival's, those of the best order by true partition, and those of a clairvoyant."""
    found = []
    for alias, profile in profiles.items():
        partition = design.partition(np.asarray(profile.sample.column("symbol")))
        at_best = limits(profile, partition)
        assert at_best.oracle is not None
        found.append((
            effort_of_mesh(profile, meshes[SP].meshes[alias]).evaluations,
            effort_of_mesh(profile, meshes[QM].meshes[alias]).evaluations,
            at_best.oracle.evaluations,
            at_best.bound.evaluations,
            float(profile.outcomes.prod(axis=1).mean()),
        ))  # fmt: skip
    return ProbesATuple(*np.mean(found, axis=0).tolist())


@dataclass
class _Core:
    """Runs of the core; the clock is moved by what each run says it took."""

    join: JoinQuery
    streams: Mapping[str, pa.RecordBatch]
    step: int
    last: dict[str, CoreRun] = field(default_factory=dict)
    clock_s: float = 0.0

    def run(self, name: str, routers: Routers) -> tuple[int, ...]:
        """One rival; a number of results, and a sum for each of their columns."""
        answer = np.zeros(1 + len(self.join.outputs), np.int64)

        def sink(batch: pa.RecordBatch) -> None:
            answer[0] += batch.num_rows
            answer[1:] += [pc.sum(column).as_py() or 0 for column in batch.columns]

        self.last[name] = run_core(self.join, self.streams, routers, self.step, sink)
        self.clock_s += self.last[name].cpu_seconds
        return tuple(answer.tolist())


def race_core(
    subject: StreamSubject,
    rivals: Mapping[str, Routers],
    rounds: int,
    log: Log = silent,
    step: int = STEP,
    warm_ups: int = 1,
) -> tuple[Timing, Mapping[str, CoreRun]]:
    """The rivals on the core, interleaved, with the first of them twice a round; all must agree."""
    core = _Core(subject.join, as_batches(_by_alias(subject.tables())), step)
    actions = {name: partial(core.run, name, routers) for name, routers in rivals.items()}
    timing = interleave(actions, rounds, warm_ups=warm_ups, log=log, clock=lambda: core.clock_s)
    return timing, core.last


def on_meshes(meshes: Mapping[str, JoinMesh]) -> dict[str, Routers]:
    """The rivals that keep what they were trained to."""
    return {name: by_meshes(mesh.meshes) for name, mesh in meshes.items()}


def eddies() -> dict[str, Routers]:
    """Both forms of the Eddy, with nothing but what they learn in the run, as the paper's had."""
    return {name: by_eddies(CBR, routing) for name, routing in EDDIES.items()}


def race_jobs(
    bench: Bench, subject: StreamSubject, meshes: Mapping[str, JoinMesh], rounds: int
) -> Timing:
    """The rivals as whole Spark jobs by the clock, each over all rows in one batch; what they give
    must be what the core gives."""
    core = _Core(subject.join, as_batches(_by_alias(subject.tables())), ARROW_BATCH)
    expected = core.run(QM, by_meshes(meshes[QM].meshes))
    with arrow_batches(bench.session, ARROW_BATCH):
        frames = {name: cached(bench.session, table) for name, table in subject.tables().items()}

        def job(mesh: JoinMesh) -> Fingerprint:
            return fingerprint.of_ids(run(mesh, frames, shards=SHARDS))

        actions: dict[str, Callable[[], Fingerprint]] = {
            name: partial(job, mesh) for name, mesh in meshes.items()
        }
        timing = interleave(actions, rounds, log=bench.log)
        for frame in frames.values():
            frame.unpersist()
    if timing.answer[:2] != expected[:2]:
        raise RivalsDisagreeError(
            f"the Spark jobs gave {timing.answer[:2]} (results, sum of ids), the core gives "
            f"{expected[:2]}: their times cannot be compared"
        )
    return timing
