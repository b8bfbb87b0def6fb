"""The learner of a running stream, on the driver (QM § 4.2 and § 5.3).

::

    task reports --> batch by batch --> first mesh: gather profiles, train once
                                   \\--> then Watch: ask tasks to profile, look for a better mesh
                                             |                               |
                              channel <------+-- ask, mesh ------------------+  (search thread)

The thread that carries reports only hands one over. Everything else happens on two daemon threads,
one that follows the batches and one that searches, and nothing that goes wrong on them reaches the
query: it goes on with the mesh it has. A search is busy for `Training.seconds` at most. What the
learner is doing is told all the while (`learning_status.py`).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

import numpy as np

from querymesh.classify.tree import attributes_of
from querymesh.cost.route_time import Overheads
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.profile.calibrate_join import overheads_for
from querymesh.fabric.profile.profiler import declared_cost
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.adapt.budget import BURST_ROWS, Ask
from querymesh.optimize.adapt.watch import Look, Observation, Switch, Watch
from querymesh.optimize.train.learned_line import tell_learned
from querymesh.optimize.train.train import train_judged
from querymesh.optimize.train.training import Training
from querymesh.runtime.channel import Channel
from querymesh.runtime.loop import KEPT_PROBLEMS, Loop
from querymesh.runtime.loops.learning_status import LearningStatus
from querymesh.runtime.progress import RunProgress
from querymesh.runtime.reports import join_profiles
from querymesh.runtime.task_report import TaskReport, ViewReport
from querymesh.runtime.telling import TellingColumns
from querymesh.runtime.view import View
from querymesh.stats.costs import Timing
from querymesh.stats.profile import Profile

log = logging.getLogger("querymesh")

REST = 20.0
"""After a search, none without cause for so many times as long as it took: 5 % of a core."""


LEAST_PROFILED = 100
"""A task that profiles fewer rows than this measures its calls rather than its operators."""


def rows_to_learn_from(training: Training, tasks: int) -> int:
    """How many rows each of so many tasks profiles as long as nothing is known."""
    return min(training.sample_rows, max(training.sample_rows // (2 * tasks), LEAST_PROFILED))


@dataclass(frozen=True)
class LearnerSettings:
    """What a learner works with. Without `adaptation` it learns a first mesh and no more.

    `one_route` is whether all tuples keep one order; `measured` tells which operators' costs are
    times.
    """

    channel: Channel
    overheads: Overheads
    training: Training
    one_route: bool
    measured: list[bool]
    adaptation: Adaptation | None


def settings_for(
    view: View,
    channel: Channel,
    training: Training,
    adaptation: Adaptation | None,
    *,
    one_route: bool,
) -> LearnerSettings:
    """What the learner of a view works with, on this machine."""
    measured = [declared_cost(operator, view.bound) is None for operator in view.bound.operators]
    overheads = overheads_for(view.bound, training.window)
    return LearnerSettings(channel, overheads, training, one_route, measured, adaptation)


@dataclass
class _Batch:
    """The reports of one micro-batch so far."""

    number: int | None
    query: str | None = None
    tasks: int = 0
    metrics: Metrics = field(default_factory=Metrics)
    profiles: list[Profile] = field(default_factory=list)
    asked_evaluations: int = 0

    @property
    def key(self) -> tuple[str | None, int | None]:
        return self.query, self.number

    def add(self, report: ViewReport) -> None:
        self.tasks += 1
        self.metrics.add(report.metrics)
        self.profiles += report.profiles
        self.asked_evaluations += report.asked_evaluations


class Learner(Loop):
    """Learns a first mesh, if the stream has none, and then keeps it fitting."""

    def __init__(self, view: View, settings: LearnerSettings) -> None:
        self.telling = TellingColumns()
        self._told_epoch = 0
        self.done = threading.Event()
        self._view = view
        self._version, self._mesh = view.versions[-1]
        self._settings = settings
        self._lock = threading.Lock()
        self._inbox = threading.Lock()
        self._waiting: deque[TaskReport] = deque()
        self._following = False
        self._searching = False
        self._batch: _Batch | None = None
        self._tasks = self._tasks_before = 0
        self._closed: tuple[str | None, int | None] | None = None
        self._newest = -1
        self._rest_until = 0.0
        self._problems: list[str] = []
        self._profiles: list[Profile] = []
        self._watch: Watch | None = None
        self._asked, self._ask_number = Ask(), settings.channel.state().ask_number
        self.status = LearningStatus(
            view.alias, settings.training.sample_rows, learned=self._mesh.is_learned
        )
        if self._mesh.is_learned:
            self.telling.only(attributes_of(self._mesh.tree))
            self._start_watching(None)
            self.done.set()

    def receive(self, report: TaskReport) -> None:
        """Take a task's report; returns at once."""
        with self._inbox:
            self._waiting.append(report)
            start, self._following = not self._following, True
        if start:
            threading.Thread(target=self._follow, name="querymesh-learner", daemon=True).start()

    def _follow(self) -> None:
        while True:
            with self._inbox:
                if not self._waiting:
                    self._following = False
                    return
                report = self._waiting.popleft()
            try:
                self._take(report)
            except OSError as problem:
                self._unheard(problem)
            except Exception:
                log.exception("a batch could not be learned from; the query goes on")

    def wait(self, seconds: float) -> bool:
        """Wait for the first learned mesh; False if it took longer. True at once if trained."""
        return self.done.wait(seconds)

    @property
    def problems(self) -> Sequence[str]:
        """Why no other mesh reaches the tasks, if that is so."""
        return [*self._problems, *self.status.problems]

    def add_progress(self, progress: RunProgress) -> None:
        """Say what is being learned of the stream."""
        progress["streams"][self._view.alias]["learning"] = self.status.progress

    def explain(self) -> str:
        """How far the learning is, in a sentence."""
        alias, said = self._view.alias, self.status.message
        if not self.status.learned:
            return f"{alias} runs in the order as written, {said}"
        if self._watch is None:
            return f"{alias} keeps mesh {self._version}: {said}"
        return f"{alias} runs on mesh {self._version} and looks for a better one: {said}"

    def _take(self, report: TaskReport) -> None:
        """Add a report to its batch; a batch with as many tasks as the last is taken as whole."""
        view = report.views[self._view.alias]
        self._newest = max(self._newest, -1 if report.batch is None else report.batch)
        if self._watch is None:
            self._gather(report, view)
            return
        if self._batch is not None and self._batch.key != (report.query, report.batch):
            self._tasks_before, self._tasks = self._tasks, 0
            self._close()
        if self._batch is None:
            self._batch = _Batch(report.batch, report.query)
        self._batch.add(view)
        self._tasks += 1
        if report.batch is None or self._tasks == self._tasks_before:
            self._close()
            self._batch = _Batch(report.batch, report.query)

    def _close(self) -> None:
        batch, self._batch = self._batch, None
        if batch is None or batch.tasks == 0 or self._watch is None:
            return
        with self._lock:
            self._watch.observe(self._observation(batch))
            if self._watch.epoch != self._told_epoch:
                self._told_epoch = self._watch.epoch
                self.telling.all()
            ask = self._watch.ask
            rested = self._watch.alarmed or monotonic() >= self._rest_until
            look = self._watch.look() if rested and not self._searching else None
            self._searching = self._searching or look is not None
        if look is not None:
            self._thread(self._search, look)
        late, self._closed = batch.key == self._closed, batch.key
        if ask != self._asked and not late:  # the next batch may have begun, and is asked already
            self._ask_number += 1
            self._asked = ask
            self._settings.channel.ask(ask, self._ask_number)

    def _observation(self, batch: _Batch) -> Observation:
        operators = len(self._mesh.operators)
        evaluations = np.zeros(operators)
        for index, visits in batch.metrics.by_operator().items():
            evaluations[index - 1] = visits.evaluations
        return Observation(
            batch=-1 if batch.number is None else batch.number,
            rows=batch.metrics.rows_in,
            tasks=batch.tasks,
            visits={
                (leaf, index): Timing(v.calls, v.evaluations, v.passed, v.seconds)
                for (version, leaf, index), v in batch.metrics.visits.items()
                if version == self._version
            },
            evaluations=evaluations,
            profiled=np.full(operators, batch.asked_evaluations / operators),
            profiles=[kept for each in batch.profiles if (kept := self.telling.of(each))],
        )

    def _start_watching(self, profile: Profile | None) -> None:
        settings = self._settings
        if settings.adaptation is not None:
            self._watch = Watch(
                self._mesh, settings.overheads, settings.training, settings.adaptation,
                settings.one_route, settings.measured, profile,
            )  # fmt: skip

    def _gather(self, report: TaskReport, view: ViewReport) -> None:
        """Take in rows profiled for the first mesh; starts training when they suffice."""
        if self._searching or self.done.is_set():
            return
        self._profiles += view.profiles
        profiled = sum(profile.rows for profile in view.profiles)
        self.status.heard((report.query, report.batch), profiled, view.problems)
        if sum(profile.rows for profile in self._profiles) >= self._settings.training.sample_rows:
            self._searching = True
            self._thread(self._learn)

    def _learn(self) -> None:
        settings, started = self._settings, monotonic()
        self.status.began()
        outcome, learned = "", False
        try:
            settings.channel.enough()
            profile = join_profiles(self._profiles)
            found = train_judged(
                self._mesh.query,
                profile,
                settings.overheads,
                settings.training,
                one_route=settings.one_route,
            )
            mesh = found.mesh
            self._install(mesh, None)
            learned = True
            outcome = f"mesh {self._version} learned from {profile.rows:,} rows: {mesh.why}"
            if mesh.found_by:
                outcome += f" ({mesh.found_by})"
            asked = settings.training.accuracy
            if asked is not None and (mesh.accuracy is None or mesh.accuracy < asked):
                log.warning(
                    "accuracy %g was asked for, and the %d rows a stream learns from first have "
                    "%.3f: it goes on with their mesh", asked, profile.rows, mesh.accuracy or 0.0,
                )  # fmt: skip
            why = f"mesh {self._version} of {self._view.alias}, {mesh.why}"
            tell_learned(profile.rows, monotonic() - started, why)
            with self._lock:
                self._start_watching(profile)
            if self._watch is None or not found.in_doubt:  # else more rows may tell
                self._hold_back(epoch=0)
        except OSError as problem:
            outcome = outcome or f"what was learned does not reach the tasks: {problem}"
            self._unheard(problem)
        except Exception as problem:
            outcome = outcome or f"no mesh could be learned: {type(problem).__name__}: {problem}"
            log.exception("no mesh could be learned; the query goes on with the order as written")
        finally:
            self.status.ended(outcome, learned=learned)
            self._profiles = []
            self._searching = False
            self.done.set()

    def _search(self, look: Look) -> None:
        started = monotonic()
        self.status.began()
        found = False
        outcome = f"no mesh was found that saves more than mesh {self._version} beyond doubt"
        try:
            finding = look.finding()
            if finding is None or self._watch is None:
                return
            switch = look.switch(finding, self._version + 1, self._newest)
            if not self._install(finding.mesh, switch, look.epoch):
                outcome = "the data changed again while a mesh was searched for: it is let go"
                log.info("%s", outcome)
                return
            found = True
            outcome = f"mesh {switch.version} was found: {switch.reason}"
            log.info("mesh %d after batch %d: %s", switch.version, switch.batch, switch.reason)
        except OSError as problem:
            outcome = f"what was found does not reach the tasks: {problem}"
            self._unheard(problem)
        except Exception as problem:
            outcome = f"no better mesh could be searched for: {type(problem).__name__}: {problem}"
            log.exception("no better mesh could be searched for; the query goes on")
            self._tell(outcome)
        finally:
            self.status.ended(outcome, learned=True)
            if found or (look.thorough and look.profile.rows >= BURST_ROWS):
                self._hold_back(look.epoch)
            self._rest_until = monotonic() + REST * (monotonic() - started)
            self._searching = False

    def _install(self, mesh: Mesh, switch: Switch | None, epoch: int = 0) -> bool:
        """One file makes it the newest; whoever begins a batch after this takes it.

        Not so a mesh that was found on data of an earlier epoch than the present.
        """
        with self._lock:
            if self._watch is not None and self._watch.epoch != epoch:
                return False
            version = self._version + 1
            self._settings.channel.publish(mesh, version)
            self._view.installed(version, mesh, switch)
            self._version, self._mesh = version, mesh
            if self._watch is not None:
                self._watch.installed(mesh)
            return True

    def _hold_back(self, epoch: int) -> None:
        """Kinds were looked for by all columns: from now on only those of the mesh are sent."""
        with self._lock:
            if self._watch is None or self._watch.epoch == epoch:
                self.telling.only(attributes_of(self._mesh.tree))
            if self._watch is not None:
                self._watch.without_columns(self.telling.held_back)

    def _unheard(self, problem: OSError) -> None:
        """The folder cannot be written, or is gone with its checkpoint: say so once."""
        told = f"the query goes on with the mesh it has; no other reaches it: {problem}"
        log.log(logging.DEBUG if self._problems else logging.WARNING, "%s", told)
        self._problems = self._problems or [told]

    def _tell(self, problem: str) -> None:
        """Keep what went wrong, once, among the problems."""
        if problem not in self._problems and len(self._problems) < KEPT_PROBLEMS:
            self._problems.append(problem)

    def _thread(self, work: Callable[..., None], *args: object) -> None:
        threading.Thread(target=work, args=args, name="querymesh-search", daemon=True).start()
