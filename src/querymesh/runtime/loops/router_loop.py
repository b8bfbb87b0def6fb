"""What the routers of a run's shards have learned, on the driver.

::

    task reports ──> newest state of each shard ──> merged ──> inspect(out).router
                                    └──────────────────┴─────> channel ──> the next tasks

The thread that carries reports only hands a state over. They are written in the background; if that
falls behind, the newest states win.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from querymesh.errors import QueryMeshError
from querymesh.fabric.routers.eddy import EddyRouter
from querymesh.fabric.routers.learned import Learned, learned
from querymesh.fabric.routers.merge_routers import beginning
from querymesh.runtime.channel import Channel, RouterStates
from querymesh.runtime.loop import Loop
from querymesh.runtime.loops.background import Background
from querymesh.runtime.task_report import RouterSnapshot, TaskReport

log = logging.getLogger("querymesh")

FORGOTTEN = 1000
"""A shard that has been silent for so many batches is gone."""


class RouterLoop(Loop):
    """The newest state of each shard; handed on through the channel, if there is one.

    `operators` are the names of those that routers decide about, `fresh` is a router that is new,
    of which merged states are made.
    """

    def __init__(
        self,
        alias: str,
        policy: str,
        operators: Mapping[int, str],
        fresh: EddyRouter,
        channel: Channel | None,
    ) -> None:
        self.alias = alias
        self.policy = policy
        self._operators = operators
        self._fresh = fresh
        self._channel = channel
        self._states: dict[str, RouterSnapshot] = {}
        self._lock = threading.Lock()
        self._number = 0
        self._problems: list[str] = []
        self._writing = Background(
            "querymesh-routers", self._hand_on, "each worker learns by itself"
        )

    def open(self) -> None:
        """Take up what an earlier run learned; what cannot be read of it is a problem.

        If the newest file is damaged, the newest that is not takes its place.
        """
        if self._channel is None:
            return
        try:
            numbers = self._channel.router_numbers()
        except OSError as problem:
            self._tell(problem)
            return
        self._number = max(numbers, default=0)
        for number in sorted(numbers, reverse=True):
            try:
                known = self._channel.told(number)
                beginning(self._fresh, [each.state for each in known.shards.values()])
            except (QueryMeshError, KeyError, TypeError, ValueError, AttributeError) as problem:
                self._tell(problem)
                continue
            self._states = dict(known.shards)
            if self._problems:
                self._hand_on()
            break

    def _tell(self, problem: Exception) -> None:
        told = f"what an earlier run learned cannot be read: {problem}"
        log.warning("%s; the query goes on", told)
        self._problems.append(told)

    @property
    def problems(self) -> Sequence[str]:
        """What of an earlier run could not be read, and what could not be handed on."""
        return [*self._problems, *self._writing.problems]

    def explain(self) -> str:
        """What the routers of all shards know together."""
        return self.learned({}).explain()

    def receive(self, report: TaskReport) -> None:
        """Take in a task's states; returns at once."""
        routers = report.views[self.alias].routers
        if not routers:
            return
        with self._lock:
            self._states.update(routers)
            self._forget(max(each.batch for each in routers.values()) - FORGOTTEN)
        if self._channel is not None:
            self._writing.ask()

    def _forget(self, oldest: int) -> None:
        """Partitions come and go: what one knew long ago has no say in what others begin with."""
        for shard in [s for s, each in self._states.items() if 0 <= each.batch < oldest]:
            del self._states[shard]

    def wait(self, seconds: float) -> bool:
        """Wait until all that was reported is written; False if it took longer."""
        return self._writing.wait(seconds)

    def learned(self, calls: Mapping[tuple[int, str], int]) -> Learned:
        """All that is known now; `calls` are the routing calls so far."""
        with self._lock:
            states = {shard: each.state for shard, each in self._states.items()}
        return learned(self.policy, self._operators, self._fresh, states, calls)

    def _hand_on(self) -> None:
        assert self._channel is not None
        with self._lock:
            states = dict(self._states)
        merged = beginning(self._fresh, [each.state for each in states.values()])
        self._channel.tell(RouterStates(states, merged), self._number + 1)
        self._number += 1
