"""What a Spark task executes of a windowed join: one shard's rows of all streams.

On a batch DataFrame the rows come sorted by time, and states live in memory. On a stream the states
before the batch are mapped from files, the batch's own rows are stored, the state is committed, and
then the results are made (`state_store.py` says why that order survives everything).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast

from querymesh.errors import UnsupportedError
from querymesh.fabric.core.router import Router
from querymesh.fabric.join.arrivals import Arrivals, in_order, microseconds, without_null
from querymesh.fabric.join.indices import Indices
from querymesh.fabric.join.join_fabric import JoinFabric, oldest_needed, static_stems
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import Pattern
from querymesh.index.store.stem import Stem
from querymesh.mesh.hypercube import Hypercube
from querymesh.query.join import JoinQuery
from querymesh.runtime.clock import NEVER, Clock
from querymesh.runtime.join_report import JoinReport, StreamState
from querymesh.runtime.reports import Report
from querymesh.runtime.state.block_layout import BlockLayout, patterns_of
from querymesh.runtime.state.files import BlockEntry
from querymesh.runtime.state.store import ShardState, open_shard
from querymesh.runtime.task.index_source import IndexSource, tell
from querymesh.runtime.task.join_profiling import ViewProfiling
from querymesh.runtime.task.mesh_source import (
    RouterSource,
    batch_number,
    partition_id,
    query_id,
    remembered,
)
from querymesh.runtime.task.planner_sample import PlannerSample
from querymesh.spark.joins.layout import SHARD, SlotMap
from querymesh.spark.joins.place import PLACE

NOW = "__querymesh_now"
"""The column with Spark's time of the micro-batch."""

_statics: OrderedDict[str, dict[str, Stem]] = OrderedDict()
_partitions: OrderedDict[tuple[str, str, int], dict[str, Partition]] = OrderedDict()
"""By run, query and shard, the mapped partitions by file: a Python worker serves many batches."""

_KEPT_SHARDS = 16
"""A worker may have served shards, and runs, that others serve by now."""


@dataclass(frozen=True)
class Storing:
    """Where and how a streaming join keeps its state."""

    folder: str
    checkpoint: str | None
    delay_us: int
    idle_us: int


@dataclass
class JoinTask:
    """A function of an iterator of batches, for `mapInArrow`; picklable."""

    name: str
    join: JoinQuery
    sources: Mapping[str, RouterSource]
    slots: SlotMap
    cube: Hypercube
    reports: Any
    tables: Mapping[str, Broadcast[bytes]]
    on_error: str = "raise"
    storing: Storing | None = None
    indexing: IndexSource = field(default_factory=IndexSource)
    telling: PlannerSample | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of one partition; what was done is reported once, at the end."""
        number, query = batch_number(), query_id()
        fabric = JoinFabric(self.join, self._static_stems(), self.on_error)
        views = {
            alias: Report(view.metrics, batch=number, query=query)
            for alias, view in fabric.views.items()
        }
        report = JoinReport(views, number, query, partition_id())
        routers, profiling = {}, {}
        for alias, source in self.sources.items():
            begun = source.begin(views[alias])
            routers[alias] = begun.router
            rng = np.random.default_rng((source.seed, partition_id(), (number or 0) + 1))
            profiling[alias] = ViewProfiling(
                fabric, alias, self.on_error, views[alias], rng,
                begun.share, begun.most, begun.timed,
            )  # fmt: skip
        indices = self.indexing.begin(fabric, partition_id(), self._layouts(routers), report)
        if self.storing is None:
            yield from self._batch(batches, fabric, routers, indices, report)
        else:
            yield from self._stream(batches, fabric, routers, profiling, indices, report)
        tell(indices, partition_id(), report)
        for alias, view in fabric.views.items():
            self._count(report.unjoinable, alias, view.unjoinable)
            self.sources[alias].end(routers[alias], views[alias])
        self.reports += report

    def _layouts(self, routers: Mapping[str, Router]) -> Mapping[str, Pattern]:
        """Of hash indices, the order in which rows are stored: the batch job has no files."""
        if self.storing is None:
            return {}
        return patterns_of(self.join, {a: router.routes() for a, router in routers.items()})

    def _batch(
        self,
        batches: Iterator[pa.RecordBatch],
        fabric: JoinFabric,
        routers: Mapping[str, Router],
        indices: Indices,
        report: JoinReport,
    ) -> Iterator[pa.RecordBatch]:
        """All rows of a shard, by time: what is behind every window is forgotten as it goes."""
        counted = self._counted({})
        for batch in batches:
            arrivals = self._arrivals(self._streams([batch], report), counted)
            indices.arrive(arrivals)
            step = fabric.admit(arrivals, routers)
            yield from fabric.results(step, routers)
            indices.tune()
            horizon = max((int(a.times[-1]) for a in arrivals.values() if len(a)), default=None)
            for alias in counted:
                counted[alias] += len(arrivals.get(alias, ()))
            if horizon is not None:
                fabric.evict(horizon, counted)
                self._compact(fabric, horizon, counted)

    def _stream(
        self,
        batches: Iterator[pa.RecordBatch],
        fabric: JoinFabric,
        routers: Mapping[str, Router],
        profiling: Mapping[str, ViewProfiling],
        indices: Indices,
        report: JoinReport,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a shard in one micro-batch."""
        assert self.storing is not None
        if report.batch is None or report.query is None:
            raise UnsupportedError(
                "rows of a streaming join were asked for by a job that does not know its "
                "micro-batch: in foreachBatch, read the batch in the function's own thread, or "
                "start others as pyspark.InheritableThread"
            )
        shard = partition_id()
        given = list(batches)
        started = perf_counter()
        with open_shard(
            self.storing.folder, report.query, report.batch, shard, self.cube.shards, _merge,
            self.storing.checkpoint,
        ) as state:  # fmt: skip
            clock = Clock.merged([state.clock])
            timed = list(self.join.times)
            report.idle = clock.turn(timed, self.storing.delay_us, self.storing.idle_us)
            report.horizon_us = clock.horizon if clock.horizon != NEVER else None
            counted = self._counted(state.extra.get("counted", {}))
            stored = self._restore(fabric, state, clock.horizon, counted)
            streams = self._in_time(self._streams(given, report), clock, given, report)
            arrivals = self._arrivals(streams, counted)
            indices.arrive(arrivals)
            blocks = self._blocks(fabric, stored)
            report.state_seconds += perf_counter() - started
            step = fabric.admit(arrivals, routers)
            started = perf_counter()
            for alias in counted:
                counted[alias] += len(arrivals.get(alias, ()))
            self._commit(state, step.partitions, blocks, clock, counted, report)
            report.state_seconds += perf_counter() - started
            for alias, arrived in arrivals.items():
                profiling[alias].see(arrived)
            if self.telling is not None:
                self.telling.tell(fabric, arrivals, step.partitions, report)
            yield from fabric.results(step, routers)
            state.tidy()

    def _restore(
        self, fabric: JoinFabric, state: ShardState, horizon: int, counted: Mapping[str, int]
    ) -> dict[int, BlockEntry]:
        """Map the states before the batch, without what has expired, merged where many are small.

        Tells the entry of each partition that is stored, by the partition's id.
        """
        key = self.name, str(self.storing), state.shard
        known = _partitions.get(key, {})
        mapped: dict[str, Partition] = {}
        entry_of: dict[int, BlockEntry] = {}
        for alias in self.join.aliases:
            layout = BlockLayout(self.join, alias)
            oldest = oldest_needed(self.join, alias, horizon, counted)
            for entry in state.streams.get(alias, ()):
                if oldest is not None and int(entry.meta["last"]) < oldest:
                    continue
                partition = known.get(entry.file) or layout.partition(state.map(entry))
                mapped[entry.file] = partition
                entry_of[id(partition)] = entry
                fabric.streams[alias].insert(partition)
            self._compact_one(fabric, alias, oldest)
        _partitions[key] = mapped
        _partitions.move_to_end(key)
        while len(_partitions) > _KEPT_SHARDS:
            _partitions.popitem(last=False)
        return entry_of

    def _blocks(
        self, fabric: JoinFabric, entry_of: Mapping[int, BlockEntry]
    ) -> dict[str, list[tuple[BlockEntry | None, Partition]]]:
        """For each stream its partitions, with the entry of those that are stored as they are."""
        return {
            alias: [(entry_of.get(id(partition)), partition) for partition in stem.partitions]
            for alias, stem in fabric.streams.items()
        }

    def _commit(
        self,
        state: ShardState,
        new: Mapping[str, Partition],
        blocks: Mapping[str, list[tuple[BlockEntry | None, Partition]]],
        clock: Clock,
        counted: Mapping[str, int],
        report: JoinReport,
    ) -> None:
        """Write what is new, merged or laid out anew; make it the state after the batch."""
        entries: dict[str, list[BlockEntry]] = {}
        for alias in self.join.aliases:
            layout = BlockLayout(self.join, alias)
            parts = list(blocks[alias])
            if alias in new and len(new[alias]):
                parts.append((None, new[alias]))
            entries[alias] = [
                entry or state.write(alias, *layout.content(partition))
                for entry, partition in parts
            ]
            report.states[state.shard, alias] = StreamState(
                sum(entry.rows for entry in entries[alias]),
                sum(entry.size_bytes for entry in entries[alias]),
                len(entries[alias]),
            )
        state.commit(entries, {"shared": clock.to_json(), "counted": dict(counted)})

    def _compact(self, fabric: JoinFabric, horizon: int, counted: Mapping[str, int]) -> None:
        for alias in self.join.aliases:
            oldest = oldest_needed(self.join, alias, horizon, counted)
            self._compact_one(fabric, alias, oldest)

    def _compact_one(self, fabric: JoinFabric, alias: str, oldest: int | None) -> None:
        window = self.join.window_of(alias)
        fabric.streams[alias].compact(window.size if window else None, oldest)

    def _in_time(
        self,
        streams: Mapping[str, pa.RecordBatch],
        clock: Clock,
        given: list[pa.RecordBatch],
        report: JoinReport,
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
                self._count(report.late, alias, int(late.sum()))
                kept[alias] = streams[alias].filter(pa.array(~late))
        if now is not None:
            clock.passed(int(now))
        return kept

    def _arrivals(
        self, streams: Mapping[str, pa.RecordBatch], counted: Mapping[str, int]
    ) -> dict[str, Arrivals]:
        if not counted:
            return in_order(streams, self.join.times)
        places = {a: np.asarray(rows.column(PLACE), np.int64) for a, rows in streams.items()}
        rows = {alias: rows.drop_columns([PLACE]) for alias, rows in streams.items()}
        return in_order(rows, self.join.times, counted, places)

    def _count(self, counts: dict[str, int], alias: str, rows: int) -> None:
        """Count rows of a stream once, though there may be copies of them in several shards."""
        if self.cube.is_home(alias, partition_id()):
            counts[alias] += rows

    def _counted(self, known: Mapping[str, int]) -> dict[str, int]:
        """The arrivals so far of streams whose windows count rows."""
        return {
            stream.alias: int(known.get(stream.alias, 0))
            for stream in self.join.streams
            if stream.window is not None and stream.window.kind == "rows"
        }

    def _streams(
        self, batches: Iterable[pa.RecordBatch], report: JoinReport
    ) -> dict[str, pa.RecordBatch]:
        """The rows of each stream, in one batch each; those without a time are in no window."""
        parts: dict[str, list[pa.RecordBatch]] = {alias: [] for alias in self.join.aliases}
        for batch in batches:
            self._check_shard(batch)
            for number, rows in self.slots.unpack(batch).items():
                alias = self.slots.aliases[number]
                parts[alias].append(rows)
                self._count(report.arrived, alias, rows.num_rows)
        streams = {alias: pa.concat_batches(found) for alias, found in parts.items() if found}
        for alias in streams.keys() & self.join.times.keys():
            timed = without_null(streams[alias], self.join.times[alias])
            self._count(report.untimed, alias, streams[alias].num_rows - timed.num_rows)
            streams[alias] = timed
        return streams

    def _check_shard(self, batch: pa.RecordBatch) -> None:
        """Partition s must hold shard s, and no other: its state is that shard's."""
        found = pc.min_max(batch.column(SHARD)).as_py()
        if batch.num_rows and not found["min"] == found["max"] == partition_id():
            raise UnsupportedError(
                f"Spark put shards {found['min']} to {found['max']} into partition "
                f"{partition_id()}: joins on several shards need PySpark 4.1 or newer, whose "
                "repartitionById keeps them apart; use shards=1"
            )

    def _static_stems(self) -> dict[str, Stem]:
        """Built once per Python worker."""

        def build() -> dict[str, Stem]:
            inputs = {
                alias: pa.ipc.open_stream(pa.py_buffer(sent.value)).read_all()
                for alias, sent in self.tables.items()
            }
            return static_stems(self.join, inputs, self.on_error)

        return remembered(_statics, self.name, build)


def _merge(clocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return Clock.merged(clocks).to_json()
