"""How a task gets its mesh: the one the query started with, or the newest that was published."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from pyspark import TaskContext

from querymesh.errors import MeshFileError, QueryMeshError
from querymesh.fabric.core.router import MeshRouter, Router
from querymesh.mesh.mesh import Mesh
from querymesh.runtime.channel import Channel, ChannelState
from querymesh.runtime.reports import Report

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_KEPT = 16
_KEPT_ROUTERS = 64
_routers: OrderedDict[tuple[str, int], MeshRouter] = OrderedDict()


class TaskStart(NamedTuple):
    """What a task begins with: its router, and how many of its rows it is to profile beside it.

    That is a share of them, how many at most, and whether the operators are timed meanwhile.
    """

    router: Router
    share: float = 0.0
    most: float = 0.0
    timed: bool = False


class RouterSource(Protocol):
    """Where the tasks of a run get their routers."""

    @property
    def name(self) -> str:
        """The run, and what of it."""

    @property
    def seed(self) -> int:
        """Of all that is drawn."""

    def begin(self, report: Report) -> TaskStart:
        """At the beginning of a task; what goes wrong is reported."""

    def end(self, router: Router, report: Report) -> None:
        """At its end."""


@dataclass(frozen=True)
class MeshSource:
    """Where the tasks of one run find the mesh of a source; picklable.

    `channel` is set where the mesh may change while the query runs, and tells how many rows to
    profile; `learn_rows` is how many rows a task profiles as long as no mesh was published.
    """

    name: str
    mesh: Mesh
    channel: Channel | None = None
    learn_rows: int = 0
    seed: int = 0

    def begin(self, report: Report) -> TaskStart:
        """The newest mesh there is, and what the driver asks to profile."""
        state = self.state(report)
        router = self.newest_router(state.version, report)
        return TaskStart(router, *self.to_profile(state, report.batch))

    def end(self, router: Router, report: Report) -> None:
        """A mesh is changed by the driver only."""

    def state(self, report: Report) -> ChannelState:
        """What the channel says; any mesh gives the same rows, so a channel that cannot be read is
        told and not raised."""
        if self.channel is None:
            return ChannelState(0, False)
        try:
            return self.channel.state()
        except (OSError, QueryMeshError) as problem:
            report.problems.append(f"the folder of meshes cannot be read: {problem}")
            return ChannelState(self._latest(), False)

    def newest_router(self, version: int, report: Report) -> MeshRouter:
        """The router of a version, or of the latest that can be read."""
        try:
            return self.router(version)
        except MeshFileError as problem:
            report.problems.append(f"an earlier mesh is used: {problem}")
            return self.router(self._latest())

    def router(self, version: int) -> MeshRouter:
        """The router of a version, made once per Python worker."""

        def build() -> MeshRouter:
            seed = (self.seed, partition_id())
            if version == 0 or self.channel is None:
                return MeshRouter(self.mesh, seed=seed)
            return MeshRouter(self.channel.read(version, self.mesh.query), version, seed)

        return remembered(_routers, (self.name, version), build, _KEPT_ROUTERS)

    def to_profile(self, state: ChannelState, batch: int | None) -> tuple[float, float, bool]:
        """The share of its rows a task is to profile, how many at most, and whether timed."""
        if state.learning and self.learn_rows:
            return 1.0, self.learn_rows, True
        if self.channel is not None and state.ask_number:
            ask = self.channel.asked(state.ask_number)
            return *ask.for_task(batch, partition_id()), False
        return 0.0, 0.0, False

    def _latest(self) -> int:
        """The newest version this worker has read; 0 is the mesh the query started with."""
        return max((version for name, version in _routers if name == self.name), default=0)


def partition_id() -> int:
    """The number of the partition this task is of."""
    context = TaskContext.get()
    return int(context.partitionId()) if context else 0


def batch_number() -> int | None:
    """The micro-batch this task is of, if it is of a stream."""
    number = _local_property("streaming.sql.batchId")
    return int(number) if number is not None else None


def query_id() -> str | None:
    """The streaming query this task is of."""
    return _local_property("sql.streaming.queryId")


def _local_property(name: str) -> str | None:
    context = TaskContext.get()
    return context.getLocalProperty(name) if context else None


def remembered(store: OrderedDict[K, V], key: K, build: Callable[[], V], kept: int = _KEPT) -> V:
    """The value of `key`, built at first use; the longest unused of many is forgotten."""
    if key not in store:
        store[key] = build()
        while len(store) > kept:
            store.popitem(last=False)
    store.move_to_end(key)
    return store[key]
