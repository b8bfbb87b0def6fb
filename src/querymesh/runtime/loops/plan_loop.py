"""The loop of a planned join, on the driver: rounds go to the planner, its orders to the tasks.

::

    tasks ── TaskReport ──> PlanLoop: a Round once all shards have told of a batch
      ^                        │  (a thread of its own)
      │                        v
    channels <── one-route meshes ── Planner.observe ── Decision, or nothing

A batch is complete when all shards have reported or one of a later batch has; a shard that ran
again counts by its last run. The thread that carries reports only hands them over, and nothing that
goes wrong in the loop reaches the query, which goes on with the orders it has.

As long as too few tuples have been profiled, tasks profile as many as to learn a first mesh from;
then a share of them, `budget`, in rounds before which that has taken no larger share of the time.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Protocol, runtime_checkable

from querymesh.errors import QueryMeshError
from querymesh.explained import Drawn
from querymesh.optimize.adapt.budget import Allowance, Ask
from querymesh.optimize.adapt.watch import Switch
from querymesh.optimize.planning.orders import order_of, planned_mesh
from querymesh.optimize.planning.own_order import OwnOrder
from querymesh.optimize.planning.planner import Orders, Planner, Round, Waiting
from querymesh.query.join import JoinQuery
from querymesh.runtime.channel import Channel
from querymesh.runtime.loop import KEPT_PROBLEMS, Loop
from querymesh.runtime.loops.background import Background
from querymesh.runtime.loops.rounds import Rounds
from querymesh.runtime.task_report import TaskReport
from querymesh.runtime.view import View

log = logging.getLogger("querymesh")

WAITING = 64
"""Rounds that wait for the planner; if it is slower than the batches, the oldest are let go."""

CATCH_UP = 0.25
"""The share of tuples that a query profiles that goes on from a checkpoint, until it has enough."""


@dataclass(frozen=True)
class PlanSettings:
    """`enough` profiled tuples end the first stage; afterwards a share of `budget` is profiled, or
    none, and nothing is planned anew, if it is 0."""

    enough: int
    budget: float


class SourceWatch(Protocol):
    """Knows what waits at the sources of a running query."""

    def ask(self, query_id: str | None) -> Mapping[str, Waiting]:
        """By stream, as of the last micro-batch."""


@runtime_checkable
class CountsWaiting(Protocol):
    """A planner that counts what waits at the sources."""

    buffered: Mapping[str, Waiting]


class PlanLoop(Loop):
    """Tells a planner what the batches show, and the tasks what it says."""

    def __init__(
        self,
        join: JoinQuery,
        planner: Planner,
        rounds: Rounds,
        views: Mapping[str, View],
        channels: Mapping[str, Channel],
        settings: PlanSettings,
        own: OwnOrder,
        sources: SourceWatch | None = None,
    ) -> None:
        self.planner = planner
        self._join = join
        self._rounds = rounds
        self._views = dict(views)
        self._channels = dict(channels)
        self._settings = settings
        self._own = own
        self._sources = sources
        self._query: str | None = None
        self._planning = threading.Lock()
        self._inbox = threading.Lock()
        self._open: dict[str | None, tuple[int, dict[int, TaskReport]]] = {}
        self._told: dict[str | None, int] = {}
        self._waiting: deque[tuple[int, list[TaskReport], float]] = deque(maxlen=WAITING)
        self._clock = monotonic()
        self._profiled = 0
        self._allowance = Allowance(settings.budget)
        self._asked: Ask | None = None
        self.rounds = 0
        self._problems: list[str] = []
        self.done = threading.Event()
        self._work = Background("querymesh-planner", self._plan, "no plan could be made")
        if not self._channels:
            self.done.set()
        if self._planned:
            self._ask(Ask(share=CATCH_UP))
            self.done.set()

    def receive(self, report: TaskReport) -> None:
        """Take a task's report; returns at once."""
        if report.batch is None:
            return
        with self._inbox:
            if report.batch <= self._told.get(report.query, -1):
                return  # of a batch whose round was told already
            number, reports = self._open.get(report.query, (report.batch, {}))
            if report.batch < number:
                return
            if report.batch > number:
                self._close(report.query)
                reports = {}
            reports[report.shard] = report
            self._open[report.query] = report.batch, reports
            if len(reports) == self._rounds.cube.shards:
                self._close(report.query)

    def _close(self, query: str | None) -> None:
        """Hand a batch on as a round."""
        number, reports = self._open.pop(query)
        passed_s, self._clock = monotonic() - self._clock, monotonic()
        self._waiting.append((number, [*reports.values()], passed_s))
        self._told[query] = number
        self._query = query
        self._work.ask()

    def wait(self, seconds: float) -> bool:
        """Wait until the planner has heard of all batches so far; False if it took longer."""
        return self._work.wait(seconds)

    def wait_until_learned(self, seconds: float) -> bool:
        """Wait until it has heard of all batches and has planned, or knows enough to; False if it
        took longer."""
        until = monotonic() + seconds
        return self.wait(seconds) and self.done.wait(max(until - monotonic(), 0.0))

    @property
    def problems(self) -> Sequence[str]:
        """Why no plan could be made, batch by batch."""
        return [*self._problems, *self._work.problems]

    def explain(self, html: str | os.PathLike[str] | None = None) -> str:
        """What the planner knows and chose; `html` is a file for all of it as a page, with the
        drawn chart, of policy "chart"."""
        with self._planning:
            self._hear_of_sources()
            return self.planner.explain(html)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Write the chart of policy "chart" with the path of the point, as SVG."""
        with self._planning:
            if not isinstance(self.planner, Drawn):
                raise QueryMeshError(
                    "only policy 'chart' has a chart to draw: explain() tells in words what this "
                    "one knows and chose"
                )
            self.planner.draw(path)

    def _hear_of_sources(self) -> None:
        """Tell a planner that counts memory what waits before the query, where nothing is held."""
        if self._sources is not None and isinstance(self.planner, CountsWaiting):
            self.planner.buffered = self._sources.ask(self._query)

    def _plan(self) -> None:
        while True:
            with self._inbox:
                if not self._waiting:
                    return
                waiting = self._waiting.popleft()
            try:
                self._hear(*waiting)
            except Exception as problem:
                told = f"no plan could be made after batch {waiting[0]}: {problem!r}"
                if len(self._problems) < KEPT_PROBLEMS:
                    self._problems.append(told)
                raise

    def _hear(self, number: int, reports: list[TaskReport], passed_s: float) -> None:
        """One round: what it shows, what the planner says to it, and what to profile next."""
        if self._settings.budget == 0 and self._planned:
            return
        versions = {alias: dict(run.versions) for alias, run in self._views.items()}
        shown = self._rounds.of(number, reports, versions, passed_s)
        views = [view for report in reports for view in report.views.values()]
        if self._has_enough:
            self._allowance.observe(
                sum(view.metrics.profile_seconds for view in views), shown.busy_seconds
            )
        self._profiled += sum(profile.rows for view in views for profile in view.profiles)
        with self._planning:
            self._hear_of_sources()
            decision = self.planner.observe(shown)
        self.rounds += 1
        reordered = self._own.observe(shown)
        if decision is not None:
            self._publish(decision.orders, decision.reason, shown)
        elif self._planned and reordered:
            self._publish(
                {alias: self._running(alias) for alias in reordered & self._channels.keys()},
                "another order of the stream's own conditions costs less",
                shown,
            )
        self._go_on_profiling()

    @property
    def _planned(self) -> bool:
        """Whether any stream has orders that were chosen."""
        return any(self._views[alias].versions[-1][0] for alias in self._channels)

    @property
    def _has_enough(self) -> bool:
        """Whether as many tuples were profiled as a first plan is made from."""
        return self._profiled >= self._settings.enough * len(self._channels)

    def _go_on_profiling(self) -> None:
        """Profile many tuples until enough are, then no more than the budget allows."""
        planned, enough = self._planned, self._has_enough
        if not (planned or enough) or not self._channels:
            return
        self._ask(Ask(share=self._allowance.now if enough else CATCH_UP))
        if enough and not planned:
            for channel in self._channels.values():
                channel.enough()
        self.done.set()

    def _ask(self, ask: Ask) -> None:
        if ask == self._asked:
            return
        for channel in self._channels.values():
            channel.ask(ask, channel.state().ask_number + 1)
        self._asked = ask

    def _running(self, alias: str) -> tuple[str, ...]:
        """The order in which tuples of a stream probe now."""
        return order_of(self._join.views[alias], self._views[alias].versions[-1][1].routes[0])

    def _publish(self, orders: Orders, reason: str, shown: Round) -> None:
        """Let the tasks of the next batch take the orders."""
        for alias, order in orders.items():
            if alias not in self._channels:
                continue
            run, view = self._views[alias], self._join.views[alias]
            version, running = run.versions[-1]
            own = self._own.orders.get(alias, ())
            mesh = planned_mesh(view, order, reason, max(1, self._profiled), own)
            if version and mesh.routes == running.routes:
                continue
            self._channels[alias].publish(mesh, version + 1)
            switch = Switch(version + 1, shown.number, datetime.now(UTC), reason, 0.0)
            changed = mesh.routes != running.routes
            run.installed(version + 1, mesh, switch if changed else None)
            way = " > ".join(order_of(view, mesh.routes[0]))
            log.info("tuples of %s probe %s: %s", alias, way, reason)
