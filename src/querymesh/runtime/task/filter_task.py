"""What a task executes of a query over one source: the fabric, on a partition's Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.operators import FailedCall
from querymesh.fabric.core.router import MeshRouter, Router
from querymesh.fabric.core.shared_fabric import make_fabric
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.routers.measured_order import MeasuredOrder
from querymesh.query.costly.in_run import FunctionsStart, TaskTallies, begin_functions
from querymesh.query.model import BoundQuery
from querymesh.runtime.reports import ReportSender
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.task.router_source import RouterSource, TaskStart
from querymesh.runtime.task_report import TaskReport, ViewReport
from querymesh.worker_cache import WorkerCache

SENT = "__querymesh_sent"
"""The column that says which of those that come and go are there."""

_tables: WorkerCache[str, Mapping[str, LookupTable]] = WorkerCache(16)
"""By run, its look-up tables."""

_orders: WorkerCache[str, MeasuredOrder] = WorkerCache(64)
"""By run, the order that this worker has found."""


@dataclass
class FilterTask:
    """The task of one partition; picklable. `tables` are the static tables as they were sent.

    `gated` are columns that are NULL while nobody asks for them; which of them are not, the column
    `SENT` says, bit by bit. `functions` is what is known of functions before it begins.
    """

    bound: BoundQuery
    source: RouterSource
    reports: ReportSender
    tables: Any
    on_error: str = "raise"
    gated: tuple[str, ...] = ()
    functions: FunctionsStart = field(default_factory=FunctionsStart)

    def run(self, batches: Iterator[pa.RecordBatch], place: TaskPlace) -> Iterator[pa.RecordBatch]:
        """The results of one partition; what was done is reported once, at the end."""
        asked = begin_functions(self.bound.query.functions, self.functions)
        tables = _tables.get_or_make(self.source.name, self._lookup_tables)
        fabric = make_fabric(self.bound, tables, self.on_error)
        report = ViewReport(fabric.metrics)
        start = self.source.begin(place, report)
        see = self._profiler(start, place, tables, report)
        for batch in batches:
            if see is not None:
                see(batch)
            yield from fabric.run(batch, start.router)
        self.source.end(start.router, place, report)
        self._send(report, place, asked)

    def passes(
        self, names: Sequence[str], parts: Iterator[Any], place: TaskPlace
    ) -> Iterator[pa.Array]:
        """Which rows pass, for a filter to which Spark sends these columns and no others."""
        for passed, failed in self._decided(names, parts, place):
            for call in failed.values():
                raise call.error()
            yield pa.array(passed)

    def verdicts(
        self, names: Sequence[str], parts: Iterator[Any], place: TaskPlace
    ) -> Iterator[pa.Array]:
        """For each row NULL if it is dropped, "" if it passes, and the text of the error if a
        function raised on it: where conditions come after that may drop the row all the same."""
        for passed, failed in self._decided(names, parts, place):
            texts: list[str | None] = ["" if each else None for each in passed]
            for row, call in failed.items():
                texts[row] = str(call.error())
            yield pa.array(texts, pa.string())

    def _decided(
        self, names: Sequence[str], parts: Iterator[Any], place: TaskPlace
    ) -> Iterator[tuple[Bools, Mapping[int, FailedCall]]]:
        started = perf_counter()
        asked = begin_functions(self.bound.query.functions, self.functions)
        fabric = Fabric(self.bound, None, self.on_error)
        report = ViewReport(fabric.metrics)
        start = self.source.begin(place, report)
        see = self._profiler(start, place, {}, report)
        router = self._own_order(start.router) if place.batch is None else start.router
        for part in parts:
            arrays = part if isinstance(part, tuple) else (part,)
            batch = pa.RecordBatch.from_arrays(list(arrays), names=list(names))
            if see is not None:
                see(self._as_sent(batch))
            yield fabric.decide(batch, router)
        self.source.end(start.router, place, report)
        self._send(report, place, asked, perf_counter() - started)

    def _as_sent(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch without the columns that were held back."""
        if not self.gated or not batch.num_rows:
            return batch
        sent = batch.column(SENT)[0].as_py()
        gone = {name for bit, name in enumerate(self.gated) if not sent >> bit & 1} | {SENT}
        return batch.select([name for name in batch.schema.names if name not in gone])

    def _own_order(self, router: Router) -> Router:
        """Where nobody has learned an order, one that this worker finds while it runs."""
        if not isinstance(router, MeshRouter) or not MeasuredOrder.suits(router.mesh):
            return router
        return _orders.get_or_make(self.source.name, lambda: MeasuredOrder(router.mesh))

    def _send(
        self, report: ViewReport, place: TaskPlace, asked: TaskTallies, seconds: float = 0.0
    ) -> None:
        report.metrics.asked.update(asked.taken())
        report.problems += asked.problems
        self.reports.send(TaskReport({self.bound.source.alias: report}, place, seconds))

    def _profiler(
        self,
        start: TaskStart,
        place: TaskPlace,
        tables: Mapping[str, LookupTable],
        report: ViewReport,
    ) -> Any:
        """What profiles some rows of each batch, as the task was told; None if it was told none."""
        if start.share <= 0 or start.most < 1:
            return None
        from querymesh.runtime.task.profiling import BatchProfiling, Profiling

        rng = np.random.default_rng((self.source.seed, place.partition, (place.batch or 0) + 1))
        profiling = Profiling(report, start, rng, len(self.bound.operators))
        return BatchProfiling(self.bound, tables, self.on_error, profiling).see

    def _lookup_tables(self) -> dict[str, LookupTable]:
        return make_tables(self.bound, self.tables(), self.on_error)
