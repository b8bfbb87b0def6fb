"""A planned join on the join core: policies "rate" and "chart" as they plan on Spark, without it.

The planner has seen a sample, as a trained mesh has. A step is a micro-batch of one shard: some of
it is profiled and told as a task does, it is made a `Round` as the driver does, and the planner's
orders hold from the next step on. Profiling is in the time of the run; planning is not, which on
Spark the driver does beside the tasks, but counted::

    step r ── TaskReport ──> Rounds ── Round ──> Planner.observe ──> routers of step r + 1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import thread_time

import numpy as np

from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.router import MeshRouter, Router
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.index.store.partition import Partition
from querymesh.mesh.mesh import Mesh, written_mesh
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.adapt.budget import Allowance
from querymesh.optimize.planning.orders import planned_mesh
from querymesh.optimize.planning.planner import Planner, Round
from querymesh.optimize.shards.join_shards import join_cube
from querymesh.optimize.train.training import Training
from querymesh.query.join import JoinQuery
from querymesh.runtime.loops.rounds import Rounds
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.task.planner_sample import PlannerSample
from querymesh.runtime.task.profiling import Profiling, ViewProfiling
from querymesh.runtime.task.router_source import TaskStart
from querymesh.runtime.task_report import StreamState, TaskReport, ViewReport

MakePlanner = Callable[[JoinQuery], Planner]

MOST = Training().sample_rows
BUDGET = Adaptation().budget


class PlannedSteps:
    """The routers of a run, and the watcher that changes them."""

    def __init__(self, join: JoinQuery, planner: Planner, sample: Round) -> None:
        self.join, self.planner = join, planner
        self.switches = 0
        self.planning_seconds = 0.0
        self._meshes: dict[str, list[Mesh]] = {
            alias: [written_mesh(view)] for alias, view in join.views.items()
        }
        self.routers: dict[str, Router] = {
            alias: MeshRouter(meshes[0]) for alias, meshes in self._meshes.items()
        }
        self._rounds = Rounds(join, join_cube(join, 1, {}))
        self._rng = np.random.default_rng(0)
        self._number = 0
        self._allowance = Allowance(BUDGET)
        self._report = TaskReport({})
        self._told(sample)
        self.switches = 0

    def admitted(
        self, fabric: JoinFabric, arrivals: Mapping[str, Arrivals], stored: Mapping[str, Partition]
    ) -> None:
        """Profile some tuples, and note what a planner is told beside the counts."""
        views = {alias: ViewReport(Metrics()) for alias in fabric.views}
        self._report = TaskReport(views, TaskPlace(batch=self._number))
        for alias, arrived in arrivals.items():
            start = TaskStart(self.routers[alias], self._allowance.now, MOST)
            operators = len(fabric.views[alias].modules)
            profiling = Profiling(views[alias], start, self._rng, operators)
            ViewProfiling(fabric, alias, "raise", profiling).see(arrived)
            self._report.arrived[alias] = len(arrived)
        PlannerSample(self.planner.wants_keys).tell(fabric, arrivals, stored, self._report)

    def ended(self, fabric: JoinFabric, metrics: Mapping[str, Metrics]) -> None:
        """Make a round of the step, and tell the planner."""
        report = self._report
        for alias, each in metrics.items():
            mine = report.views[alias].metrics
            mine.add(each)
            self._allowance.observe(mine.profile_seconds, mine.total_seconds)
            stem = fabric.streams[alias]
            report.states[0, alias] = StreamState(stem.rows, stem.nbytes, len(stem.partitions))
        versions = {alias: dict(enumerate(meshes)) for alias, meshes in self._meshes.items()}
        shown = self._rounds.of(self._number, [report], versions, 0.0)
        self._number += 1
        self._told(shown)

    def _told(self, shown: Round) -> None:
        """Let the planner say what it makes of a round, and take its orders."""
        started = thread_time()
        decision = self.planner.observe(shown)
        self.planning_seconds += thread_time() - started
        if decision is None:
            return
        for alias, order in decision.orders.items():
            mesh = planned_mesh(self.join.views[alias], order, decision.reason, MOST)
            if mesh.routes != self._meshes[alias][-1].routes:
                self._meshes[alias].append(mesh)
                self.routers[alias] = MeshRouter(mesh, len(self._meshes[alias]) - 1)
                self.switches += 1
