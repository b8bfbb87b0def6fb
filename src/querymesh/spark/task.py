"""What a Spark task executes: the fabric, on one partition's Arrow batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark import Broadcast, TaskContext

from querymesh.errors import MeshFileError, QueryMeshError
from querymesh.fabric.fabric import Fabric
from querymesh.fabric.lookup_table import LookupTable
from querymesh.fabric.router import MeshRouter
from querymesh.fabric.shared import make_fabric
from querymesh.fabric.tables import make_tables
from querymesh.optimize.mesh import Mesh
from querymesh.query.model import BoundQuery
from querymesh.spark.channel import Channel, State
from querymesh.spark.profiling import Profiling
from querymesh.spark.reports import Report

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_KEPT = 16
_tables: OrderedDict[str, dict[str, LookupTable]] = OrderedDict()
_routers: OrderedDict[tuple[str, int], MeshRouter] = OrderedDict()


@dataclass
class FabricTask:
    """A function of an iterator of batches, for `mapInArrow`; picklable.

    `channel` is set where the mesh may change while the query runs, and tells how many rows to
    profile; `learn_rows` is how many rows a task profiles as long as no mesh was published.
    """

    bound: BoundQuery
    mesh: Mesh
    reports: Any
    tables: Mapping[str, Broadcast[bytes]]
    on_error: str = "raise"
    channel: Channel | None = None
    learn_rows: int = 0
    seed: int = 0
    name: str = field(default_factory=lambda: uuid4().hex)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of one partition; what was done is reported once, at the end."""
        tables = self._lookup_tables()
        fabric = make_fabric(self.bound, tables, self.on_error)
        report = Report(fabric.metrics, batch=_batch_number(), query=_query_id())
        state = self._state(report)
        router = self._newest_router(state.version, report)
        profiling = self._profiling(state, tables, report)
        for batch in batches:
            profiling.see(batch)
            yield from fabric.run(batch, router)
        self.reports += report

    def passes(self, names: Sequence[str], parts: Iterator[Any]) -> Iterator[pa.Array]:
        """Which rows pass, for a filter to which Spark sends these columns and no others."""
        fabric = Fabric(self.bound, None, self.on_error)
        router = self._router(0)
        for part in parts:
            arrays = part if isinstance(part, tuple) else (part,)
            batch = pa.RecordBatch.from_arrays(list(arrays), names=list(names))
            yield pa.array(fabric.passes(batch, router))
        self.reports += Report(fabric.metrics)

    def _lookup_tables(self) -> dict[str, LookupTable]:
        """Built once per Python worker, which serves many tasks and batches."""

        def build() -> dict[str, LookupTable]:
            inputs = {
                alias: pa.ipc.open_stream(pa.py_buffer(sent.value)).read_all()
                for alias, sent in self.tables.items()
            }
            return make_tables(self.bound, inputs, self.on_error)

        return _remembered(_tables, self.name, build)

    def _state(self, report: Report) -> State:
        """What the channel says; any mesh gives the same rows, so a channel that cannot be read is
        told and not raised."""
        if self.channel is None:
            return State(0, False)
        try:
            return self.channel.state()
        except (OSError, QueryMeshError) as problem:
            report.problems.append(f"the folder of meshes cannot be read: {problem}")
            return State(self._latest(), False)

    def _newest_router(self, version: int, report: Report) -> MeshRouter:
        try:
            return self._router(version)
        except MeshFileError as problem:
            report.problems.append(f"an earlier mesh is used: {problem}")
            return self._router(self._latest())

    def _latest(self) -> int:
        """The newest version this worker has read; 0 is the mesh the query started with."""
        return max((version for name, version in _routers if name == self.name), default=0)

    def _router(self, version: int) -> MeshRouter:
        def build() -> MeshRouter:
            context = TaskContext.get()
            seed = (self.seed, context.partitionId() if context else 0)
            if version == 0 or self.channel is None:
                return MeshRouter(self.mesh, seed=seed)
            return MeshRouter(self.channel.read(version, self.bound.query), version, seed)

        return _remembered(_routers, (self.name, version), build)

    def _profiling(
        self, state: State, tables: Mapping[str, LookupTable], report: Report
    ) -> Profiling:
        context = TaskContext.get()
        partition = context.partitionId() if context else 0
        rng = np.random.default_rng((self.seed, partition, (report.batch or 0) + 1))
        profiling = Profiling(self.bound, tables, self.on_error, report, rng)
        if state.learning and self.learn_rows:
            profiling.share, profiling.most, profiling.timed = 1.0, self.learn_rows, True
        elif self.channel is not None and state.ask_number:
            ask = self.channel.asked(state.ask_number)
            profiling.share, profiling.most = ask.for_task(report.batch, partition)
        return profiling


def _batch_number() -> int | None:
    """The micro-batch this task is of, if it is of a stream."""
    number = _local_property("streaming.sql.batchId")
    return int(number) if number is not None else None


def _query_id() -> str | None:
    """The streaming query this task is of."""
    return _local_property("sql.streaming.queryId")


def _local_property(name: str) -> str | None:
    context = TaskContext.get()
    return context.getLocalProperty(name) if context else None


def _remembered(store: OrderedDict[K, V], key: K, build: Callable[[], V]) -> V:
    """The value of `key`, built at first use; the longest unused of many is forgotten."""
    if key not in store:
        store[key] = build()
        while len(store) > _KEPT:
            store.popitem(last=False)
    store.move_to_end(key)
    return store[key]
