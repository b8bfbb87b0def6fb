"""The join core driven as a task drives it, in this process: no Spark, so that its time is its own.

Streams are cut into steps, at the same moments for all of them; each step is stored, probes, and
what is behind every window is forgotten and small partitions merged (`runtime/join_step.py`)::

    stream a   .....|.......|......|         a step holds about `step_rows` tuples of all streams
    stream b   ....|........|......|         and ends at the same time in each

Time is processor time of this process, which other programs hardly distort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import process_time
from typing import Protocol

import numpy as np
import pyarrow as pa

from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.router import MeshRouter, Router
from querymesh.fabric.core.tables import one_batch
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.indices import Indices
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.fabric.routers.make_eddy import make_eddy
from querymesh.fabric.routers.routing import Routing
from querymesh.index.store.codes import microseconds
from querymesh.index.store.partition import Partition
from querymesh.index.tune.tuner import Change, Tuner
from querymesh.mesh.mesh import Mesh
from querymesh.query.join import JoinQuery
from querymesh.query.model import Probe
from querymesh.runtime.join_step import JoinSteps, newest_us

Streams = Mapping[str, pa.RecordBatch]
Sink = Callable[[pa.RecordBatch], None]
Routers = Callable[[JoinFabric], Mapping[str, Router]]
"""Makes the router of each stream for a fabric that has not run yet."""


def by_meshes(meshes: Mapping[str, Mesh]) -> Routers:
    """Routers that follow the mesh of each stream."""
    return lambda fabric: {alias: MeshRouter(meshes[alias]) for alias in fabric.views}


def by_eddies(policy: str, routing: Routing) -> Routers:
    """An Eddy for each stream, which learns from the first step on."""
    return lambda fabric: {
        alias: make_eddy(policy, view.bound, routing, view.own)
        for alias, view in fabric.views.items()
    }


def ignore(_: pa.RecordBatch) -> None:
    """A sink for results that only have to be made."""


class Watcher(Protocol):
    """Whoever is told of each step, and may put other routers in place for the next."""

    def admitted(
        self, fabric: JoinFabric, arrivals: Mapping[str, Arrivals], stored: Mapping[str, Partition]
    ) -> None:
        """A step's tuples are stored, and have not probed yet."""

    def ended(self, fabric: JoinFabric, metrics: Mapping[str, Metrics]) -> None:
        """The step's tuples have probed; `metrics` are what that took, by stream."""


@dataclass
class CoreRun:
    """What a run did. `curve` has (processor seconds, results) so far after each step; the state's
    figures are those of all streams together, at their peak, `rows_of` the arrivals by stream."""

    metrics: Metrics = field(default_factory=Metrics)
    rows_of: dict[str, int] = field(default_factory=dict)
    probes: int = 0
    cpu_seconds: float = 0.0
    curve: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])
    state_rows: int = 0
    state_bytes: int = 0
    partitions: int = 0
    index_bytes: int = 0
    tuning_seconds: float = 0.0
    index_seconds: float = 0.0
    changes: list[Change] = field(default_factory=list)

    @property
    def probes_a_tuple(self) -> float:
        """Probes of all streams' tuples, by tuple that arrived."""
        return self.probes / max(self.metrics.rows_in, 1)


def run_core(
    join: JoinQuery,
    streams: Streams,
    make_routers: Routers,
    step_rows: int,
    sink: Sink = ignore,
    tuner: Tuner | None = None,
    watcher: Watcher | None = None,
) -> CoreRun:
    """Join whole streams, sorted by time, on the routes that these routers choose; a tuner chooses
    the indices of their states."""
    run = CoreRun()
    fabric = JoinFabric(join)
    indices = None if tuner is None else Indices(fabric, tuner)
    core = JoinSteps(fabric, make_routers(fabric), indices, tunes=True)
    for step in steps(join, streams, step_rows):
        started = process_time()
        horizon = take_step(core, step, sink, watcher)
        run.cpu_seconds += process_time() - started
        stepped = _taken_metrics(fabric)
        if watcher is not None:
            watcher.ended(fabric, stepped)
        _count(run, fabric, stepped)
        _note_state(run, fabric)
        started = process_time()
        core.forget(horizon)
        run.cpu_seconds += process_time() - started
    run.index_seconds = sum(stem.index_seconds for stem in fabric.streams.values())
    if tuner is not None:
        run.tuning_seconds, run.changes = tuner.seconds, tuner.changes
    return run


def _taken_metrics(fabric: JoinFabric) -> dict[str, Metrics]:
    """What the last step took, by stream; the next one is counted from zero."""
    taken = {alias: view.metrics for alias, view in fabric.views.items()}
    for view in fabric.views.values():
        view.metrics = Metrics()
    return taken


def _count(run: CoreRun, fabric: JoinFabric, stepped: Mapping[str, Metrics]) -> None:
    for alias, metrics in stepped.items():
        operators = fabric.views[alias].bound.operators
        visited = metrics.by_operator()
        run.probes += sum(
            visited[op.index].evaluations
            for op in operators
            if isinstance(op, Probe) and op.index in visited
        )
        run.rows_of[alias] = run.rows_of.get(alias, 0) + metrics.rows_in
        run.metrics.add(metrics)
    run.curve.append((run.cpu_seconds, run.metrics.rows_out))


def take_step(
    core: JoinSteps, step: Streams, sink: Sink = ignore, watcher: Watcher | None = None
) -> int:
    """Store a step's tuples and let them probe; its last time."""
    arrivals = core.arrivals(step)

    def on_stored(arrivals: Mapping[str, Arrivals], stored: Mapping[str, Partition]) -> None:
        if watcher is not None:
            watcher.admitted(core.fabric, arrivals, stored)

    for batch in core.step(arrivals, on_stored):
        sink(batch)
    return newest_us(arrivals) or 0


def steps(join: JoinQuery, streams: Streams, step_rows: int) -> Iterator[dict[str, pa.RecordBatch]]:
    """The streams in steps that end at the same time in each and have about as many rows."""
    times = {alias: microseconds(rows.column(join.times[alias])) for alias, rows in streams.items()}
    everything = np.sort(np.concatenate(list(times.values())))
    ends = everything[step_rows - 1 :: step_rows].tolist() or []
    if len(everything) % step_rows:
        ends.append(int(everything[-1]))
    done = dict.fromkeys(streams, 0)
    for end in dict.fromkeys(ends):
        step = {}
        for alias, rows in streams.items():
            last = int(np.searchsorted(times[alias], end, side="right"))
            step[alias] = rows.slice(done[alias], last - done[alias])
            done[alias] = last
        yield step


def as_batches(tables: Mapping[str, pa.Table]) -> dict[str, pa.RecordBatch]:
    """Each table as one record batch, under its name."""
    return {alias: one_batch(table) for alias, table in tables.items()}


def _note_state(run: CoreRun, fabric: JoinFabric) -> None:
    stems = fabric.streams.values()
    used = sum(stem.nbytes for stem in stems)
    if used > run.state_bytes:
        run.state_bytes, run.state_rows = used, sum(stem.rows for stem in stems)
        run.partitions = sum(len(stem.partitions) for stem in stems)
        run.index_bytes = sum(stem.index_bytes for stem in stems)
