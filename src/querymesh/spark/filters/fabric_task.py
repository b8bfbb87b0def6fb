"""What a Spark task executes: the fabric, on one partition's Arrow batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast

from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.shared_fabric import make_fabric
from querymesh.fabric.core.tables import make_tables
from querymesh.query.model import BoundQuery
from querymesh.runtime.reports import Report
from querymesh.runtime.task.mesh_source import (
    RouterSource,
    batch_number,
    partition_id,
    query_id,
    remembered,
)
from querymesh.runtime.task.profiling import Profiling

_tables: OrderedDict[str, dict[str, LookupTable]] = OrderedDict()


@dataclass
class FabricTask:
    """A function of an iterator of batches, for `mapInArrow`; picklable."""

    bound: BoundQuery
    source: RouterSource
    reports: Any
    tables: Mapping[str, Broadcast[bytes]]
    on_error: str = "raise"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of one partition; what was done is reported once, at the end."""
        tables = self._lookup_tables()
        fabric = make_fabric(self.bound, tables, self.on_error)
        report = Report(fabric.metrics, batch=batch_number(), query=query_id())
        begun = self.source.begin(report)
        router = begun.router
        rng = np.random.default_rng((self.source.seed, partition_id(), (report.batch or 0) + 1))
        profiling = Profiling(
            self.bound, tables, self.on_error, report, rng, begun.share, begun.most, begun.timed
        )
        for batch in batches:
            profiling.see(batch)
            yield from fabric.run(batch, router)
        self.source.end(router, report)
        self.reports += report

    def passes(self, names: Sequence[str], parts: Iterator[Any]) -> Iterator[pa.Array]:
        """Which rows pass, for a filter to which Spark sends these columns and no others."""
        fabric = Fabric(self.bound, None, self.on_error)
        report = Report(fabric.metrics)
        router = self.source.begin(report).router
        for part in parts:
            arrays = part if isinstance(part, tuple) else (part,)
            batch = pa.RecordBatch.from_arrays(list(arrays), names=list(names))
            yield pa.array(fabric.passes(batch, router))
        self.source.end(router, report)
        self.reports += report

    def _lookup_tables(self) -> dict[str, LookupTable]:
        """Built once per Python worker, which serves many tasks and batches."""

        def build() -> dict[str, LookupTable]:
            inputs = {
                alias: pa.ipc.open_stream(pa.py_buffer(sent.value)).read_all()
                for alias, sent in self.tables.items()
            }
            return make_tables(self.bound, inputs, self.on_error)

        return remembered(_tables, self.source.name, build)
