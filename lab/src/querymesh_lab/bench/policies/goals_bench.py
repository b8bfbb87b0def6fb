"""`querymesh bench goals`: all policies on the same windowed joins, under three goals.

| goal | what is measured |
| --- | --- |
| least work | processor time for all tuples, beside evaluations and comparisons |
| most output by t | results when the last tuple arrives, tuples coming faster than `single` can |
| least memory | peak bytes of states, indices and waiting tuples, tuples coming more slowly |

One run tells all three: it gives the time of each step, and a queue in front of it is arithmetic.
Steps arrive evenly; one begins when it is there and the step before is done::

    arrives   a1      a2      a3      a4
    runs        [ 1 ][   2    ][ 3 ]    [ 4 ]        waiting at its end: what came and is not done

The join core, in this process (`core_run`). `single` and `mesh` are trained on a sample, `eddy` and
`cbr` learn tuple by tuple, `rate` and `chart` plan by the sample and then step by step. What is
done before the run, and planning, which is the driver's, is not in its time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.text import Text

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
from querymesh.report.text.figures import table
from querymesh_lab.bench.data.join_data import Design
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.joins.core_run import CoreRun, Watcher, run_core, steps
from querymesh_lab.bench.measure import Log, interleave
from querymesh_lab.bench.policies.join_subjects import STEP, Join
from querymesh_lab.bench.policies.planned_core import MakePlanner, PlannedSteps
from querymesh_lab.bench.policies.race import (
    Answer,
    Policy,
    View,
    answer_of,
    deciding,
    trained_mesh,
)

RUSH, EASE = 1.25, 0.8
"""How fast tuples come, where 1 is what `single` can just handle."""

ROUNDS, QUICK_ROUNDS = 9, 1
SINGLE = "single"

Routers = Mapping[str, Router]
Begin = Callable[[], tuple[Routers, Watcher | None]]
"""A fresh run: its routers, and what watches it."""


def by_views(policy: Policy) -> Callable[[Join], Begin]:
    """A policy whose routers each see the sample of their own stream."""

    def enter(subject: Join) -> Begin:
        makers = {alias: policy(view) for alias, view in subject.views().items()}
        return lambda: ({alias: make() for alias, make in makers.items()}, None)

    return enter


def by_training(policy: str) -> Callable[[Join], Begin]:
    """Meshes of all streams, trained as `qm.train` does."""

    def enter(subject: Join) -> Begin:
        views = subject.views()
        found = {alias: trained_mesh(view, policy) for alias, view in views.items()}
        profiles = {alias: view.profile for alias, view in views.items()}
        meshes = with_fewer_indices(subject.join, found, profiles)
        return lambda: ({alias: MeshRouter(mesh) for alias, mesh in meshes.items()}, None)

    return enter


def by_plans(make: MakePlanner) -> Callable[[Join], Begin]:
    """A policy that plans the whole join, by the sample and again while it runs."""

    def enter(subject: Join) -> Begin:
        sample = sampled_round(SampledJoin(subject.join, subject.sample, {}), Training())

        def begin() -> tuple[Routers, Watcher]:
            planned = PlannedSteps(subject.join, make(subject.join), sample)
            return planned.routers, planned

        return begin

    return enter


DEFAULT = "mesh"
"""What `qm.run` does unless it is told another policy."""

POLICIES: dict[str, Callable[[Join], Begin]] = {
    SINGLE: by_training("single"),
    "mesh": by_training("mesh"),
    "eddy": by_views(deciding(EDDY, Routing())),
    "cbr": by_views(deciding(CBR, Routing())),
    "rate": by_plans(lambda join: RatePlanner(join, MostBy(60))),
    "chart": by_plans(lambda join: ChartPlanner(join, Charting(settle=1))),
}
"""The first is what others are compared with. A new policy is one line."""


@dataclass(frozen=True)
class Uneven(Join):
    """Streams of which not all rows come: of stream i the share `shares[i]`, and after half of the
    time, if they `swap`, that of the stream as far from the other end."""

    shares: tuple[float, ...] = ()
    swap: bool = False

    @cached_property
    def streams(self) -> dict[str, pa.RecordBatch]:
        """The streams by alias, thinned."""
        rng = np.random.default_rng(self.design.seed + 1)
        found = {}
        for number, (alias, rows) in enumerate(super().streams.items()):
            half = np.arange(rows.num_rows) >= rows.num_rows // 2
            later = self.shares[-1 - number] if self.swap else self.shares[number]
            share = np.where(half, later, self.shares[number])
            found[alias] = rows.filter(pa.array(rng.random(rows.num_rows) < share))
        return found

    def views(self) -> dict[str, View]:
        """Each stream, with a profile of the sample; what arrives in a step is classified at once.

        Training counts with windows of that size, and of the largest steps none is divided.
        """
        largest = dict.fromkeys(self.streams, 1)
        for step in steps(self.join, self.streams, STEP * len(self.streams)):
            largest = {a: max(largest[a], batch.num_rows) for a, batch in step.items()}
        views = super().views()
        return {alias: replace(view, window=largest[alias]) for alias, view in views.items()}


EVEN = (1.0,) * 10
FALLING = (1.0, 0.5, 0.25, 0.12, 0.06)
ROWS, QUICK = 60_000, 600
QUICK_RATE = {"rate": 60.0, "window_s": 4}

_DESIGNS: dict[str, tuple[dict[str, Any], tuple[float, ...], bool]] = {
    "5-way, even": ({"shape": "5-way", "matches": 0.8}, EVEN, False),
    "5-way, uneven": ({"shape": "5-way", "matches": 3.0}, FALLING, False),
    "5-way, uneven, swapped": ({"shape": "5-way", "matches": 3.0}, FALLING, True),
    "5-way, kinds": ({"shape": "5-way", "matches": 3.0, "rare": 0.002}, EVEN, False),
    "star, uneven": ({"shape": "star", "matches": 3.0}, FALLING, False),
    "star, kinds": ({"shape": "star", "matches": 3.0, "rare": 0.002}, EVEN, False),
    "clique, even": ({"shape": "clique", "matches": 4.0, "linked": 0.1}, EVEN, False),
    "clique, uneven": ({"shape": "clique", "matches": 4.0, "linked": 0.1}, FALLING, False),
}


def subject_of(name: str, quick: bool) -> Uneven:
    """The streams of a case."""
    given, shares, swap = _DESIGNS[name]
    size: dict[str, Any] = {"rows": QUICK, **QUICK_RATE} if quick else {"rows": ROWS}
    return Uneven(name, Design(**{**given, **size}), shares=shares, swap=swap)


class Queue(NamedTuple):
    """A run behind a queue: results by the time the last tuple arrives, and the most tuples that
    had come and were not done when a step ended."""

    results: int
    waiting: int


class Step(NamedTuple):
    """One step of a run: how long it took, and how many results it gave."""

    took_s: float
    results: int


def queued(taken: Sequence[Step], rows: int, lasting_s: float) -> Queue:
    """What becomes of a run if its tuples, so many in all, come evenly over this time.

    Of a step under way at the end, the share of its results is out that its time is over.
    """
    every_s, each = lasting_s / len(taken), rows / len(taken)
    done_s, by_end, waiting = 0.0, 0.0, 0.0
    for number, (took_s, results) in enumerate(taken, 1):
        begun_s = max(done_s, number * every_s)
        done_s = begun_s + took_s
        arrived = min(len(taken), int(done_s / every_s))
        waiting = max(waiting, (arrived - number) * each)
        by_end += results * min(1.0, max(0.0, lasting_s - begun_s) / max(took_s, 1e-12))
    return Queue(round(by_end), round(waiting))


def usual_steps(runs: Sequence[CoreRun], lasting_s: float | None = None) -> list[Step]:
    """The steps of several runs of the same tuples: of each, the median of its times; all of them
    together as long as is said, if it is."""
    took_s = np.median([np.diff([at for at, _ in run.curve]) for run in runs], axis=0)
    if lasting_s is not None:
        took_s = took_s * (lasting_s / took_s.sum())
    results = np.diff([out for _, out in runs[0].curve])
    return [Step(float(s), int(n)) for s, n in zip(took_s, results, strict=True)]


@dataclass
class Contest:
    """One case, and all runs of its policies."""

    subject: Join
    runs: dict[str, list[CoreRun]] = field(default_factory=dict)
    switches: dict[str, int] = field(default_factory=dict)
    planning_s: dict[str, float] = field(default_factory=dict)
    clock_s: float = 0.0

    def action(self, name: str, begin: Begin) -> Callable[[], Answer]:
        """One run of a policy."""

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
        """Tuples of all streams."""
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
        check_name("case", name, tuple(_DESIGNS))
    command = "querymesh bench goals" + (" --quick" if quick else "")
    rows: list[dict[str, Any]] = []
    for name in cases or _DESIGNS:
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


def _contest(subject: Join, rounds: int, log: Log) -> list[Finding]:
    """A policy that came to `single`'s very plan is not run beside it: what the two would differ by
    is noise."""
    contest = Contest(subject)
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


HEAD = (
    "case", "policy", "time ×", "evaluations", "comparisons", "by t, %", "peak MB", "index MB",
    "switches", "A/A",
)  # fmt: skip


def print_rows(rows: list[dict[str, Any]], console: Console) -> None:
    """The rows as a table for people, the best policy of each goal marked by a star."""
    lines, before = [], None
    best = _best(rows)
    for row in rows:
        at, first = row["details"], row["case"] != before
        before = row["case"]
        policy = at["policy"] + (" = " + at["same_plan_as"] if at["same_plan_as"] else "")

        def starred(key: str, text: str, at: Mapping[str, Any] = at, case: str = before) -> str:
            return text + ("*" if best[case, key] == at["policy"] else " ")

        lines.append((
            row["case"] if first else "", policy, starred("time", f"{at['time']:.2f}"),
            f"{at['evaluations']:.2f}", f"{at['comparisons']:.2f}",
            starred("by_end_percent", f"{at['by_end_percent']:.1f}"),
            starred("peak_mb", f"{at['peak_mb']:.2f}"), f"{at['index_mb']:.2f}",
            str(at["switches"]), f"{at['a_a']:.2f}" if first else "",
        ))  # fmt: skip
    console.print(Text(table(HEAD, lines, left=(0, 1))), soft_wrap=True)
    console.print(Text("\n" + behind_text(rows)), soft_wrap=True)


GOALS = {
    "time": ("least work", 1),
    "by_end_percent": ("most output by t", -1),
    "peak_mb": ("least memory", 1),
}
"""By figure: the goal, and whether less of it is better (1) or more (-1)."""


def behind_text(rows: list[dict[str, Any]]) -> str:
    """How far policy "auto", which is the mesh, is behind the best one, goal by goal."""
    lines = []
    for key, (goal, sign) in GOALS.items():
        far = {}
        for case in dict.fromkeys(row["case"] for row in rows):
            of = {r["details"]["policy"]: r["details"][key] for r in rows if r["case"] == case}
            best = min(of.values(), key=lambda value: sign * value)
            far[case] = 100 * abs(of[DEFAULT] - best) / max(abs(best), 1e-9)
        worst = max(far, key=lambda case: far[case])
        middle = statistics.median(far.values())
        lines.append(
            f"{goal}: {DEFAULT} is behind the best by {middle:.1f} % (median), by {far[worst]:.1f} "
            f"% at most ({worst})"
        )
    return "\n".join(lines)


def _best(rows: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """By case and goal, the policy that did best."""
    found: dict[tuple[str, str], str] = {}
    for case in dict.fromkeys(row["case"] for row in rows):
        some = [row["details"] for row in rows if row["case"] == case]
        for key, (_, sign) in GOALS.items():
            found[case, key] = min(some, key=lambda at: sign * at[key])["policy"]
    return found
