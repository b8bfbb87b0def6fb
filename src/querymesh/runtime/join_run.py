"""A running join as the driver sees it: a run for each stream's view, and the states."""

from __future__ import annotations

import copy
import datetime as dt
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.routers.make_eddy import EDDIES
from querymesh.mesh.hypercube import Hypercube
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.optimize.adapt.watch import Switch
from querymesh.optimize.planning.planner import Planner
from querymesh.query.join import JoinQuery
from querymesh.query.model import Probe
from querymesh.runtime.join_report import COUNTS, JoinReport, StreamState
from querymesh.runtime.loops.index_tuning import IndexTuning
from querymesh.runtime.loops.plan_loop import PlanLoop
from querymesh.runtime.run import KEPT_BATCHES, LiveRun


@dataclass
class JoinBatch:
    """What one micro-batch of a join did. A shard that was run again counts by its last run."""

    query_id: str | None
    batch_id: int
    horizon_us: int | None = None
    idle: list[str] = field(default_factory=list)
    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    _shards: dict[int, _ShardBatch] = field(default_factory=dict, repr=False)

    def add(self, report: JoinReport, probing: Mapping[str, set[int]]) -> None:
        """Take in a task's figures; `probing` are the operators of each view that are probes."""
        views = [(alias, view.metrics) for alias, view in report.views.items()]
        for alias, metrics in views:
            self.versions[alias] |= {version for version, _ in metrics.leaf_rows}
        self.horizon_us, self.idle = report.horizon_us, report.idle
        self._shards[report.shard] = _ShardBatch(
            rows_in=sum(report.arrived.values()),
            rows_out=sum(metrics.rows_out for _, metrics in views),
            probes=sum(_probes(metrics, probing[alias]) for alias, metrics in views),
            comparisons=sum(metrics.comparisons for _, metrics in views),
            routing_calls=sum(metrics.routing_calls for _, metrics in views),
            late=sum(report.late.values()),
            state_rows=sum(state.rows for state in report.states.values()),
            state_bytes=sum(state.bytes for state in report.states.values()),
            state_seconds=report.state_seconds,
            seconds=sum(metrics.total_seconds for _, metrics in views),
        )

    def _sum(self, name: str) -> Any:
        return sum(getattr(shard, name) for shard in self._shards.values())

    @property
    def rows_in(self) -> int:
        """Tuples that arrived, each once, though it may be in several shards."""
        return int(self._sum("rows_in"))

    @property
    def rows_out(self) -> int:
        """Results."""
        return int(self._sum("rows_out"))

    @property
    def probes(self) -> int:
        """Rows that probed another relation's state."""
        return int(self._sum("probes"))

    @property
    def comparisons(self) -> int:
        """Stored tuples that probes looked at."""
        return int(self._sum("comparisons"))

    @property
    def routing_calls(self) -> int:
        """Decisions of policy "eddy" or "cbr"."""
        return int(self._sum("routing_calls"))

    @property
    def late(self) -> int:
        """Tuples dropped because they came too late."""
        return int(self._sum("late"))

    @property
    def state_rows(self) -> int:
        """Stored tuples after the batch, copies included."""
        return int(self._sum("state_rows"))

    @property
    def state_bytes(self) -> int:
        """Bytes of the state's files after the batch."""
        return int(self._sum("state_bytes"))

    @property
    def state_seconds(self) -> float:
        """Time spent on reading and writing states, over all shards."""
        return float(self._sum("state_seconds"))

    @property
    def seconds(self) -> float:
        """Time spent in the fabric, over all shards."""
        return float(self._sum("seconds"))


@dataclass(frozen=True)
class _ShardBatch:
    rows_in: int
    rows_out: int
    probes: int
    comparisons: int
    routing_calls: int
    late: int
    state_rows: int
    state_bytes: int
    state_seconds: float
    seconds: float


def _probes(metrics: Metrics, probing: set[int]) -> int:
    return sum(visits.evaluations for (_, _, k), visits in metrics.visits.items() if k in probing)


class JoinRun:
    """Metrics, meshes and states of one join; see `querymesh.metrics`.

    `views` has a `LiveRun` for each stream, with the metrics and meshes of the tuples that arrive
    there. `cube` is how the join is spread over shards, `indexing` how its states are indexed.
    `planner` chooses the orders of policy "rate" or "chart", and `planner.explain()` tells how; of
    the other policies it is None.
    """

    engine = "join"

    def __init__(
        self,
        join: JoinQuery,
        views: Mapping[str, LiveRun],
        cube: Hypercube,
        rates: Mapping[str, float],
        policy: str,
        indexing: IndexTuning,
    ) -> None:
        self.join = join
        self.indexing = indexing
        self.planner: PlanLoop | Planner | None = None
        self.views = dict(views)
        self.cube = cube
        self.policy = policy
        self.rates = rates
        self._lock = threading.Lock()
        self._problems: list[str] = []
        self._counts: dict[str, dict[str, int]] = {name: defaultdict(int) for name in COUNTS}
        self._counted_last: dict[int, JoinReport] = {}
        self._states: dict[tuple[int, str], StreamState] = {}
        self._batches: OrderedDict[tuple[str | None, int], JoinBatch] = OrderedDict()
        self._probing = {
            alias: {op.index for op in view.operators if isinstance(op, Probe)}
            for alias, view in join.views.items()
        }

    def receive(self, report: JoinReport) -> None:
        """Take in a task's report."""
        with self._lock:
            self._count(report)
            self._states.update(report.states)
            self._problems += [p for p in report.problems if p not in self._problems]
            if report.batch is not None:
                key = report.query, report.batch
                self._batches.setdefault(key, JoinBatch(*key)).add(report, self._probing)
                while len(self._batches) > KEPT_BATCHES:
                    self._batches.popitem(last=False)
        self.indexing.receive(report)
        if isinstance(self.planner, PlanLoop):
            self.planner.receive(report)
        for alias, view in report.views.items():
            self.views[alias].receive(view)

    def _count(self, report: JoinReport) -> None:
        """Count a task's tuples; of a micro-batch that a shard runs again, only the last run's."""
        last = self._counted_last.get(report.shard)
        again = (
            report.batch is not None
            and last is not None
            and (last.query, last.batch) == (report.query, report.batch)
        )
        for name, counts in self._counts.items():
            for alias, count in getattr(report, name).items():
                counts[alias] += count
            if again:
                for alias, count in getattr(last, name).items():
                    counts[alias] -= count
        self._counted_last[report.shard] = report

    @property
    def mesh(self) -> JoinMesh:
        """The meshes in use now."""
        meshes = {alias: run.mesh for alias, run in self.views.items()}
        return JoinMesh(self.join.query, meshes, self.rates, self.cube)

    @property
    def metrics(self) -> Metrics:
        """Counts and times over all streams; operators and leaves are told apart in `views`."""
        total = Metrics()
        for run in self.views.values():
            view = run.metrics
            view.visits.clear()
            view.leaf_rows.clear()
            calls = view.routing.copy()
            view.routing.clear()
            for (_, went_by), count in calls.items():
                view.routing[0, went_by] += count
            total.add(view)
        return total

    @property
    def routing_calls(self) -> int:
        """Decisions of policy "eddy" or "cbr" so far; each of `views` has its `router`."""
        return sum(run.routing_calls for run in self.views.values())

    @property
    def probes(self) -> int:
        """Rows that probed another relation's state, so far."""
        return sum(_probes(run.metrics, self._probing[a]) for a, run in self.views.items())

    @property
    def comparisons(self) -> int:
        """Stored tuples that probes looked at, so far."""
        return sum(run.metrics.comparisons for run in self.views.values())

    @property
    def arrived(self) -> dict[str, int]:
        """Tuples that arrived, by stream, each once, though it may be in several shards."""
        return self._counted("arrived")

    @property
    def late(self) -> dict[str, int]:
        """Tuples that came too late and were dropped, by stream."""
        return self._counted("late")

    @property
    def untimed(self) -> dict[str, int]:
        """Tuples without a time, which no window holds, by stream."""
        return self._counted("untimed")

    @property
    def unjoinable(self) -> dict[str, int]:
        """Tuples with NULL in a key, which match nothing and are not stored, by stream.

        Spark leaves most of them out before the shards see them; those are not counted.
        """
        return self._counted("unjoinable")

    def _counted(self, name: str) -> dict[str, int]:
        with self._lock:
            return {alias: self._counts[name].get(alias, 0) for alias in self.join.aliases}

    @property
    def states(self) -> dict[str, StreamState]:
        """The state of each stream over all shards, as it is after the last batch."""
        with self._lock:
            together = {alias: StreamState() for alias in self.join.aliases}
            for (_, alias), state in self._states.items():
                together[alias].rows += state.rows
                together[alias].bytes += state.bytes
                together[alias].partitions += state.partitions
            return together

    @property
    def batches(self) -> list[JoinBatch]:
        """The last thousand micro-batches, oldest first: copies."""
        with self._lock:
            return copy.deepcopy(list(self._batches.values()))

    @property
    def switches(self) -> list[tuple[str, Switch]]:
        """When and why a stream's tuples went over to another mesh, by stream."""
        return [(alias, switch) for alias, run in self.views.items() for switch in run.switches]

    @property
    def problems(self) -> list[str]:
        """What went wrong beside the query and did not stop it."""
        with self._lock:
            own = list(self._problems)
        if isinstance(self.planner, PlanLoop):
            own += self.planner.problems
        return own + [problem for run in self.views.values() for problem in run.problems]

    @property
    def route_shares(self) -> dict[str, dict[str, float]]:
        """For each stream, the share of its tuples that took each route, under the newest mesh.

        None where policy "eddy" or "cbr" decides tuple by tuple.
        """
        shares: dict[str, dict[str, float]] = {}
        for alias, run in self.views.items():
            if run.policy in EDDIES:
                shares[alias] = {}
                continue
            version, mesh = run.versions[-1]
            counts: dict[str, int] = defaultdict(int)
            for (of_version, leaf), rows in run.metrics.leaf_rows.items():
                if of_version == version:
                    names = [mesh.operators[k - 1].name for k in mesh.leaf_routes[leaf]]
                    counts[" > ".join(names)] += rows
            total = sum(counts.values()) or 1
            shares[alias] = {route: rows / total for route, rows in counts.items()}
        return shares

    def wait_until_learned(self, seconds: float) -> bool:
        """Wait for the first learned mesh of every stream; False if it took longer.

        With policy "rate" or "chart", wait until the planner has heard of all batches so far and
        has planned once.
        """
        until = monotonic() + seconds
        if isinstance(self.planner, PlanLoop):
            heard = self.planner.wait(seconds)
            return heard and self.planner.done.wait(max(until - monotonic(), 0.0))
        return all(
            run.wait_until_learned(max(until - monotonic(), 0.0)) for run in self.views.values()
        )

    def progress(self, spark_progress: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Spark's own progress of the streaming query, with ours beside it under `querymesh`.

        Give it `query.lastProgress`.
        """
        states, batches, indices = self.states, self.batches, self.indexing.streams
        last = batches[-1] if batches else None
        ours = {
            "policy": self.policy,
            "shards": self.cube.shards,
            "horizon": _iso(last.horizon_us if last else None),
            "idleStreams": last.idle if last else [],
            "probes": self.probes,
            "comparisons": self.comparisons,
            "routingCalls": self.routing_calls,
            "index": self.indexing.kind,
            "indexChanges": len(self.indexing.changes),
            "streams": {
                alias: {
                    "numInputRows": self.arrived[alias],
                    "stateRows": states[alias].rows,
                    "stateBytes": states[alias].bytes,
                    "statePartitions": states[alias].partitions,
                    "lateRows": self.late[alias],
                    "untimedRows": self.untimed[alias],
                    "unjoinableRows": self.unjoinable[alias],
                    "meshVersion": self.views[alias].versions[-1][0],
                    "routeShares": shares,
                    "index": indices[alias].plan.to_json(),
                    "indexBytes": indices[alias].bytes,
                    "comparisonsPerProbe": indices[alias].comparisons_per_probe,
                }
                for alias, shares in self.route_shares.items()
            },
        }
        return {**_plain(spark_progress), "querymesh": ours}


def _iso(time_us: int | None) -> str | None:
    """As Spark's progress writes a watermark."""
    if time_us is None:
        return None
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=time_us)
    return moment.isoformat(timespec="milliseconds") + "Z"


def _plain(progress: Mapping[str, Any] | None) -> dict[str, Any]:
    """A StreamingQueryProgress is a dict in PySpark; absent before the first batch."""
    return dict(progress or {})
