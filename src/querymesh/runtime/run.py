"""A run as the driver sees it: what it decided, what it did, what went wrong. See `qm.inspect`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from querymesh.cost.plan_tree import JoinShape
from querymesh.errors import UnsupportedError
from querymesh.explained import Explained
from querymesh.fabric.core.metrics import Metrics
from querymesh.mesh.hypercube import Hypercube
from querymesh.mesh.join_mesh import JoinMesh, SharedJoinMesh
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.watch import Switch
from querymesh.query.model import Query
from querymesh.runtime.loop import KEPT_PROBLEMS, Loop
from querymesh.runtime.progress import RunProgress, StreamProgress, watermark_text
from querymesh.runtime.run_counts import BatchCounts, Batches, ShardCounts
from querymesh.runtime.task_report import StreamState, TaskReport
from querymesh.runtime.view import View

if TYPE_CHECKING:
    from querymesh.fabric.routers.learned import Learned
    from querymesh.runtime.job_functions import JobFunctions
    from querymesh.runtime.loops.index_loop import IndexLoop
    from querymesh.runtime.loops.plan_loop import PlanLoop
    from querymesh.runtime.loops.router_loop import RouterLoop
    from querymesh.runtime.preparation import Preparation

Kind = TypeVar("Kind", bound=Loop)


class Run(Explained):
    """One run of a query. A query over one source has one view, a join one for each stream.

    `policy` and `engine` are those that were chosen; `views` are by alias. `cube` is how a join is
    spread over shards; `tree` is its shape where it runs as a tree of Spark's own joins. `loops`
    are what learns, plans and tunes while the query runs: every report goes to all of them.
    `sharing` tells what joins in one pass share, a line each.
    `left_to_spark` are the conditions that Spark evaluates by itself, as people read them;
    `preparation` is what was found out before a filter ran, and what it took; `functions` what
    users' functions may spend, and what was asked of them.

    A DataFrame written to several sinks is several streams: their figures add up, and `batches`
    tells them apart by `query_id`. What runs in Spark's generated code has no counters.
    """

    def __init__(
        self,
        query: Query,
        policy: str,
        engine: str,
        views: Mapping[str, View],
        cube: Hypercube | None = None,
        rates: Mapping[str, float] | None = None,
    ) -> None:
        self.query = query
        self.policy = policy
        self.engine = engine
        self.views = dict(views)
        self.cube = cube
        self.rates = dict(rates or {})
        self.tree: JoinShape | None = None
        self.sharing: tuple[str, ...] = ()
        self.left_to_spark: tuple[str, ...] = ()
        self.preparation: Preparation | None = None
        self.functions: JobFunctions | None = None
        self.loops: list[Loop] = []
        self._lock = threading.Lock()
        self._batches = Batches(self.views, by_shard=cube is not None)
        self._shards = ShardCounts()
        self._problems: list[str] = []

    def __repr__(self) -> str:
        if self.tree is not None:
            each = f"a tree of Spark's own joins over {', '.join(self.views)}"
        elif len(self.views) == 1:
            each = self.view.mesh.headline
        else:
            each = "; ".join(f"{alias}: {v.mesh.headline}" for alias, v in self.views.items())
        return f"<Run: policy {self.policy}, engine {self.engine}, {each}>"

    def receive(self, report: TaskReport) -> None:
        """Take in a task's report."""
        with self._lock:
            self._batches.add(report)
            self._shards.add(report)
            new = [problem for problem in report.problems if problem not in self._problems]
            self._problems = (self._problems + new)[:KEPT_PROBLEMS]
        for alias, view in report.views.items():
            self.views[alias].receive(view)
        for loop in self.loops:
            loop.receive(report)

    def loops_of(self, kind: type[Kind]) -> list[Kind]:
        """The loops of this run that are of one class, such as its learners."""
        return [loop for loop in self.loops if isinstance(loop, kind)]

    @property
    def plan_loop(self) -> PlanLoop | None:
        """What chooses the orders of policies "rate" and "chart"; None with any other policy."""
        from querymesh.runtime.loops.plan_loop import PlanLoop

        return next(iter(self.loops_of(PlanLoop)), None)

    @property
    def indexing(self) -> IndexLoop | None:
        """How the states of a join are found in its shards; None of any other query."""
        from querymesh.runtime.loops.index_loop import IndexLoop

        return next(iter(self.loops_of(IndexLoop)), None)

    @property
    def router_loops(self) -> dict[str, RouterLoop]:
        """What keeps the knowledge of the routers of policy "eddy" or "cbr", by source."""
        from querymesh.runtime.loops.router_loop import RouterLoop

        return {loop.alias: loop for loop in self.loops_of(RouterLoop)}

    @property
    def streams(self) -> list[str]:
        """The sources of the views, each once: those of queries that share a pass have several."""
        return list(dict.fromkeys(view.bound.source.alias for view in self.views.values()))

    @property
    def view(self) -> View:
        """The one view of a query over one source."""
        if len(self.views) > 1:
            raise UnsupportedError(
                f"this join has a view for each of {', '.join(self.views)}: take one of .views"
            )
        return next(iter(self.views.values()))

    @property
    def mesh(self) -> Mesh | JoinMesh:
        """The mesh in use now; of a join, one for each stream."""
        if self.tree is not None:
            raise UnsupportedError(
                "a tree of Spark's own joins has no mesh: `tree` is its shape, and "
                "`plan_loop.explain()` tells what it was chosen by"
            )
        if self.cube is None:
            return self.view.mesh
        meshes = {alias: view.mesh for alias, view in self.views.items()}
        if self.sharing:
            streams = tuple(self.streams)
            return SharedJoinMesh(self.query, meshes, self.rates, self.cube, streams)
        return JoinMesh(self.query, meshes, self.rates, self.cube)

    @property
    def counts(self) -> Metrics:
        """What the run has done so far; of a join over all streams, where operators and leaves are
        told apart in `views`."""
        if self.cube is None:
            return self.view.counts
        total = Metrics()
        for view in self.views.values():
            counts = view.counts
            counts.visits.clear()
            counts.leaf_rows.clear()
            calls = counts.routing.copy()
            counts.routing.clear()
            for (_, went_by), count in calls.items():
                counts.routing[0, went_by] += count
            total.add(counts)
        return total

    @property
    def batches(self) -> list[BatchCounts]:
        """The last thousand micro-batches of a stream, oldest first: copies."""
        with self._lock:
            return self._batches.all()

    @property
    def switches(self) -> list[Switch]:
        """When and why tuples went over to another mesh, and of which stream."""
        found = [switch for view in self.views.values() for switch in view.switches]
        return sorted(found, key=lambda switch: switch.when)

    @property
    def problems(self) -> list[str]:
        """What went wrong beside the query and did not stop it."""
        with self._lock:
            own = list(self._problems)
        own += [problem for loop in self.loops for problem in loop.problems]
        own += [problem for view in self.views.values() for problem in view.problems]
        return list(dict.fromkeys(own))

    @property
    def routing_calls(self) -> int:
        """Decisions of policy "eddy" or "cbr" so far."""
        return sum(view.counts.routing_calls for view in self.views.values())

    @property
    def probes(self) -> int:
        """Rows that probed another relation's state, so far."""
        return sum(view.probes_in(view.counts) for view in self.views.values())

    @property
    def comparisons(self) -> int:
        """Stored tuples that probes looked at, so far."""
        return sum(view.counts.comparisons for view in self.views.values())

    @property
    def arrived(self) -> dict[str, int]:
        """Tuples of a join that arrived, by stream, each once, however many shards have it."""
        return self._counted("arrived")

    @property
    def late(self) -> dict[str, int]:
        """Tuples of a join that came too late and were dropped, by stream."""
        return self._counted("late")

    @property
    def untimed(self) -> dict[str, int]:
        """Tuples of a join without a time, which no window holds, by stream."""
        return self._counted("untimed")

    @property
    def unjoinable(self) -> dict[str, int]:
        """Tuples with NULL in a join key, which match nothing and are not stored, by stream.

        Spark leaves most of them out before the shards see them; those are not counted.
        """
        return self._counted("unjoinable")

    def _counted(self, name: str) -> dict[str, int]:
        with self._lock:
            return {alias: self._shards.counted(name, alias) for alias in self.streams}

    @property
    def states(self) -> dict[str, StreamState]:
        """The state of each stream of a join over all shards, as it is after the last batch."""
        with self._lock:
            return {alias: self._shards.state(alias) for alias in self.streams}

    @property
    def route_shares(self) -> dict[str, dict[str, float]]:
        """For each source, the share of its tuples that took each route, under the newest mesh.

        None where policy "eddy" or "cbr" decides tuple by tuple.
        """
        decided = self.router_loops
        return {
            alias: {} if alias in decided else view.route_shares()
            for alias, view in self.views.items()
        }

    @property
    def routers(self) -> dict[str, Learned]:
        """What the routers of policy "eddy" or "cbr" know now, by source: copies."""
        return {
            alias: loop.learned(self.views[alias].counts.routing)
            for alias, loop in self.router_loops.items()
        }

    @property
    def router(self) -> Learned | None:
        """What the router of a query over one source knows now; None with any other policy."""
        return self.routers.get(self.view.alias)

    def wait_until_learned(self, seconds: float) -> bool:
        """Wait until the loops have learned or planned something from what was reported so far;
        False if it took longer, True at once where nothing is learned."""
        until = monotonic() + seconds
        return all(
            loop.wait_until_learned(max(until - monotonic(), 0.0)) for loop in list(self.loops)
        )

    @property
    def progress(self) -> RunProgress:
        """How far the run has come, in the names of Spark's own progress."""
        ours = RunProgress(
            policy=self.policy,
            engine=self.engine,
            evaluations=sum(view.counts.evaluations for view in self.views.values()),
            routingCalls=self.routing_calls,
            streams={alias: self._stream_progress(alias) for alias in self.views},
        )
        if self.cube is not None:
            batches = self.batches
            last = batches[-1] if batches else None
            ours["shards"] = self.cube.shards
            ours["horizon"] = watermark_text(last.horizon_us if last else None)
            ours["idleStreams"] = last.idle if last else []
            ours["probes"] = self.probes
            ours["comparisons"] = self.comparisons
        for loop in self.loops:
            loop.add_progress(ours)
        return ours

    def _stream_progress(self, alias: str) -> StreamProgress:
        view = self.views[alias]
        progress = StreamProgress(
            numInputRows=view.counts.rows_in,
            numOutputRows=view.counts.rows_out,
            meshVersion=view.version,
            routeShares=self.route_shares[alias],
        )
        if self.cube is not None:
            alias = view.bound.source.alias
            state = self.states[alias]
            progress["numInputRows"] = self.arrived[alias]
            progress["stateRows"] = state.rows
            progress["stateBytes"] = state.bytes
            progress["statePartitions"] = state.partitions
            progress["lateRows"] = self.late[alias]
            progress["untimedRows"] = self.untimed[alias]
            progress["unjoinableRows"] = self.unjoinable[alias]
        return progress

    def progress_with(self, spark_progress: Mapping[str, object] | None) -> dict[str, object]:
        """Spark's own progress of the streaming query, `query.lastProgress`, with ours beside it
        under `querymesh`."""
        return {**dict(spark_progress or {}), "querymesh": self.progress}
