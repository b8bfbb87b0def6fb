"""A run as the driver sees it: its metrics so far, and the mesh it has now.

For a stream that started untrained this is also the learner (plan staging, QM § 4.2): it gathers
what the first batches profiled, trains on a thread of its own, and publishes the mesh, which the
next batch takes.
"""

from __future__ import annotations

import copy
import logging
import threading
import weakref

from pyspark.sql import DataFrame

from querymesh.cost.mesh import Overheads
from querymesh.errors import QueryMeshError
from querymesh.fabric.metrics import Metrics
from querymesh.optimize.mesh import Mesh
from querymesh.optimize.train import Training, train_mesh
from querymesh.spark.channel import Channel
from querymesh.spark.reports import Report, join_profiles
from querymesh.stats.profile import Profile

log = logging.getLogger("querymesh")


class LiveRun:
    """Metrics and mesh of one `where` or `run`; see `querymesh.metrics`."""

    def __init__(self, mesh: Mesh, engine: str, policy: str) -> None:
        self.engine = engine
        self.policy = policy
        self._metrics = Metrics()
        self.versions: list[tuple[int, Mesh]] = [(0, mesh)]
        self._learner: Learner | None = None
        self._lock = threading.Lock()

    @property
    def metrics(self) -> Metrics:
        """What the run has done so far: a copy, so that it stays as it is while tasks report."""
        with self._lock:
            return copy.deepcopy(self._metrics)

    @property
    def mesh(self) -> Mesh:
        """The mesh in use now."""
        return self.versions[-1][1]

    def learn(self, channel: Channel, overheads: Overheads, training: Training) -> None:
        """Train on what the tasks profile, and publish to the channel."""
        self._learner = Learner(self, channel, overheads, training)

    def receive(self, report: Report) -> None:
        """Take in a task's report."""
        with self._lock:
            self._metrics.add(report.metrics)
        if self._learner is not None and report.profiles:
            self._learner.gather(report.profiles)

    def wait_until_learned(self, seconds: float) -> bool:
        """Wait for the first learned mesh; False if it took longer. True at once if trained."""
        return self._learner is None or self._learner.done.wait(seconds)


class Learner:
    """Gathers profiles until there are enough, then trains once, on a daemon thread."""

    def __init__(
        self, run: LiveRun, channel: Channel, overheads: Overheads, training: Training
    ) -> None:
        self.done = threading.Event()
        self._run = run
        self._channel = channel
        self._overheads = overheads
        self._training = training
        self._profiles: list[Profile] = []
        self._started = False

    def gather(self, profiles: list[Profile]) -> None:
        """Take in profiled rows; starts training when they suffice."""
        if self._started:
            return
        self._profiles += profiles
        if sum(profile.rows for profile in self._profiles) >= self._training.sample_rows:
            self._started = True
            threading.Thread(target=self._train, name="querymesh-learner", daemon=True).start()

    def _train(self) -> None:
        run = self._run
        known = list(run.versions)
        try:
            self._channel.enough()
            profile = join_profiles(self._profiles)
            mesh = train_mesh(run.mesh.query, profile, self._overheads, self._training, run.policy)
            version = run.versions[-1][0] + 1
            run.versions.append((version, mesh))
            self._channel.publish(mesh, version)
            log.info("mesh %d learned from %d rows: %s", version, profile.rows, mesh.why)
        except Exception:
            run.versions = known
            log.exception("no mesh could be learned; the query goes on with the order as written")
        finally:
            self._profiles = []
            self.done.set()


_runs: weakref.WeakKeyDictionary[DataFrame, LiveRun] = weakref.WeakKeyDictionary()


def remember(out: DataFrame, run: LiveRun) -> None:
    """Let `metrics` find the run of this DataFrame."""
    _runs[out] = run


def metrics(out: DataFrame) -> LiveRun:
    """The run behind a DataFrame that `where` or `run` returned: metrics so far, mesh, engine.

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
