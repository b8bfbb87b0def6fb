"""A run as the driver sees it: its metrics so far, its batches, and the mesh it has now."""

from __future__ import annotations

import copy
import logging
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from querymesh.errors import QueryMeshError
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.routers.learned import Learned
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.watch import Switch
from querymesh.runtime.loops.learner import Learner, Setting
from querymesh.runtime.loops.router_states import EddyStates
from querymesh.runtime.reports import Report
from querymesh.spark.results import Results

KEPT_BATCHES = 1000
KEPT_PROBLEMS = 20

log = logging.getLogger("querymesh")


@dataclass
class Batch:
    """What one micro-batch of a stream did; `versions` are those of the meshes it ran on."""

    query_id: str | None
    batch_id: int
    rows_in: int = 0
    rows_out: int = 0
    evaluations: int = 0
    profile_evaluations: int = 0
    routing_calls: int = 0
    versions: set[int] = field(default_factory=set)

    def add(self, metrics: Metrics) -> None:
        """Add a task's figures."""
        self.rows_in += metrics.rows_in
        self.rows_out += metrics.rows_out
        self.evaluations += metrics.evaluations
        self.profile_evaluations += metrics.profile_evaluations
        self.routing_calls += metrics.routing_calls
        self.versions |= {version for version, _ in metrics.leaf_rows}


class LiveRun:
    """Metrics and mesh of one `where` or `run`; see `querymesh.metrics`.

    `versions` are the meshes so far, `switches` when and why a running stream went over to another,
    `problems` what went wrong beside the query and did not stop it. A DataFrame written to several
    sinks is several streams; their figures add up, and `batches` tells them apart by `query_id`.

    With policy "eddy" or "cbr" there is no mesh, and the order as written stands for it; `router`
    is what the routers have learned.
    """

    def __init__(self, mesh: Mesh, engine: str, policy: str) -> None:
        self.engine = engine
        self.policy = policy
        self._metrics = Metrics()
        self.versions: list[tuple[int, Mesh]] = [(0, mesh)]
        self.switches: list[Switch] = []
        self.problems: list[str] = []
        self._batches: OrderedDict[tuple[str | None, int], Batch] = OrderedDict()
        self._learner: Learner | None = None
        self._eddies: EddyStates | None = None
        self._lock = threading.Lock()

    @property
    def metrics(self) -> Metrics:
        """What the run has done so far: a copy, so that it stays as it is while tasks report."""
        with self._lock:
            return copy.deepcopy(self._metrics)

    @property
    def batches(self) -> list[Batch]:
        """The last thousand micro-batches of a stream on the fabric, oldest first: copies."""
        with self._lock:
            return copy.deepcopy(list(self._batches.values()))

    @property
    def mesh(self) -> Mesh:
        """The mesh in use now."""
        return self.versions[-1][1]

    @property
    def router(self) -> Learned | None:
        """What the routers of policy "eddy" or "cbr" know now, as one: a copy. Else None."""
        return None if self._eddies is None else self._eddies.learned(self.metrics.routing)

    @property
    def routing_calls(self) -> int:
        """Decisions of policy "eddy" or "cbr" so far; `router.explain()` breaks them down."""
        return self.metrics.routing_calls

    def follow(self, eddies: EddyStates) -> None:
        """Keep what routers learn."""
        self._eddies = eddies

    def learn(self, setting: Setting) -> None:
        """Learn from what the tasks report, and publish to the channel."""
        version, mesh = self.versions[-1]
        self._learner = Learner(mesh, version, setting)

    def installed(self, version: int, mesh: Mesh, switch: Switch | None) -> None:
        """The stream goes over to another mesh."""
        if switch is not None:
            self.switches.append(switch)
        self.versions.append((version, mesh))

    def receive(self, report: Report) -> None:
        """Take in a task's report."""
        with self._lock:
            self._metrics.add(report.metrics)
            for problem in report.problems:
                if problem not in self.problems and len(self.problems) < KEPT_PROBLEMS:
                    self.problems.append(problem)
                    log.warning("%s; the query goes on", problem)
            if report.batch is not None:
                key = report.query, report.batch
                self._batches.setdefault(key, Batch(*key)).add(report.metrics)
                while len(self._batches) > KEPT_BATCHES:
                    self._batches.popitem(last=False)
        if self._eddies is not None:
            self._eddies.receive(report)
        if self._learner is not None:
            self._learner.receive(report)

    def wait_until_learned(self, seconds: float) -> bool:
        """Wait for the first learned mesh; False if it took longer. True at once if trained.

        With policy "eddy" or "cbr", wait until all that was learned so far is handed on.
        """
        if self._eddies is not None:
            return self._eddies.wait(seconds)
        return self._learner is None or self._learner.done.wait(seconds)


_runs: weakref.WeakKeyDictionary[DataFrame | Results, Any] = weakref.WeakKeyDictionary()


def remember(out: DataFrame | Results, run: object) -> None:
    """Let `metrics` find the run of this DataFrame."""
    _runs[out] = run


def metrics(out: DataFrame | Results) -> Any:
    """The run behind a DataFrame that `where` or `run` returned: metrics so far, mesh, engine.

    It is a `LiveRun`; of a join of windowed streams a `JoinRun`, which has one for each stream; of
    a join that runs as a tree of Spark's own joins a `TreeRun`.

    It belongs to that very DataFrame, not to what is derived from it, and adds up every execution.
    Counts come from the fabric; the native engine runs in generated code, which has no counters.
    """
    try:
        return _runs[out]
    except (KeyError, TypeError):
        raise QueryMeshError(
            "metrics() knows only the DataFrame that querymesh.run or df.transform(querymesh.where("
            "...)) returned, not one derived from it: keep that DataFrame and ask for its metrics"
        ) from None
