"""What a run counted: batch by batch, and of a join's shards their arrivals and states."""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.task_report import COUNTS, StreamState, TaskReport
from querymesh.runtime.view import View

KEPT_BATCHES = 1000


@dataclass
class TaskCounts:
    """What one task did in a micro-batch, or several of them added up.

    `rows_in` are tuples that arrived, each once, though it may be in several shards; `probes` rows
    that probed another relation's state, `comparisons` stored tuples they looked at;
    `routing_calls` decisions of policy "eddy" or "cbr"; `late` tuples dropped because they came too
    late; `state_rows` and `state_bytes` what is stored after the batch, copies included;
    `state_seconds` time spent on reading and writing states, `seconds` in the fabric.
    """

    rows_in: int = 0
    rows_out: int = 0
    evaluations: int = 0
    profile_evaluations: int = 0
    probes: int = 0
    comparisons: int = 0
    routing_calls: int = 0
    late: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    state_seconds: float = 0.0
    seconds: float = 0.0

    def add(self, other: TaskCounts) -> None:
        """Add the figures of another task to these."""
        for each in fields(TaskCounts):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass
class BatchCounts(TaskCounts):
    """What one micro-batch did; `versions` are those of the meshes it ran on, by source.

    `horizon_us` is how far the time of all streams has come, `idle` the streams that did not hold
    it back.
    """

    query_id: str | None = None
    batch_id: int = 0
    horizon_us: int | None = None
    idle: list[str] = field(default_factory=list)
    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))


class Batches:
    """The last micro-batches. A shard of a join that was run again counts by its last run; tasks
    of a query over one source add up."""

    def __init__(self, views: Mapping[str, View], by_shard: bool) -> None:
        self._views = views
        self._by_shard = by_shard
        self._batches: OrderedDict[tuple[str | None, int], BatchCounts] = OrderedDict()
        self._shards: dict[tuple[str | None, int], dict[int, TaskCounts]] = {}

    def add(self, report: TaskReport) -> None:
        """Take in a task of a micro-batch."""
        if report.batch is None:
            return
        key = report.query, report.batch
        batch = self._batches.setdefault(key, BatchCounts(query_id=key[0], batch_id=key[1]))
        shards = self._shards.setdefault(key, {})
        for alias, view in report.views.items():
            batch.versions[alias] |= {version for version, _ in view.metrics.leaf_rows}
        batch.horizon_us, batch.idle = report.horizon_us, report.idle
        shards[report.shard if self._by_shard else len(shards)] = self._counted(report)
        while len(self._batches) > KEPT_BATCHES:
            oldest, _ = self._batches.popitem(last=False)
            del self._shards[oldest]

    def all(self) -> list[BatchCounts]:
        """The last thousand, oldest first: copies."""
        found = []
        for key, batch in self._batches.items():
            total = copy.deepcopy(batch)
            for counts in self._shards[key].values():
                total.add(counts)
            found.append(total)
        return found

    def _counted(self, report: TaskReport) -> TaskCounts:
        total = TaskCounts(
            late=sum(report.late.values()),
            state_rows=sum(state.rows for state in report.states.values()),
            state_bytes=sum(state.bytes for state in report.states.values()),
            state_seconds=report.state_seconds,
        )
        for alias, view in report.views.items():
            metrics = view.metrics
            total.rows_out += metrics.rows_out
            total.evaluations += metrics.evaluations
            total.profile_evaluations += metrics.profile_evaluations
            total.probes += self._views[alias].probes_in(metrics)
            total.comparisons += metrics.comparisons
            total.routing_calls += metrics.routing_calls
            total.seconds += metrics.total_seconds
            total.rows_in += 0 if self._by_shard else metrics.rows_in
        total.rows_in += sum(report.arrived.values())
        return total


class ShardCounts:
    """Arrivals and states of a join's streams over all shards."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {name: defaultdict(int) for name in COUNTS}
        self._last: dict[int, tuple[TaskPlace, dict[str, dict[str, int]]]] = {}
        self._states: dict[tuple[int, str], StreamState] = {}

    def add(self, report: TaskReport) -> None:
        """Count a task's tuples; of a micro-batch that a shard runs again, only the last run's."""
        now = {name: dict(getattr(report, name)) for name in COUNTS}
        place, last = self._last.get(report.shard, (None, {}))
        again = report.batch is not None and place == report.place
        for name, counts in self._counts.items():
            for alias, count in now[name].items():
                counts[alias] += count
            for alias, count in last[name].items() if again else ():
                counts[alias] -= count
        self._last[report.shard] = report.place, now
        self._states.update(report.states)

    def counted(self, name: str, alias: str) -> int:
        """How many tuples of a stream were counted under a name of `COUNTS`."""
        return self._counts[name].get(alias, 0)

    def state(self, alias: str) -> StreamState:
        """The state of a stream over all shards, as it is after the last batch."""
        together = StreamState()
        for (_, of), state in self._states.items():
            if of == alias:
                together.rows += state.rows
                together.bytes += state.bytes
                together.partitions += state.partitions
        return together
