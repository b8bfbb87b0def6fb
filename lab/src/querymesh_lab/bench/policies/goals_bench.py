"""`querymesh bench goals`: all policies on the same windowed joins, under three goals.

| goal | what is measured |
| --- | --- |
| least work | processor time for all tuples, beside evaluations and comparisons |
| most output by t | results when the last tuple arrives, tuples coming faster than `single` can |
| least memory | peak bytes of states, indices and waiting tuples, tuples coming more slowly |

One run tells all three: it gives the time of each step, and a queue in front of it is arithmetic
(`step_queue`).

The join core, in this process (`core_run`). `single` and `mesh` are trained on a sample, `eddy` and
`cbr` learn tuple by tuple, `rate` and `chart` plan by the sample and then step by step. What is
done before the run, and planning, which is the driver's, is not in its time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from querymesh.fabric.core.router import MeshRouter, Router
from querymesh.fabric.profile.join_profile import SampledJoin
from querymesh.fabric.routers.make_eddy import CBR, EDDY
from querymesh.fabric.routers.routing import Routing
from querymesh.optimize.chart.chart_planner import ChartPlanner
from querymesh.optimize.chart.charting import Charting
from querymesh.optimize.rate.goals import MostBy
from querymesh.optimize.rate.rate_planner import RatePlanner
from querymesh.optimize.routes.index_ties import with_fewer_indices
from querymesh.optimize.train.training import Training
from querymesh.options import check_name
from querymesh.policies.sampled_round import sampled_round
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.joins.core_run import CoreRun, Watcher, run_core
from querymesh_lab.bench.measure import Log, interleave
from querymesh_lab.bench.policies.join_subjects import STEP, JoinSubject
from querymesh_lab.bench.policies.planned_core import MakePlanner, PlannedSteps
from querymesh_lab.bench.policies.race import (
    Answer,
    RouterPolicy,
    answer_of,
    deciding,
    trained_mesh,
)
from querymesh_lab.bench.policies.step_queue import queued, usual_steps
from querymesh_lab.bench.policies.uneven_subjects import DESIGNS, subject_of

RUSH, EASE = 1.25, 0.8
"""How fast tuples come, where 1 is what `single` can just handle."""

ROUNDS, QUICK_ROUNDS = 9, 1
SINGLE = "single"

Routers = Mapping[str, Router]
StartRun = Callable[[], tuple[Routers, Watcher | None]]
"""Starts a run: returns its routers, and what watches it."""


def by_views(policy: RouterPolicy) -> Callable[[JoinSubject], StartRun]:
    """A policy whose routers each see the sample of their own stream."""

    def enter(subject: JoinSubject) -> StartRun:
        makers = {alias: policy(view) for alias, view in subject.views().items()}
        return lambda: ({alias: make() for alias, make in makers.items()}, None)

    return enter


def by_training(*, one_route: bool) -> Callable[[JoinSubject], StartRun]:
    """A policy of meshes for all streams, trained as `qm.train` does."""

    def enter(subject: JoinSubject) -> StartRun:
        views = subject.views()
        found = {alias: trained_mesh(view, one_route=one_route) for alias, view in views.items()}
        profiles = {alias: view.profile for alias, view in views.items()}
        meshes = with_fewer_indices(subject.join, found, profiles)
        return lambda: ({alias: MeshRouter(mesh) for alias, mesh in meshes.items()}, None)

    return enter


def by_plans(make: MakePlanner) -> Callable[[JoinSubject], StartRun]:
    """A policy that plans the whole join, by the sample and again while it runs."""

    def enter(subject: JoinSubject) -> StartRun:
        sample = sampled_round(SampledJoin(subject.join, subject.sample, {}), Training())

        def begin() -> tuple[Routers, Watcher]:
            planned = PlannedSteps(subject.join, make(subject.join), sample)
            return planned.routers, planned

        return begin

    return enter


POLICIES: dict[str, Callable[[JoinSubject], StartRun]] = {
    SINGLE: by_training(one_route=True),
    "mesh": by_training(one_route=False),
    "eddy": by_views(deciding(EDDY, Routing())),
    "cbr": by_views(deciding(CBR, Routing())),
    "rate": by_plans(lambda join: RatePlanner(join, MostBy(60))),
    "chart": by_plans(lambda join: ChartPlanner(join, Charting(settle=1))),
}
"""The first is what others are compared with. A new policy is one line."""


@dataclass
class GoalsContest:
    """One case, and all runs of its policies."""

    subject: JoinSubject
    runs: dict[str, list[CoreRun]] = field(default_factory=dict)
    switches: dict[str, int] = field(default_factory=dict)
    planning_s: dict[str, float] = field(default_factory=dict)
    clock_s: float = 0.0

    def action(self, name: str, begin: StartRun) -> Callable[[], Answer]:
        """A function that runs the policy once and notes what it did."""

        def run() -> Answer:
            routers, watcher = begin()
            out: list[pa.RecordBatch] = []
            join, streams = self.subject.join, self.subject.streams
            step_rows = STEP * len(streams)
            done = run_core(join, streams, lambda _: routers, step_rows, out.append, None, watcher)
            self.runs.setdefault(name, []).append(done)
            self.clock_s += done.cpu_seconds
            if isinstance(watcher, PlannedSteps):
                self.switches[name] = watcher.switches
                self.planning_s[name] = watcher.planning_seconds
            return answer_of(out)

        return run

    @property
    def rows(self) -> int:
        """How many tuples all streams have together."""
        return sum(batch.num_rows for batch in self.subject.streams.values())

    def median(self, name: str, figure: Callable[[CoreRun], float]) -> float:
        """Over the runs of a policy but the first, which was to warm up."""
        return statistics.median(figure(run) for run in self.runs[name][1:])

    def figures(self, name: str, time: float) -> dict[str, float]:
        """What a policy came to under each goal.

        `time` is over `single`'s, by rounds: beside it all steps are as long as they are together,
        or a slow round would tell one policy from another.
        """
        usual_s = sum(step.took_s for step in usual_steps(self.runs[SINGLE][1:]))
        row_bytes = sum(b.nbytes for b in self.subject.streams.values()) / self.rows
        total = self.runs[name][0].metrics.rows_out
        taken = usual_steps(self.runs[name][1:], time * usual_s)
        rushed = queued(taken, self.rows, usual_s / RUSH)
        waiting_mb = queued(taken, self.rows, usual_s / EASE).waiting * row_bytes / 1e6

        return {
            "evaluations": self.median(name, lambda run: run.metrics.evaluations / self.rows),
            "comparisons": self.median(name, lambda run: run.metrics.comparisons / self.rows),
            "cpu_us": self.median(name, lambda run: 1e6 * run.cpu_seconds / self.rows),
            "by_end_percent": 100 * rushed.results / max(total, 1),
            "peak_mb": self.median(name, lambda run: run.state_bytes / 1e6) + waiting_mb,
            "state_mb": self.median(name, lambda run: run.state_bytes / 1e6),
            "index_mb": self.median(name, lambda run: run.index_bytes / 1e6),
        }


def run_goals(quick: bool, cases: list[str] | None, log: Log) -> list[dict[str, Any]]:
    """A row for each case and policy."""
    for name in cases or ():
        check_name("case", name, tuple(DESIGNS))
    command = "querymesh bench goals" + (" --quick" if quick else "")
    rows: list[dict[str, Any]] = []
    for name in cases or DESIGNS:
        log(f"{name}: data, training …")
        found = _contest(subject_of(name, quick), QUICK_ROUNDS if quick else ROUNDS, log)
        rows += [finding.as_row(command) for finding in found]
    return rows


def same_plan(one: Routers, other: Routers) -> bool:
    """Whether all tuples of each stream have one route, and both policies the same."""
    return all(
        not router.decides
        and len(router.routes()) == 1
        and router.routes() == other[alias].routes()
        for alias, router in one.items()
    )


def _contest(subject: JoinSubject, rounds: int, log: Log) -> list[Finding]:
    """A policy that came to `single`'s very plan is not run beside it: what the two would differ by
    is noise."""
    contest = GoalsContest(subject)
    begins = {name: enter(subject) for name, enter in POLICIES.items()}
    single, _ = begins[SINGLE]()
    twins = {
        name: SINGLE
        for name, begin in begins.items()
        if name != SINGLE and begin()[1] is None and same_plan(begin()[0], single)
    }
    actions = {n: contest.action(n, begin) for n, begin in begins.items() if n not in twins}
    timing = interleave(actions, rounds, clock=lambda: contest.clock_s)
    log(f"  {subject.name}: {rounds} rounds, A/A {timing.a_a:.3f}")
    found = []
    for name in POLICIES:
        ran = twins.get(name, name)
        time = round(timing.ratio(ran, SINGLE), 4) if ran != SINGLE else 1.0
        figures = {key: round(value, 4) for key, value in contest.figures(ran, time).items()}
        details = {
            "policy": name,
            "same_plan_as": twins.get(name, ""),
            "rows": contest.rows,
            "results": contest.runs[ran][0].metrics.rows_out,
            **figures,
            "time": time,
            "switches": contest.switches.get(name, 0),
            "planning_s": round(contest.planning_s.get(name, 0.0), 4),
            **timing_details(timing),
        }
        found.append(Finding(subject.name, f"{name}: time", time, "× single's", details=details))
    return found
