"""How a task gets its Eddy: the one that goes on from what was learned before.

In a stream each partition's router goes on from that partition's newest state, wherever the task
runs: this worker's own if it served the partition last, else the one the driver handed on through
the channel. A partition that is new begins with what all others know together. In a batch job, and
where no folder can be shared, a worker's next task goes on from what its last one learned.
"""

from __future__ import annotations

import os
import socket
from collections import OrderedDict
from dataclasses import dataclass

from querymesh.errors import QueryMeshError
from querymesh.fabric.core.router import Router
from querymesh.fabric.routers.eddy import EddyRouter
from querymesh.fabric.routers.make_eddy import make_eddy
from querymesh.fabric.routers.merge_routers import restore
from querymesh.fabric.routers.routing import Routing
from querymesh.query.model import BoundQuery
from querymesh.runtime.channel import Channel
from querymesh.runtime.reports import Report, RouterState
from querymesh.runtime.task.mesh_source import TaskStart, partition_id

_KEPT = 64
_NO_BATCH = -1


@dataclass
class _Last:
    """A router that served a shard in this worker, and the batch it did so in."""

    batch: int
    router: EddyRouter


_last: OrderedDict[tuple[str, str], _Last] = OrderedDict()
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
        """Of all that is drawn."""
        return self.routing.seed

    @property
    def shard(self) -> str:
        """Whose state a task goes on from: its partition's, or its worker's."""
        if self.channel is not None:
            return str(partition_id())
        return f"{socket.gethostname()}-{os.getpid()}"

    def begin(self, report: Report) -> TaskStart:
        """The router of a task; it profiles by itself."""
        last = _last.get((self.name, self.shard))
        return TaskStart(self._told(last, report) or (last.router if last else self._new(report)))

    def end(self, router: Router, report: Report) -> None:
        """Keep what was learned for the next task, and report it."""
        assert isinstance(router, EddyRouter)
        key, batch = (self.name, self.shard), _number(report)
        _last[key] = _Last(batch, router)
        _last.move_to_end(key)
        while len(_last) > _KEPT:
            _last.popitem(last=False)
        try:
            report.routers[self.shard] = RouterState(batch, router.to_json())
        except Exception as problem:
            report.problems.append(f"what a router learned cannot be handed on ({problem!r})")

    def _new(self, report: Report) -> EddyRouter:
        seed = (self.seed, partition_id(), _number(report) + 1)
        return make_eddy(self.policy, self.bound, self.routing, self.own, seed)

    def _told(self, last: _Last | None, report: Report) -> EddyRouter | None:
        """A router that goes on from what the channel says, where this worker knows less."""
        if self.channel is None:
            return None
        try:
            number = self.channel.state().router_number
            if not number:
                return None
            known = self.channel.told(number)
            mine = known.shards.get(self.shard)
            if mine is None:
                if last is not None or known.merged is None:
                    return None
                state = known.merged
            elif last is not None and last.batch >= mine.batch:
                return None
            else:
                state = mine.state
            router = self._new(report)
            restore(router, state)
            return router
        except (OSError, QueryMeshError) as problem:
            report.problems.append(f"what was learned before cannot be read: {problem}")
            return None


def _number(report: Report) -> int:
    return _NO_BATCH if report.batch is None else report.batch
