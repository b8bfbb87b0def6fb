"""Between a task's join states and the files of its shard: mapped before, committed after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from querymesh.fabric.join.join_fabric import JoinFabric, oldest_needed
from querymesh.index.store.partition import Partition
from querymesh.query.join import JoinQuery
from querymesh.runtime.clock import Clock
from querymesh.runtime.join_step import JoinSteps
from querymesh.runtime.state.block_layout import BlockLayout
from querymesh.runtime.state.files import BlockEntry
from querymesh.runtime.state.store import ShardState
from querymesh.runtime.task_report import StreamState, TaskReport
from querymesh.worker_cache import WorkerCache

_partitions: WorkerCache[tuple[str, str, int], dict[str, Partition]] = WorkerCache(16)
"""By run, storing and shard, the mapped partitions by file: a worker serves many batches, and
shards, and runs, that others may serve by now."""


@dataclass(frozen=True)
class Storing:
    """Where and how a streaming join keeps its state."""

    folder: str
    checkpoint: str | None
    watermark_us: int
    idle_us: int


@dataclass
class ShardFiles:
    """The state of a shard before and after one batch."""

    run: str
    storing: Storing
    join: JoinQuery
    state: ShardState
    _entry_of: dict[int, BlockEntry] = field(default_factory=dict)

    def restore(self, steps: JoinSteps, horizon_us: int) -> None:
        """Map the states before the batch, without what has expired, merged where many are small.

        The entry of each partition that is stored is remembered by the partition's id.
        """
        key = self.run, str(self.storing), self.state.shard
        known = _partitions.get(key) or {}
        mapped: dict[str, Partition] = {}
        for alias in self.join.aliases:
            layout = BlockLayout(self.join, alias)
            oldest = oldest_needed(self.join, alias, horizon_us, steps.counted)
            for entry in self.state.streams.get(alias, ()):
                if oldest is not None and int(entry.meta["last"]) < oldest:
                    continue
                partition = known.get(entry.file) or layout.partition(self.state.map(entry))
                mapped[entry.file] = partition
                self._entry_of[id(partition)] = entry
                steps.fabric.streams[alias].insert(partition)
            steps.compact(alias, oldest)
        _partitions.put(key, mapped)

    def commit(
        self, fabric: JoinFabric, clock: Clock, counted: Mapping[str, int], report: TaskReport
    ) -> None:
        """Write what is new, merged or laid out anew; make it the state after the batch."""
        entries: dict[str, list[BlockEntry]] = {}
        for alias in self.join.aliases:
            layout = BlockLayout(self.join, alias)
            entries[alias] = [
                self._entry_of.get(id(partition))
                or self.state.write(alias, *layout.content(partition))
                for partition in fabric.streams[alias].partitions
            ]
            report.states[self.state.shard, alias] = StreamState(
                sum(entry.rows for entry in entries[alias]),
                sum(entry.size_bytes for entry in entries[alias]),
                len(entries[alias]),
            )
        self.state.commit(entries, {"shared": clock.to_json(), "counted": dict(counted)})


def merge_clocks(clocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The clocks of several shards as one, as they are stored."""
    return Clock.merged(clocks).to_json()
