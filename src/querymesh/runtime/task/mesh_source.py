"""How a task gets its mesh: the one the query started with, or the newest that was published."""

from __future__ import annotations

from dataclasses import dataclass

from querymesh.errors import MeshFileError, QueryMeshError
from querymesh.fabric.core.router import MeshRouter, Router
from querymesh.mesh.mesh import Mesh
from querymesh.runtime.channel import Channel, ChannelState
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.task.router_source import TaskStart
from querymesh.runtime.task_report import ViewReport
from querymesh.worker_cache import WorkerCache

_routers: WorkerCache[tuple[str, int], MeshRouter] = WorkerCache(64)
"""By run and version."""


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

    def begin(self, place: TaskPlace, report: ViewReport) -> TaskStart:
        """The newest mesh there is, and what the driver asks to profile."""
        if self.channel is None:
            return TaskStart(self.router(0, place))
        state = self._state(self.channel, report)
        router = self.newest_router(state.version, place, report)
        return TaskStart(router, *self._to_profile(self.channel, state, place))

    def end(self, router: Router, place: TaskPlace, report: ViewReport) -> None:
        """Nothing: a mesh is changed by the driver only."""

    def _state(self, channel: Channel, report: ViewReport) -> ChannelState:
        """What the channel says; any mesh gives the same rows, so a channel that cannot be read is
        told and not raised."""
        try:
            return channel.state()
        except (OSError, QueryMeshError) as problem:
            report.problems.append(f"the folder of meshes cannot be read: {problem}")
            return ChannelState(self._latest(), False)

    def newest_router(self, version: int, place: TaskPlace, report: ViewReport) -> MeshRouter:
        """The router of a version, or of the latest that can be read."""
        try:
            return self.router(version, place)
        except MeshFileError as problem:
            report.problems.append(f"an earlier mesh is used: {problem}")
            return self.router(self._latest(), place)

    def router(self, version: int, place: TaskPlace) -> MeshRouter:
        """The router of a version, made once per Python worker."""

        def make() -> MeshRouter:
            seed = (self.seed, place.partition)
            if version == 0 or self.channel is None:
                return MeshRouter(self.mesh, seed=seed)
            return MeshRouter(self.channel.read(version, self.mesh.query), version, seed)

        return _routers.get_or_make((self.name, version), make)

    def _to_profile(
        self, channel: Channel, state: ChannelState, place: TaskPlace
    ) -> tuple[float, float, bool]:
        """The share of its rows a task is to profile, how many at most, and whether timed."""
        if state.learning and self.learn_rows:
            return 1.0, self.learn_rows, True
        if state.ask_number:
            ask = channel.asked(state.ask_number)
            return *ask.for_task(place.batch, place.partition), False
        return 0.0, 0.0, False

    def _latest(self) -> int:
        """The newest version this worker has read; 0 is the mesh the query started with."""
        return max((version for name, version in _routers if name == self.name), default=0)
