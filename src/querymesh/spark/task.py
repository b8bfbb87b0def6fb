"""What a Spark task executes: the fabric, on one partition's Arrow batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark import Broadcast, TaskContext

from querymesh.fabric.fabric import Fabric
from querymesh.fabric.lookup_table import LookupTable
from querymesh.fabric.profiler import profile_sample
from querymesh.fabric.router import MeshRouter
from querymesh.fabric.tables import make_tables
from querymesh.optimize.mesh import Mesh
from querymesh.query.model import BoundQuery
from querymesh.spark.channel import Channel
from querymesh.spark.reports import Report

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_KEPT = 8
_tables: OrderedDict[str, dict[str, LookupTable]] = OrderedDict()
_routers: OrderedDict[tuple[str, int], MeshRouter] = OrderedDict()


@dataclass
class FabricTask:
    """A function of an iterator of batches, for `mapInArrow`; picklable.

    `channel` is set where the mesh may change while the query runs; `learn_rows` is how many rows a
    task profiles as long as no mesh was published.
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
        fabric = Fabric(self.bound, tables, self.on_error)
        version, learning = self.channel.state() if self.channel else (0, False)
        router = self._router(version)
        to_profile = self.learn_rows if learning else 0
        report = Report(fabric.metrics)
        for batch in batches:
            if to_profile > 0 and batch.num_rows:
                to_profile -= self._profile(batch, to_profile, tables, report)
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
            return MeshRouter(self.channel.read(version, self.bound.query.functions), version)

        return _remembered(_routers, (self.name, version), build)

    def _profile(
        self, batch: pa.RecordBatch, most: int, tables: Mapping[str, LookupTable], report: Report
    ) -> int:
        started = perf_counter()
        context = TaskContext.get()
        mixed = (self.seed, context.partitionId() if context else 0, batch.num_rows, most)
        rng = np.random.default_rng(mixed)
        rows = np.sort(rng.choice(batch.num_rows, min(most, batch.num_rows), replace=False))
        sample = pa.Table.from_batches([batch.take(pa.array(rows))])
        report.add_profile(profile_sample(self.bound, sample, tables, self.on_error))
        report.metrics.profile_seconds += perf_counter() - started
        report.metrics.profiled_rows += len(rows)
        return len(rows)


def _remembered(store: OrderedDict[K, V], key: K, build: Callable[[], V]) -> V:
    """The value of `key`, built at first use; the oldest of more than a few is forgotten."""
    if key not in store:
        store[key] = build()
        while len(store) > _KEPT:
            store.popitem(last=False)
    return store[key]
