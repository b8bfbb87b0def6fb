"""How a task gets its Eddy: the one that goes on from what was learned before.

In a stream each partition's router goes on from that partition's newest state, wherever the task
runs: this worker's own if it served the partition last, else the one the driver handed on through
the channel. A partition that is new begins with what all others know together. In a batch job, and
where no folder can be shared, a worker's next task goes on from what its last one learned.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from querymesh.errors import QueryMeshError
from querymesh.fabric.core.router import Router
from querymesh.fabric.routers.eddy import EddyRouter
from querymesh.fabric.routers.make_eddy import make_eddy
from querymesh.fabric.routers.merge_routers import restore
from querymesh.fabric.routers.routing import Routing
from querymesh.query.model import BoundQuery
from querymesh.runtime.channel import Channel
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.task.router_source import TaskStart
from querymesh.runtime.task_report import RouterSnapshot, ViewReport
from querymesh.worker_cache import WorkerCache

_NO_BATCH = -1


@dataclass
class _Last:
    """A router that served a shard in this worker, and the batch it did so in."""

    batch: int
    router: EddyRouter


_last: WorkerCache[tuple[str, str], _Last] = WorkerCache(64)
"""By run and shard."""


@dataclass(frozen=True)
class EddySource:
    """Where the tasks of one run find their routers; picklable.

    `own` are the conditions on a join's stream alone, None where there is no join.
    """

    name: str
    policy: str
    bound: BoundQuery
    routing: Routing
    own: frozenset[int] | None = None
    channel: Channel | None = None

    @property
    def seed(self) -> int:
        """The seed of every random choice."""
        return self.routing.seed

    def shard(self, place: TaskPlace) -> str:
        """Whose state a task goes on from: its partition's, or its worker's."""
        if self.channel is not None:
            return str(place.partition)
        return f"{socket.gethostname()}-{os.getpid()}"

    def begin(self, place: TaskPlace, report: ViewReport) -> TaskStart:
        """The router of a task; it profiles by itself."""
        last = _last.get((self.name, self.shard(place)))
        told = self._told(last, place, report)
        return TaskStart(told or (last.router if last else self._new(place)))

    def end(self, router: Router, place: TaskPlace, report: ViewReport) -> None:
        """Keep what was learned for the next task, and report it."""
        assert isinstance(router, EddyRouter)
        shard, batch = self.shard(place), _number(place)
        _last.put((self.name, shard), _Last(batch, router))
        try:
            report.routers[shard] = RouterSnapshot(batch, router.to_json())
        except Exception as problem:
            report.problems.append(f"what a router learned cannot be handed on ({problem!r})")

    def _new(self, place: TaskPlace) -> EddyRouter:
        seed = (self.seed, place.partition, _number(place) + 1)
        return make_eddy(self.policy, self.bound, self.routing, self.own, seed)

    def _told(self, last: _Last | None, place: TaskPlace, report: ViewReport) -> EddyRouter | None:
        """A router that goes on from what the channel says, where this worker knows less."""
        if self.channel is None:
            return None
        try:
            number = self.channel.state().router_number
            if not number:
                return None
            known = self.channel.told(number)
            mine = known.shards.get(self.shard(place))
            if mine is None:
                if last is not None or known.merged is None:
                    return None
                state = known.merged
            elif last is not None and last.batch >= mine.batch:
                return None
            else:
                state = mine.state
            router = self._new(place)
            restore(router, state)
            return router
        except (OSError, QueryMeshError) as problem:
            report.problems.append(f"what was learned before cannot be read: {problem}")
            return None


def _number(place: TaskPlace) -> int:
    return _NO_BATCH if place.batch is None else place.batch
