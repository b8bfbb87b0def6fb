"""Watching a running mesh (QM § 5.3): what to profile next, and when another mesh is worth a look.

::

    counts of a batch --> DriftDetector --shift--> older profiled rows are set aside,
          |                                        what was saved is asked for in one burst
          +--> RunningCosts --shift--> look again
          +--> Budget --> Ask, for the tasks of the next batch
    profiled rows --> RecentProfile --enough new ones--> Look --> FoundMesh --> Switch

No Spark, no thread and no clock here: the learner of `runtime/loops` feeds it batches and carries
out what it says, and a simulation does as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from querymesh.arrays import Floats
from querymesh.classify.tree import Leaf, Tree, branches
from querymesh.cost.route_time import Overheads
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.adapt import (
    LEAST_ROWS,
    Adaptation,
    FoundMesh,
    MeshSaving,
    better_mesh,
    consider,
)
from querymesh.optimize.adapt.budget import BURST_ROWS, Ask, Budget
from querymesh.optimize.train.training import Training
from querymesh.stats.costs import CostShift, RunningCosts, Timing
from querymesh.stats.drift import DriftDetector, LeafOperator, Shift
from querymesh.stats.profile import Profile
from querymesh.stats.recent import RecentProfile


@dataclass(frozen=True)
class Observation:
    """One batch: `visits` on the mesh that is watched, the other figures on any.

    `evaluations` and `profiled` are by operator: what the query evaluated, and what profiling did.
    """

    batch: int
    rows: int
    tasks: int
    visits: Mapping[LeafOperator, Timing]
    evaluations: Floats
    profiled: Floats
    profiles: list[Profile] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Switch:
    """One mesh replaced by another: by which version, after which batch, when, and why.

    `saving` is the share of the running mesh's cost that is expected to be saved; `stream` whose
    tuples go over to it.
    """

    version: int
    batch: int
    when: datetime
    reason: str
    saving: float
    stream: str = ""


@dataclass(frozen=True)
class Look:
    """Everything a search needs, so that it can be done on another thread."""

    mesh: Mesh
    profile: Profile
    overheads: Overheads
    training: Training
    adaptation: Adaptation
    one_route: bool
    changed: str
    thorough: bool
    epoch: int

    def finding(self) -> FoundMesh | None:
        """A mesh that is cheaper than the running one beyond doubt, and says why; or None."""
        doubt, least_gain = self.adaptation.doubt, self.adaptation.least_gain
        if not self.thorough:
            cheap = consider(
                self.mesh, self.profile, self.overheads, self.training, one_route=self.one_route
            )
            if not cheap.pays(doubt, least_gain):
                return None
        found = better_mesh(
            self.mesh, self.profile, self.overheads, self.training, one_route=self.one_route
        )
        if not found.saving.pays(doubt, least_gain):
            return None
        reason = _reason(self.changed, found.saving, self.profile.rows)
        return replace(found, mesh=replace(found.mesh, why=reason))

    def switch(self, finding: FoundMesh, version: int, batch: int) -> Switch:
        """The record of going over to what was found."""
        share = finding.saving.share
        return Switch(version, batch, datetime.now(UTC), finding.mesh.why, share)


class Watch:
    """Watches the running mesh of one stream, and each that replaces it.

    `one_route` keeps one order for all tuples, whatever else would pay.
    `epoch` counts the changes of the data so far: a mesh found in an earlier one is out of date.
    `measured` tells which operators' costs are times (and not declared); `profile` is what the mesh
    was trained on, where it is at hand.
    """

    def __init__(
        self,
        mesh: Mesh,
        overheads: Overheads,
        training: Training,
        adaptation: Adaptation,
        one_route: bool,
        measured: list[bool],
        profile: Profile | None = None,
    ) -> None:
        self._mesh = mesh
        self._overheads = overheads
        self._training = training
        self._adaptation = adaptation
        self._one_route = one_route
        self._drift = DriftDetector(adaptation.half_life_rows)
        drop_us = np.array([operator.drop_us for operator in mesh.operators])
        pass_us = np.array([operator.pass_us for operator in mesh.operators])
        self._costs = RunningCosts(drop_us, pass_us, measured, overheads.ruster_us)
        self._budget = Budget(adaptation.budget, self._cost_us())
        self._recent = RecentProfile(adaptation.profile_rows, training.seed)
        if profile is not None:
            self._recent.add(profile)
        self._wanted = 0
        self._changed: list[str] = []
        self.epoch = 0
        self._next_look = self._recent.added + LEAST_ROWS
        self._next_search = max(2 * self._recent.added, LEAST_ROWS)
        self.ask = Ask()

    def observe(self, seen: Observation) -> None:
        """Take in a batch; `ask` is then what to ask of the next."""
        profiled = sum(profile.rows for profile in seen.profiles)
        for profile in seen.profiles:
            self._recent.add(profile)
        self._wanted = max(0, self._wanted - profiled)
        self._budget.observe(seen.rows, seen.evaluations, seen.profiled)
        counts = {key: (of.evaluations, of.passed) for key, of in seen.visits.items()}
        if shifts := self._drift.observe(seen.rows, counts):
            self._alarm(shifts)
        timings = [(operator, timing) for (_, operator), timing in seen.visits.items()]
        if costs := self._costs.observe(timings):
            self._changed += [_cost_text(shift, self._mesh) for shift in costs]
            self._budget.recost(self._cost_us())
            self._next_look = self._next_search = max(self._recent.added, LEAST_ROWS)
        self.ask = self._budget.ask(self._wanted, seen.batch + 1, seen.rows, seen.tasks)

    def _alarm(self, shifts: list[Shift]) -> None:
        """Set aside what was profiled before the data changed; ask for a burst of fresh rows."""
        self.epoch += 1
        largest = max(shifts, key=lambda shift: abs(shift.now - shift.before))
        self._changed = [_shift_text(largest, self._mesh)]
        self._recent.forget()
        self._drift.restart()
        self._wanted = BURST_ROWS
        self._next_look = self._next_search = LEAST_ROWS

    def look(self) -> Look | None:
        """A look that is due now, or None. Looks grow rarer as long as nothing changes.

        A thorough one searches in any case, for kinds of tuples that the running classifier does
        not tell apart; it comes at once after a change, then whenever twice as many rows have been
        profiled, at last once for every renewal of the profile.
        """
        added, most = self._recent.added, self._adaptation.profile_rows
        if added < min(self._next_look, self._next_search):
            return None
        thorough = added >= self._next_search
        if thorough:
            self._next_search = added + min(max(added, LEAST_ROWS), most)
        self._next_look = added + max(LEAST_ROWS, self._recent.rows // 4)
        return Look(
            self._mesh,
            self._recent.with_costs(self._costs.drop_us.copy(), self._costs.pass_us.copy()),
            self._overheads,
            self._training,
            self._adaptation,
            self._one_route,
            "; ".join(self._changed),
            thorough,
            self.epoch,
        )

    def without_columns(self, names: Collection[str]) -> None:
        """Look no more for kinds of tuples by these columns: rows come without them."""
        self._recent.without_columns(names)

    @property
    def alarmed(self) -> bool:
        """Whether something changed that no mesh has answered yet."""
        return bool(self._changed)

    def installed(self, mesh: Mesh) -> None:
        """Watch another mesh from now on."""
        self._mesh = mesh
        self._changed = []
        self._drift.restart()

    def _cost_us(self) -> Floats:
        rates = np.array([operator.pass_rate for operator in self._mesh.operators])
        return self._costs.cost_us(rates)


def _reason(changed: str, found: MeshSaving, rows: int) -> str:
    cost = f"{found.running_us:.3g} -> {found.running_us - found.saving_us:.3g} µs a row"
    judged = f"on {found.rows} of {rows} profiled rows, kept back (± {found.error_us:.2g})"
    return f"{changed or 'a cheaper mesh was found'}: {cost} {judged}"


def _shift_text(shift: Shift, mesh: Mesh) -> str:
    paths = list(_paths(mesh.tree))
    where = f" where {paths[shift.leaf]}" if paths[shift.leaf] else ""
    name = mesh.operators[shift.operator - 1].name
    return f"{name}{where} passed {shift.before:.0%} and now {shift.now:.0%}"


def _cost_text(shift: CostShift, mesh: Mesh) -> str:
    name = mesh.operators[shift.operator - 1].name
    return f"{name} cost {shift.before_us:.3g} and now {shift.now_us:.3g} µs beside the others"


def _paths(tree: Tree, so_far: tuple[str, ...] = ()) -> list[str]:
    """Each leaf's path from the root, for people."""
    if isinstance(tree, Leaf):
        return [" and ".join(so_far)]
    return [path for text, below in branches(tree) for path in _paths(below, (*so_far, text))]
