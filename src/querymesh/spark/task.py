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

_KEPT = 8
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
        state = self.channel.state() if self.channel else State(0, False)
        router = self._router(state.version)
        report = Report(fabric.metrics, batch=_batch_number())
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

    def _router(self, version: int) -> MeshRouter:
        def build() -> MeshRouter:
            if version == 0 or self.channel is None:
                return MeshRouter(self.mesh)
            return MeshRouter(self.channel.read(version, self.bound.query), version)

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
    context = TaskContext.get()
    number = context.getLocalProperty("streaming.sql.batchId") if context else None
    return int(number) if number is not None else None


def _remembered(store: OrderedDict[K, V], key: K, build: Callable[[], V]) -> V:
    """The value of `key`, built at first use; the oldest of more than a few is forgotten."""
    if key not in store:
        store[key] = build()
        while len(store) > _KEPT:
            store.popitem(last=False)
    return store[key]
