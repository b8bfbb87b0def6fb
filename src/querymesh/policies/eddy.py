"""Policy `eddy`: each tuple's next operator is decided while it runs, by overall selectivities."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from querymesh.errors import QueryMeshError, UnsupportedError
from querymesh.fabric.join.view import own_conditions
from querymesh.fabric.routers.make_eddy import make_eddy
from querymesh.fabric.routers.routing import PAPER, Routing
from querymesh.mesh.mesh import Mesh
from querymesh.options import check_integer, check_kind
from querymesh.policies.policy import CommandLine, Following, Job, Policy
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery, Meeting
from querymesh.runtime.channel import Channel
from querymesh.runtime.loops.router_loop import RouterLoop
from querymesh.runtime.run import Run
from querymesh.runtime.task.eddy_source import EddySource

log = logging.getLogger("querymesh")


@dataclass(frozen=True, kw_only=True)
class Eddy(Policy):
    """Decides before every operator, by what operators drop for their cost; needs no training.

    Options:

    - `chunk`: tuples that are decided on the same estimates: fewer follow the data sooner and cost
      more; 4,000 unless told, 1 is tuple by tuple
    - `seed`: of everything that is drawn by chance; 0 unless told
    - `routing`: every choice of CBR § 4 at once; the options above go before it
    """

    name: ClassVar[str] = "eddy"
    reads_any_column: ClassVar[bool] = False

    chunk: int | None = None
    seed: int | None = None
    routing: Routing = field(default_factory=Routing)

    def __post_init__(self) -> None:
        check_kind("routing", self.routing, Routing, "querymesh.policies")
        chunk = self.routing.chunk if self.chunk is None else self.chunk
        seed = self.routing.seed if self.seed is None else self.seed
        check_integer("chunk", chunk, least=1)
        check_integer("seed", seed, least=0)
        object.__setattr__(self, "routing", replace(self.routing, chunk=chunk, seed=seed))

    @classmethod
    def paper(cls, *, chunk: int | None = None, seed: int | None = None) -> Self:
        """With the settings of the CBR paper (its Table 2, and § 4 where the table is silent)."""
        return cls(routing=PAPER, chunk=chunk, seed=seed)

    @classmethod
    def from_command_line(cls, said: CommandLine) -> Self:
        """With the seed that was given: nothing is trained."""
        return cls(seed=said.training.seed)

    def check(self, query: BoundQuery | JoinQuery, engine: str) -> None:
        """What is decided while tuples run cannot be written into a plan."""
        if engine == "native":
            raise UnsupportedError(
                f"policy {self.name!r} decides while tuples run, which a plan that is written "
                "beforehand cannot: use engine='fabric' or 'auto'"
            )
        super().check(query, engine)

    def begin(self, job: Job) -> EddyBeginning:
        """Nothing is trained: the order as written stands for a mesh, and says so."""
        if job.sampled:
            log.warning(
                "sample= is not looked at: policy %r learns from the tuples it routes", self.name
            )
        why = f"policy {self.name} decides while tuples run"
        return EddyBeginning(
            job, self.name, self.routing, job.written(why), job.rates, self.reads_any_column
        )


@dataclass(frozen=True)
class EddyBeginning:
    """The beginning of a run whose routers learn."""

    job: Job
    policy: str
    routing: Routing
    meshes: Mapping[str, Mesh]
    rates: Mapping[str, float]
    whole_rows: bool

    def follow(self, run: Run) -> Following:
        """What routers learn is kept and handed on, source by source."""
        sources = {}
        for alias, view in run.views.items():
            channel = self._channel(alias, view.bound) if self.job.streaming else None
            own = None if self.job.join is None else own_conditions(view.bound)
            name = f"{self.job.name}/{alias}"
            sources[alias] = EddySource(name, self.policy, view.bound, self.routing, own, channel)
            run.loops.append(self._loop(alias, sources[alias]))
        return Following(sources, self.whole_rows)

    def _loop(self, alias: str, source: EddySource) -> RouterLoop:
        bound = source.bound
        operators = {op.index: op.name for op in bound.operators if not isinstance(op, Meeting)}
        fresh = make_eddy(source.policy, bound, source.routing, source.own)
        loop = RouterLoop(alias, source.policy, operators, fresh, source.channel)
        loop.open()
        return loop

    def _channel(self, alias: str, bound: BoundQuery) -> Channel | None:
        """The channel of a stream's routers, open; None where each worker learns by itself."""
        if len(bound.operators) < 2:
            return None
        try:
            channel = Channel(self.job.channel_folder(alias, self.policy))
            channel.open()
        except (QueryMeshError, OSError) as problem:
            log.warning("each worker learns by itself, and a restart begins anew: %s", problem)
            return None
        return channel
