"""Which engine runs a filter, and what runs where: plain Spark, native, fabric or a sandwich.

::

    profile, costs ─> a placement for each engine ─> its best single order ─> the cheapest of them
                                                                                   │ one mesh
    worth it? <── stages of its own for each leaf <── trained with the crossing as an operator
       ├ yes: that engine, with its mesh and stages
       └ no:  plain Spark, as written

`Decision.candidates` has what each of them is expected to cost. One mesh is trained, for the engine
whose best single order is cheapest, and only where a clairvoyant would save enough by kinds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from querymesh.arrays import Floats
from querymesh.cost.route_time import Overheads
from querymesh.errors import TrainingError
from querymesh.mesh.mesh import Mesh, written_order
from querymesh.mesh.stages import Stages
from querymesh.optimize.placement.costs import (
    Costs,
    least_us,
    plain_cheapest_us,
    plain_us,
)
from querymesh.optimize.placement.engines import ENGINES, StagedRoutes, single_order, with_mesh
from querymesh.optimize.placement.predicted_stages import or_predicted
from querymesh.optimize.placement.worth import MARGIN, Job, Saving, saving_of
from querymesh.optimize.train.predicted_mesh import FORETELLING_S
from querymesh.optimize.train.training import Training
from querymesh.query.model import Query
from querymesh.stats.profile import Profile

PLAIN = "plain"

CLEARLY = 0.02
"""By this share of plain Spark's time a way through Python must be faster than one without."""

MESH_SECONDS = 0.3
"""What training a mesh takes, about. A job that could not save as much by it trains none."""


@dataclass(frozen=True)
class Candidate:
    """One way to run the filter, in microseconds a row: `single_us` on its best single order,
    `expected_us` with a mesh if it has one; and what it saves over plain Spark."""

    name: str
    expected_us: float
    single_us: float
    saving: Saving
    mesh: Mesh

    def because(self, why: str) -> Candidate:
        """The same, its mesh saying why it was chosen."""
        return replace(self, mesh=replace(self.mesh, why=why))


@dataclass(frozen=True)
class Decision:
    """What was chosen and why, with all that it was compared with.

    Costs are microseconds a row over the sample: `plain_us` of plain Spark, `expected_us` of what
    was chosen, `single_us` of the best single order wherever its operators run, `bound_us` what no
    order and no placement could beat. `candidates` has plain Spark and every engine that was
    costed, `ruled_out` why others were not. `in_doubt` is true where a larger sample might show
    that something cheaper is worth it.
    """

    chosen: str
    mesh: Mesh
    stages: Stages | None
    candidates: Mapping[str, Candidate]
    ruled_out: Mapping[str, str]
    plain_us: float
    single_us: float
    expected_us: float
    bound_us: float
    in_doubt: bool
    why: str


def decide(
    query: Query,
    profile: Profile,
    costs: Costs,
    overheads: Overheads,
    job: Job | None = None,
    training: Training | None = None,
    *,
    one_route: bool = False,
) -> Decision:
    """The engine, the mesh and the stages of a filter, by its profile.

    With `one_route` no mesh is trained: all tuples take the best single order.
    """
    if costs.operators != profile.operators:
        raise TrainingError(
            f"costs of {costs.operators} operators do not fit a profile of {profile.operators}"
        )
    job, training = job or Job(), training or Training()
    filter_ = _Filter(query, profile, costs, job)
    if profile.operators == 0 or profile.rows == 0:
        reason = "the sample is empty" if profile.operators else "there is no condition"
        return filter_.as_written(f"{reason}: it runs as written")
    if filter_.plain_us - filter_.bound_us <= filter_.needed_us:
        why = (
            f"plain Spark takes {filter_.plain_us:.3g} µs a row, and no order on any engine could "
            f"take less than {filter_.bound_us:.3g}: it runs as written"
        )
        return filter_.as_written(why)
    found: dict[str, StagedRoutes] = {}
    ruled_out: dict[str, str] = {}
    for name, place in ENGINES.items():
        placement = place(profile, costs)
        if isinstance(placement, str):
            ruled_out[name] = placement
        else:
            found[name] = single_order(placement, profile, costs, overheads, training)
    in_doubt = False
    if found and not one_route and profile.operators > 1:
        single_us = {n: float(routes.row_us(profile, costs).mean()) for n, routes in found.items()}
        best = min(single_us, key=single_us.__getitem__)
        if filter_.could_gain_by_kinds(single_us[best]):
            single = found[best]
            found[best], in_doubt = with_mesh(single, query, profile, costs, training)
            if filter_.could_gain_by_kinds(single_us[best], FORETELLING_S):
                found[best], further = or_predicted(
                    found[best], single, query, profile, costs, training
                )
                in_doubt = in_doubt or further
    return filter_.verdict(found, ruled_out, in_doubt)


@dataclass(frozen=True)
class _Filter:
    """A filter whose engines are compared with plain Spark."""

    query: Query
    profile: Profile
    costs: Costs
    job: Job

    @cached_property
    def plain_row_us(self) -> Floats:
        return plain_us(self.profile, self.costs)

    @property
    def plain_us(self) -> float:
        return float(self.plain_row_us.mean()) if self.profile.rows else math.nan

    @cached_property
    def bound_us(self) -> float:
        # Plain Spark may do better than precedence allows: it is what it is compared with.
        us = np.minimum(least_us(self.profile, self.costs), self.plain_row_us)
        return float(us.mean()) if self.profile.rows else math.nan

    @property
    def needed_us(self) -> float:
        return MARGIN * (self.plain_us + self.job.other_us)

    def could_gain_by_kinds(self, single_us: float, takes_s: float = MESH_SECONDS) -> bool:
        """Whether a clairvoyant would save the margin, and more time than training takes."""
        gain_us = single_us - self.bound_us
        if gain_us <= MARGIN * (single_us + self.job.other_us):
            return False
        return self.job.rows is None or self.job.seconds(gain_us) > takes_s

    def as_written(self, why: str) -> Decision:
        """Plain Spark, with nothing to compare it with."""
        plain = self._plain_candidate()
        return self._decision(plain.because(why), {PLAIN: plain}, {}, False, why)

    def verdict(
        self, found: Mapping[str, StagedRoutes], ruled_out: Mapping[str, str], in_doubt: bool
    ) -> Decision:
        """The cheapest engine whose saving is certain, else plain Spark."""
        candidates = {PLAIN: self._plain_candidate()}
        candidates |= {name: self._candidate(name, routes) for name, routes in found.items()}
        by_time = sorted(candidates.values(), key=lambda each: -self._preference_us(each))
        doubtful = [each for each in by_time if each.saving.in_doubt]
        for best in by_time:
            if best.saving.is_certain:
                missed = any(each.expected_us < best.expected_us for each in doubtful)
                why = self._worth_it(best)
                return self._decision(best, candidates, ruled_out, in_doubt or missed, why)
        why = self._not_worth_it(by_time[0])
        plain = candidates[PLAIN].because(why)
        return self._decision(plain, candidates, ruled_out, in_doubt or bool(doubtful), why)

    def _preference_us(self, candidate: Candidate) -> float:
        """What a row saves, by which candidates are put in order; a way through Python must be
        clearly faster than one without."""
        stages = candidate.mesh.stages
        crosses = stages is not None and bool(stages.in_python(candidate.mesh))
        return candidate.saving.mean_us - (CLEARLY * self.plain_us if crosses else 0.0)

    def _plain_candidate(self) -> Candidate:
        mesh = written_order(self.query, self.profile.names, self.profile.after)
        nothing = Saving(0.0, 0.0, self.needed_us)
        return Candidate(PLAIN, self.plain_us, self.plain_us, nothing, mesh)

    def _candidate(self, name: str, routes: StagedRoutes) -> Candidate:
        profile, costs = self.profile, self.costs
        row_us = routes.row_us(profile, costs)
        saving = self._saving(self.plain_row_us, row_us, costs, routes)
        if costs.catalyst_doubt > 1:
            faster = costs.if_catalyst_is_faster()
            plain = plain_us(profile, faster)
            doubted = self._saving(plain, routes.row_us(profile, faster), faster, routes)
            saving = saving.or_less(doubted)
        return Candidate(
            name=name,
            expected_us=float(row_us.mean()),
            single_us=float(routes.single_us(profile, costs).mean()),
            saving=saving,
            mesh=routes.mesh(self.query, profile, costs),
        )

    def _saving(self, plain: Floats, row_us: Floats, costs: Costs, routes: StagedRoutes) -> Saving:
        worst_us = routes.dearest_us(costs) - plain_cheapest_us(costs)
        new_workers = bool(routes.in_python) and not costs.python_only
        return saving_of(plain, row_us, worst_us, self.job, new_workers)

    def _decision(
        self,
        chosen: Candidate,
        candidates: Mapping[str, Candidate],
        ruled_out: Mapping[str, str],
        in_doubt: bool,
        why: str,
    ) -> Decision:
        return Decision(
            chosen=chosen.name,
            mesh=chosen.mesh,
            stages=chosen.mesh.stages,
            candidates=candidates,
            ruled_out=ruled_out,
            plain_us=self.plain_us,
            single_us=min(each.single_us for each in candidates.values()),
            expected_us=chosen.expected_us,
            bound_us=self.bound_us,
            in_doubt=in_doubt,
            why=why,
        )

    def _worth_it(self, best: Candidate) -> str:
        saving = best.saving
        text = (
            f"{best.name} is expected to take {best.expected_us:.3g} µs a row where plain Spark "
            f"takes {self.plain_us:.3g}: it saves {self._share(saving.mean_us)}, "
            f"{self._share(saving.least_us)} at the least"
        )
        if self.job.rows is None:
            return text
        saved_s = self.job.seconds(saving.mean_us)
        return f"{text}; about {saved_s:.2g} s of this job, learning took {self.job.learned_s:.2g}"

    def _not_worth_it(self, best: Candidate) -> str:
        if best.name == PLAIN or best.saving.mean_us <= 0:
            return "nothing is expected to be faster than plain Spark: it runs as written"
        saving = best.saving
        return (
            f"{best.name} would save {self._share(saving.mean_us)} of plain Spark's "
            f"{self.plain_us:.3g} µs a row, but only {self._share(max(saving.least_us, 0.0))} for "
            f"sure, and less than {MARGIN:.0%} is not worth it: it runs as written"
        )

    def _share(self, us: float) -> str:
        return f"{us / (self.plain_us + self.job.other_us):.1%}"
