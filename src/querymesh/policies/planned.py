"""What policies `rate` and `chart` share: a planner chooses the orders of a windowed join.

Of a batch it chooses once, by a sample; of a stream it goes on after every micro-batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from querymesh.errors import OptionError, QueryError, UnsupportedError
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.planning.orders import planned_mesh
from querymesh.optimize.planning.own_order import OwnOrder
from querymesh.optimize.planning.planner import Planner
from querymesh.optimize.train.training import Training
from querymesh.options import check_number
from querymesh.policies.learned_meshes import mesh_channels, mesh_sources
from querymesh.policies.policy import CommandLine, Following, Job, Policy
from querymesh.policies.sampled_round import sampled_round
from querymesh.query.bind.share import SharedQuery
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery
from querymesh.runtime.loops.plan_loop import PlanLoop, PlanSettings
from querymesh.runtime.loops.rounds import Rounds
from querymesh.runtime.run import Run
from querymesh.runtime.task.planner_sample import PlannerSample

SAMPLE_ROWS = Training().sample_rows
BUDGET = Adaptation().budget


@dataclass(frozen=True, kw_only=True)
class Planned(Policy):
    """A policy that plans joins of windowed streams, from one micro-batch to the next.

    Options of all of them:

    - `sample_rows`: how many tuples of each stream are profiled before the first plan; 2,000
    - `budget`: the share of the time that profiling may take afterwards, 0.01; with 0 the first
      plan stays
    - `seed`: of everything that is drawn by chance; 0
    """

    has_plans: ClassVar[bool] = True

    sample_rows: int = SAMPLE_ROWS
    budget: float = BUDGET
    seed: int = 0

    def __post_init__(self) -> None:
        Training(sample_rows=self.sample_rows, seed=self.seed)  # which checks the two
        check_number("budget", self.budget)
        if not 0 <= self.budget <= 1:
            raise OptionError(
                f"budget is a share of the time, from 0 to 1, not {self.budget}: 0 plans once"
            )

    @classmethod
    def from_command_line(cls, said: CommandLine) -> Self:
        """Planned once if it is not to adapt."""
        training = said.training
        return cls(
            sample_rows=training.sample_rows,
            budget=BUDGET if said.adapt else 0.0,
            seed=training.seed,
            **cls.read_own(said.own),
        )

    @classmethod
    def read_own(cls, own: Mapping[str, str]) -> dict[str, Any]:
        """The options of this policy alone, from their text on the command line."""
        return {}

    @property
    def training(self) -> Training:
        """How many rows of a sample are profiled, and the seed."""
        return Training(sample_rows=self.sample_rows, seed=self.seed)

    def check(self, query: BoundQuery | JoinQuery, engine: str) -> None:
        """Only joins of windowed streams have orders that plan round by round."""
        super().check(query, engine)
        if not isinstance(query, JoinQuery) and not isinstance(query, SharedQuery):
            raise UnsupportedError(
                f"policy {self.name!r} plans joins of windowed streams, and this query joins none: "
                "of filters and look-ups, the order with the least work gives the most results in "
                "any time and keeps nothing, and that is policy='single'"
            )

    @abstractmethod
    def planner(self, join: JoinQuery, *, at_once: bool, sizes: dict[str, int] | None) -> Planner:
        """A new planner. `at_once`: it has one round, a sample, to plan by; `sizes` are the rows of
        streams that end."""

    def begin(self, job: Job) -> PlannedBeginning:
        """A batch, or a stream with a sample, is planned at once; else the order is as written."""
        assert job.join is not None
        assert job.streams is not None
        at_once = job.sampled or not job.streaming
        sizes = None if job.streaming else job.streams.stream_sizes()
        planner = self.planner(job.join, at_once=at_once, sizes=sizes)
        own = OwnOrder(job.join)
        meshes, rates = job.written(), dict[str, float]()
        if at_once:
            shown = sampled_round(job.streams.sampled_join(self.training), self.training)
            own.observe(shown)
            decision = planner.observe(shown)
            if problem := getattr(planner, "problem", None):
                raise QueryError(problem)
            if decision is not None:
                rows = max(1, sum(met.asked for met in shown.met.values()))
                for alias, order in decision.orders.items():
                    conditions = own.orders.get(alias, ())
                    view = job.views[alias]
                    meshes[alias] = planned_mesh(view, order, decision.reason, rows, conditions)
            rates = {alias: float(rows) for alias, rows in shown.arrived.items()}
        return PlannedBeginning(self, job, planner, own, meshes, rates)


@dataclass(frozen=True)
class PlannedBeginning:
    """The beginning of a run whose orders a planner chooses."""

    policy: Planned
    job: Job
    planner: Planner
    own: OwnOrder
    meshes: Mapping[str, Mesh]
    rates: Mapping[str, float]

    def follow(self, run: Run) -> Following:
        """Tell the planner what batches show, and the tasks what it says."""
        assert self.job.join is not None
        assert self.job.streams is not None
        assert run.cube is not None
        name, adapts = self.policy.name, self.policy.budget > 0
        channels = mesh_channels(self.job, run, name, adapts=adapts, must=True)
        plan_loop = PlanLoop(
            self.job.join,
            self.planner,
            Rounds(self.job.join, run.cube),
            run.views,
            channels,
            PlanSettings(self.policy.sample_rows, self.policy.budget),
            self.own,
            self.job.streams.watch_sources() if self.job.streaming else None,
        )
        run.loops.append(plan_loop)
        sources = mesh_sources(self.job, run, channels, self.policy.training)
        sample = PlannerSample(self.planner.wants_keys)
        return Following(sources, planner_sample=sample)
