"""Policies against each other on one subject: the same fabric, sample, tuples and answer.

A policy is a function from what a sample tells of a source to a maker of routers. Trained ones
search their mesh then, once; Eddies begin each run with nothing learned::

    "mesh": trained()                  SampledView ──> train ──> () -> MeshRouter
    "cbr":  deciding("cbr", Routing()) SampledView ───────────> () -> ContentRouter

Every policy runs once to be counted, which also warms up; then all run in turns (`measure`), by
processor time of this process. Variants of a policy are counted only, and stand in its details.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from querymesh.cost.route_time import WINDOW
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.router import MeshRouter, Router
from querymesh.fabric.profile.calibrate_join import overheads_for
from querymesh.fabric.routers.content import ContentRouter
from querymesh.fabric.routers.content_record import Event
from querymesh.fabric.routers.make_eddy import make_eddy
from querymesh.fabric.routers.routing import Routing
from querymesh.mesh.mesh import Mesh, written_mesh
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.model import BoundQuery
from querymesh.stats.profile import Profile, route_text
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.measure import Log, RivalsDisagreeError, interleave

Answer = tuple[int, int]

MOST_ROUNDS = 7
SHOWN_EVENTS = 40
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class SampledView:
    """What a router is made for: a source, or a stream of a join, and what its sample tells.

    `own` are the conditions of a stream that come before its probes; None without a join.
    """

    bound: BoundQuery
    profile: Profile
    own: frozenset[int] | None = None
    window: int = WINDOW


RouterMaker = Callable[[], Router]
RouterPolicy = Callable[[SampledView], RouterMaker]


def trained(*, one_route: bool = False) -> RouterPolicy:
    """A policy that finds its routes on the sample, before anything runs: a mesh, or the best
    single one."""

    def prepare(view: SampledView) -> RouterMaker:
        mesh = trained_mesh(view, one_route=one_route)
        return lambda: MeshRouter(mesh)

    return prepare


def trained_mesh(view: SampledView, *, one_route: bool) -> Mesh:
    """The mesh that training finds on the sample of one view."""
    if len(view.bound.operators) < 2:
        return written_mesh(view.bound)
    overheads = overheads_for(view.bound, view.window)
    training = Training(window=view.window)
    return train_mesh(view.bound.query, view.profile, overheads, training, one_route=one_route)


def deciding(policy: str, routing: Routing) -> RouterPolicy:
    """A policy that finds its routes while tuples run, and does not look at the sample."""
    return lambda view: partial(make_eddy, policy, view.bound, routing, view.own)


@dataclass(frozen=True)
class WorkBounds:
    """Evaluations a row of the class oracle and of a clairvoyant, and microseconds where known.

    The oracle is NaN where nobody knows the true classes.
    """

    oracle: float
    bound: float
    oracle_us: float = float("nan")
    bound_us: float = float("nan")


@dataclass(frozen=True)
class PolicyRun:
    """What one run did."""

    answer: Answer
    metrics: Metrics
    cpu_seconds: float
    operator_us: float
    """What the operators took, in microseconds over all rows."""

    routers: Mapping[str, Router]
    rows_of: Mapping[str, int]
    """Rows that came in, by source."""

    late: float = float("nan")
    """Evaluations a row in the second half of the rows."""

    @property
    def calls(self) -> int:
        """Decisions about a tuple's way: an Eddy's routing calls, a mesh's classifications."""
        classified = sum(
            self.rows_of[name]
            for name, router in self.routers.items()
            if isinstance(router, MeshRouter) and len(router.mesh.leaf_routes) > 1
        )
        return self.metrics.routing_calls + classified

    def figures(self) -> dict[str, float]:
        """The figures of the run, by row that came in."""
        rows = max(self.metrics.rows_in, 1)
        return {
            "evaluations": self.metrics.evaluations / rows,
            "late_evaluations": self.late,
            "calls": self.calls / rows,
            "comparisons": self.metrics.comparisons / rows,
            "operator_us": self.operator_us / rows,
            "cpu_us": 1e6 * self.cpu_seconds / rows,
        }


class PolicySubject(Protocol):
    """A query with its data, on which every policy can be run."""

    @property
    def name(self) -> str:
        """The name of the case in reports."""

    @property
    def kind(self) -> str:
        """What the query consists of: filters, look-ups or joins."""

    def views(self) -> Mapping[str, SampledView]:
        """The sources or streams that routers are made for, by name."""

    def run(self, makers: Mapping[str, RouterMaker]) -> PolicyRun:
        """Run all rows on the routers that these make."""

    def bounds(self) -> WorkBounds:
        """What no policy can be better than, and what knowing the classes would give."""


PolicyCase = tuple[Callable[[int], PolicySubject | None], int, int]
"""What makes a subject of so many rows, None where its data are missing; rows, full and quick."""


@dataclass
class PolicyRace:
    """One subject, and all that ran on it so far."""

    subject: PolicySubject
    makers: dict[str, dict[str, RouterMaker]] = field(default_factory=dict)
    runs: dict[str, list[PolicyRun]] = field(default_factory=dict)
    clock_s: float = 0.0

    def enter(self, policies: Mapping[str, RouterPolicy]) -> None:
        """Show the sample to these policies, which train if they do."""
        views = self.subject.views()
        for name, policy in policies.items():
            self.makers[name] = {alias: policy(view) for alias, view in views.items()}

    def run(self, name: str) -> Answer:
        """One run of one policy; the answer must be everybody's."""
        done = self.subject.run(self.makers[name])
        self.clock_s += done.cpu_seconds
        self.runs.setdefault(name, []).append(done)
        expected = next(iter(self.runs.values()))[0].answer
        if done.answer != expected:
            raise RivalsDisagreeError(
                f"{self.subject.name}: {name} answered {done.answer}, the first one {expected}"
            )
        return done.answer

    def figures(self, name: str) -> dict[str, float]:
        """The median of a policy's runs: an Eddy that goes by measured costs varies a little."""
        found = [done.figures() for done in self.runs[name]]
        return {key: statistics.median(each[key] for each in found) for key in found[0]}


def race(
    subject: PolicySubject,
    policies: Mapping[str, RouterPolicy],
    variants: Mapping[str, Mapping[str, RouterPolicy]],
    seconds: float,
    log: Log,
) -> list[Finding]:
    """A finding for each policy; rounds last about so many seconds, one round at least.

    The first policy is the one that others are compared with, and the A/A control.
    """
    race = PolicyRace(subject)
    race.enter(policies)
    for name in policies:
        race.run(name)
    rounds = min(max(int(seconds / max(race.clock_s, 1e-3)), 1), MOST_ROUNDS)
    first = next(iter(policies))
    actions = {name: partial(race.run, name) for name in policies}
    timing = interleave(actions, rounds, warm_ups=0, clock=lambda: race.clock_s)
    for also in variants.values():
        race.enter(also)
        for name in also:
            race.run(name)
    bounds = subject.bounds()
    usual = race.figures(first)
    log(f"  {subject.name}: {rounds} rounds, A/A {timing.a_a:.3f}")
    found = []
    for name in policies:
        last, figures = race.runs[name][-1], race.figures(name)
        details = {
            "policy": name,
            "kind": subject.kind,
            "rows": last.metrics.rows_in,
            "results": last.answer[0],
            **_rounded(figures),
            "operator_time": _over(figures["operator_us"], usual["operator_us"]),
            "time": round(timing.ratio(name, first), 4),
            **{f"limit_{key}": value for key, value in _rounded(asdict(bounds)).items()},
            "learned": {alias: router_details(router) for alias, router in last.routers.items()},
            "calls_by": _calls_by(last.metrics),
            "variants": {v: _rounded(race.figures(v)) for v in variants.get(name, {})},
            **timing_details(timing),
        }
        claim = f"{name}: evaluations a row"
        found.append(Finding(subject.name, claim, figures["evaluations"], "a row", details=details))
    return found


def router_details(router: Router) -> dict[str, Any]:
    """What a router knows at the end of a run."""
    if isinstance(router, MeshRouter):
        routes = [route_text(route) for route in router.mesh.leaf_routes]
        return {"routes": routes, "why": router.mesh.why}
    if isinstance(router, ContentRouter):
        learning = router.learning
        events = list(learning.events)
        return {
            "pairs": {k: " & ".join(p.attributes) for k, p in router.estimates.pairs.items()},
            "decisions": dict(Counter(event.decision for event in events)),
            "events": [_event_text(event) for event in events[-SHOWN_EVENTS:]],
            "left_out": dict(learning.left_out),
        }
    return {"routes": [route_text(route) for route in router.routes()]}


def _event_text(event: Event) -> str:
    best = [f"{' & '.join(names)} {gain:.3f}" for names, gain in event.gains[:1]]
    said = ", ".join([f"operator {event.operator} {event.decision}", *best])
    return f"{event.rows}: {said}" + (f" ({event.reason})" if event.reason else "")


def answer_of(batches: Iterable[pa.RecordBatch]) -> Answer:
    """Rows, and a sum over them of a hash of their whole-number columns: no order changes it."""
    rows, total = 0, np.uint64(0)
    with np.errstate(over="ignore"):
        for batch in batches:
            rows += batch.num_rows
            mixed = np.zeros(batch.num_rows, np.uint64)
            for column in batch.columns:
                if pa.types.is_integer(column.type):
                    mixed = (mixed ^ np.asarray(column).astype(np.uint64)) * _MIX
                    mixed ^= mixed >> np.uint64(29)
            total += mixed.sum(dtype=np.uint64)
    return rows, int(total)


def _calls_by(metrics: Metrics) -> dict[str, int]:
    found: Counter[str] = Counter()
    for (_, way), calls in metrics.routing.items():
        found[way] += calls
    return dict(found)


def _over(one: float, other: float) -> float:
    return round(one / other, 4) if other else float("nan")


def _rounded(figures: Mapping[str, float], digits: int = 4) -> dict[str, float]:
    return {key: round(value, digits) for key, value in figures.items()}


def mean_bounds(parts: Sequence[tuple[float, WorkBounds]]) -> WorkBounds:
    """The mean of the bounds of several streams, weighted by their rows."""
    weights = np.array([rows for rows, _ in parts]) / sum(rows for rows, _ in parts)
    each = np.array([list(asdict(bounds).values()) for _, bounds in parts])
    return WorkBounds(*(weights @ each).tolist())
