"""Policy `mesh`: a route for each kind of tuple, learned from a sample (QM)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from querymesh.errors import OptionError, UnsupportedError
from querymesh.mesh.fit import as_single
from querymesh.mesh.mesh import Mesh as MeshData
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.train.training import Training
from querymesh.options import check_integer, check_kind
from querymesh.policies.learned_meshes import LearnedMeshes
from querymesh.policies.policy import CommandLine, Job, Policy
from querymesh.query.bind.share import SharedQuery
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery

log = logging.getLogger("querymesh")


@dataclass(frozen=True, kw_only=True)
class Trained(Policy):
    """A policy whose meshes are trained on a sample, or learned from a stream's first batches.

    Options:

    - `sample_rows`: how many rows are profiled; 2,000 unless told. Who tells it, or an `accuracy`,
      insists on learning; else a filter learns only where that can pay for itself
    - `accuracy`: a share such as 0.95: the sample is doubled until it foretells other rows so well
      (QM § 4.2); not asked for unless told
    - `tolerance`: a share such as 0.05: orders that cost at most so much more than the best are
      left to a lottery while the query runs (QM § 5.4); none are unless told
    - `seed`: of everything that is drawn by chance; 0 unless told
    - `adapt`: whether a stream goes on learning as its data changes (QM § 5.3); an `Adaptation`
      says how eagerly, and then it must
    - `training`: every choice of QM § 4 at once; the options above go before it
    """

    shares_a_pass: ClassVar[bool] = True
    can_be_written: ClassVar[bool] = True
    one_route: ClassVar[bool] = False
    """Whether all tuples take one route."""

    sample_rows: int | None = None
    accuracy: float | None = None
    tolerance: float | None = None
    seed: int | None = None
    adapt: bool | Adaptation = True
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        check_kind("training", self.training, Training, "querymesh.policies")
        if not isinstance(self.adapt, bool | Adaptation):
            raise OptionError(
                "adapt is True, False or a querymesh.policies.Adaptation, not "
                f"{type(self.adapt).__name__}"
            )
        names = ("sample_rows", "accuracy", "tolerance", "seed")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.sample_rows is not None:
            check_integer("sample_rows", self.sample_rows, least=1)
            most = max(self.sample_rows, self.training.most_sample_rows)
            given["most_sample_rows"] = most
        if self.sample_rows is not None or self.accuracy is not None:
            given["insist"] = True
        object.__setattr__(self, "training", replace(self.training, **given))
        if self.training.learner is not None:
            # Catalyst asks tests alone: this policy's meshes cannot be part of Spark's plan.
            object.__setattr__(self, "can_be_written", False)

    @classmethod
    def paper(
        cls,
        table: str = "table-1",
        *,
        sample_rows: int | None = None,
        accuracy: float | None = None,
        tolerance: float | None = None,
        seed: int | None = None,
        adapt: bool | Adaptation = True,
    ) -> Self:
        """With the defaults of the paper's experiments, QM's "table-1" or "table-3"."""
        return cls(
            training=Training.preset(table),
            sample_rows=sample_rows,
            accuracy=accuracy,
            tolerance=tolerance,
            seed=seed,
            adapt=adapt,
        )

    @classmethod
    def from_command_line(cls, said: CommandLine) -> Self:
        """With the training that was asked for, and adapting or not."""
        return cls(training=said.training, adapt=said.adapt)

    @property
    def adaptation(self) -> Adaptation | None:
        """How a stream adapts; None if it keeps the mesh it learned first."""
        if isinstance(self.adapt, Adaptation):
            return self.adapt
        return Adaptation() if self.adapt else None

    @property
    def must_adapt(self) -> bool:
        """An `Adaptation` asks for it in so many words."""
        return isinstance(self.adapt, Adaptation)

    def check(self, query: BoundQuery | JoinQuery, engine: str) -> None:
        """Refuse options that do not go with the query, whether or not there will be training."""
        super().check(query, engine)
        if engine == "native" and self.training.learner is not None:
            raise UnsupportedError(
                f"classifier {self.training.learner.kind} is asked in Python, and engine 'native' "
                "runs none: use engine='fabric' or 'auto', or classifier='tree'"
            )
        if isinstance(query, SharedQuery):
            self.training.check_shared()

    def begin(self, job: Job) -> LearnedMeshes:
        """A mesh that was given runs as it is. A batch, or a sample, is trained on; a stream starts
        with the order as written."""
        if self.must_adapt and not job.streaming:
            log.warning("adapt= is for streams: a batch keeps the mesh its sample gave it")
        meshes, rates = self._meshes(job)
        return LearnedMeshes(job, self, meshes, rates)

    def _meshes(self, job: Job) -> tuple[Mapping[str, MeshData], Mapping[str, float]]:
        if job.given:
            given = job.given.items()
            return {a: as_single(m) if self.one_route else m for a, m in given}, job.rates
        if job.streaming and not job.sampled:
            return job.written(), {}
        return job.trainer.train(self.training, one_route=self.one_route)


@dataclass(frozen=True, kw_only=True)
class Mesh(Trained):
    """A route for each kind of tuple (QM): the default.

    Options, as `Trained` explains them: `sample_rows`, `accuracy`, `tolerance`, `seed`, `adapt` and
    `training`. `Mesh.paper("table-1")` and `Mesh.paper("table-3")` are the paper's.
    """

    name: ClassVar[str] = "mesh"
