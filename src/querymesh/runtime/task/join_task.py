"""What a task executes of a windowed join: one shard's rows of all streams.

In a batch job the rows come sorted by time, and states live in memory. On a stream the states
before the batch are mapped from files, the batch's own rows are stored, the state is committed, and
then the results are made (`state/store.py` says why that order survives everything).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.errors import UnsupportedError
from querymesh.fabric.core.router import Router
from querymesh.fabric.join.arrivals import Arrivals, without_null
from querymesh.fabric.join.shared_join_fabric import make_join_fabric, static_states
from querymesh.index.store.codes import microseconds
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import Pattern
from querymesh.index.store.stem import Stem
from querymesh.mesh.hypercube import Hypercube
from querymesh.query.costly.in_run import FunctionsStart, begin_functions
from querymesh.query.join import JoinQuery
from querymesh.runtime.clock import NEVER, Clock
from querymesh.runtime.join_step import JoinSteps, counted_streams, newest_us
from querymesh.runtime.reports import ReportSender
from querymesh.runtime.state.block_layout import patterns_of
from querymesh.runtime.state.store import open_shard
from querymesh.runtime.task.index_source import IndexSource, tell
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.task.planner_sample import PlannerSample
from querymesh.runtime.task.profiling import Profiling, ViewProfiling
from querymesh.runtime.task.router_source import RouterSource
from querymesh.runtime.task.shard_files import ShardFiles, Storing, merge_clocks
from querymesh.runtime.task.slots import NOW, SlotMap, shard_numbers
from querymesh.runtime.task_report import TaskReport, ViewReport
from querymesh.worker_cache import WorkerCache

Tables = Callable[[], Mapping[str, pa.Table]]
"""The static tables of a query by alias, as they were sent to the tasks; picklable."""

_statics: WorkerCache[str, dict[str, Stem]] = WorkerCache(16)
"""By run, the static tables of a join ready to be probed."""


@dataclass
class JoinTask:
    """The task of one shard; picklable."""

    name: str
    join: JoinQuery
    sources: Mapping[str, RouterSource]
    slots: SlotMap
    cube: Hypercube
    reports: ReportSender
    tables: Tables
    on_error: str = "raise"
    storing: Storing | None = None
    indexing: IndexSource = field(default_factory=IndexSource)
    planner_sample: PlannerSample | None = None
    functions: FunctionsStart = field(default_factory=FunctionsStart)

    def run(self, batches: Iterator[pa.RecordBatch], place: TaskPlace) -> Iterator[pa.RecordBatch]:
        """The results of one partition; what was done is reported once, at the end."""
        asked = begin_functions(self.join.query.functions, self.functions)
        statics = _statics.get_or_make(self.name, self._static_stems)
        fabric = make_join_fabric(self.join, statics, self.on_error)
        views = {alias: ViewReport(view.metrics) for alias, view in fabric.views.items()}
        report = TaskReport(views, place)
        routers: dict[str, Router] = {}
        profiling: dict[str, ViewProfiling] = {}
        for alias, source in self.sources.items():
            start = source.begin(place, views[alias])
            routers[alias] = start.router
            rng = np.random.default_rng((source.seed, place.partition, (place.batch or 0) + 1))
            sampled = Profiling(views[alias], start, rng, len(fabric.views[alias].modules))
            profiling[alias] = ViewProfiling(fabric, alias, self.on_error, sampled)
        indices = self.indexing.begin(fabric, place.partition, self._layouts(routers), report)
        steps = JoinSteps(fabric, routers, indices, tunes=self.storing is None)
        if self.storing is None:
            yield from self._batch(batches, steps, report)
        else:
            yield from self._stream(batches, self.storing, steps, profiling, report)
        tell(indices, place.partition, report)
        for alias, view in fabric.views.items():
            self._count(report, report.unjoinable, view.alias, view.unjoinable)
            self.sources[alias].end(routers[alias], place, views[alias])
        # Functions are of the query and not of a view: their counts go with the first.
        next(iter(views.values())).metrics.asked.update(asked.taken())
        report.problems += asked.problems
        self.reports.send(report)

    def _layouts(self, routers: Mapping[str, Router]) -> Mapping[str, Pattern]:
        """Of hash indices, the order in which rows are stored: the batch job has no files."""
        if self.storing is None:
            return {}
        return patterns_of(self.join, {a: router.routes() for a, router in routers.items()})

    def _batch(
        self, batches: Iterator[pa.RecordBatch], steps: JoinSteps, report: TaskReport
    ) -> Iterator[pa.RecordBatch]:
        """All rows of a shard, by time: what is behind every window is forgotten as it goes."""
        for batch in batches:
            arrivals = steps.arrivals(self._streams([batch], report))
            yield from steps.step(arrivals)
            horizon = newest_us(arrivals)
            if horizon is not None:
                steps.forget(horizon)

    def _stream(
        self,
        batches: Iterator[pa.RecordBatch],
        storing: Storing,
        steps: JoinSteps,
        profiling: Mapping[str, ViewProfiling],
        report: TaskReport,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a shard in one micro-batch."""
        if report.batch is None or report.query is None:
            raise UnsupportedError(
                "rows of a streaming join were asked for by a job that does not know its "
                "micro-batch: in foreachBatch, read the batch in the function's own thread, or "
                "start others as pyspark.InheritableThread"
            )
        given = list(batches)
        started = perf_counter()
        with open_shard(
            storing.folder, report.query, report.batch, report.shard, self.cube.shards,
            merge_clocks, storing.checkpoint,
        ) as state:  # fmt: skip
            clock = Clock.merged([state.clock])
            report.idle = clock.turn(list(self.join.times), storing.watermark_us, storing.idle_us)
            report.horizon_us = clock.horizon if clock.horizon != NEVER else None
            steps.counted = counted_streams(self.join, state.extra.get("counted", {}))
            files = ShardFiles(self.name, storing, self.join, state)
            files.restore(steps, clock.horizon)
            streams = self._in_time(self._streams(given, report), clock, given, report)
            arrivals = steps.arrivals(streams)
            report.state_seconds += perf_counter() - started

            def on_stored(
                arrivals: Mapping[str, Arrivals], stored: Mapping[str, Partition]
            ) -> None:
                started = perf_counter()
                files.commit(steps.fabric, clock, steps.counted, report)
                report.state_seconds += perf_counter() - started
                for label, view in steps.fabric.views.items():
                    if view.alias in arrivals:
                        profiling[label].see(arrivals[view.alias])
                if self.planner_sample is not None:
                    self.planner_sample.tell(steps.fabric, arrivals, stored, report)

            yield from steps.step(arrivals, on_stored)
            state.tidy()

    def _in_time(
        self,
        streams: Mapping[str, pa.RecordBatch],
        clock: Clock,
        given: list[pa.RecordBatch],
        report: TaskReport,
    ) -> dict[str, pa.RecordBatch]:
        """The rows that are not late; what they and the others say of the time is noted."""
        now = next((microseconds(b.column(NOW))[0] for b in given if b.num_rows), None)
        if now is not None and now == clock.now:
            raise UnsupportedError(
                f"rows of an earlier micro-batch were read in batch {report.batch}, as by a "
                "DataFrame kept from foreachBatch, and would be stored twice: read it within its "
                "own batch, or write it somewhere"
            )
        kept = dict(streams)
        for alias, time in self.join.times.items():
            if alias not in streams or not streams[alias].num_rows:
                continue
            times = microseconds(streams[alias].column(time))
            clock.saw(alias, int(times.max()), int(now or 0))
            late = times < clock.horizon
            if late.any():
                self._count(report, report.late, alias, int(late.sum()))
                kept[alias] = streams[alias].filter(pa.array(~late))
        if now is not None:
            clock.passed(int(now))
        return kept

    def _count(self, report: TaskReport, counts: dict[str, int], alias: str, rows: int) -> None:
        """Count rows of a stream once, though there may be copies of them in several shards."""
        if self.cube.is_home(alias, report.shard):
            counts[alias] += rows

    def _streams(
        self, batches: Iterable[pa.RecordBatch], report: TaskReport
    ) -> dict[str, pa.RecordBatch]:
        """The rows of each stream, in one batch each; those without a time are in no window."""
        parts: dict[str, list[pa.RecordBatch]] = {alias: [] for alias in self.join.aliases}
        for batch in batches:
            _check_shard(batch, report.shard)
            for number, rows in self.slots.unpack(batch).items():
                alias = self.slots.aliases[number]
                parts[alias].append(rows)
                self._count(report, report.arrived, alias, rows.num_rows)
        streams = {alias: pa.concat_batches(found) for alias, found in parts.items() if found}
        for alias in streams.keys() & self.join.times.keys():
            timed = without_null(streams[alias], self.join.times[alias])
            untimed = streams[alias].num_rows - timed.num_rows
            self._count(report, report.untimed, alias, untimed)
            streams[alias] = timed
        return streams

    def _static_stems(self) -> dict[str, Stem]:
        return static_states(self.join, self.tables(), self.on_error)


def _check_shard(batch: pa.RecordBatch, shard: int) -> None:
    """Partition s must hold shard s, and no other: its state is that shard's."""
    found = shard_numbers(batch)
    if not (found == shard).all():
        raise UnsupportedError(
            f"Spark put shards {found.min()} to {found.max()} into partition {shard}: joins on "
            "several shards need PySpark 4.1 or newer, whose repartitionById keeps them apart; "
            "use shards=1"
        )
