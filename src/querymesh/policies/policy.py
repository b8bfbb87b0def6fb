"""What a policy is, and what it is given to start a run with. Nothing here knows Spark.

::

    Policy ── check(query, engine) ──> or it says why not
       │
       └── begin(job) ──> Beginning: the meshes to start with, and how fast streams come
                              │
                              └── follow(run) ──> Following: where tasks find their routers;
                                                  what learns while it runs is put into the run
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from querymesh.classify.classifier import ClassifierKind
from querymesh.errors import MeshFileError, QueryMeshError, UnsupportedError
from querymesh.mesh.fit import check_fits
from querymesh.mesh.mesh import Mesh, written_mesh
from querymesh.query.bind.share import SharedQuery
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery
from querymesh.query.shared_join import SharedJoin
from querymesh.runtime.channel import Channel, channel_folder
from querymesh.runtime.run import Run
from querymesh.runtime.task.router_source import RouterSource
from querymesh.runtime.view import View

if TYPE_CHECKING:
    from querymesh.fabric.profile.join_profile import SampledJoin
    from querymesh.optimize.train.training import Training
    from querymesh.runtime.loops.plan_loop import SourceWatch
    from querymesh.runtime.task.planner_sample import PlannerSample
    from querymesh.runtime.telling import TellingColumns

log = logging.getLogger("querymesh")


class Trainer(Protocol):
    """Learns meshes before a run; the platform knows how to take a sample."""

    def train(
        self, training: Training, *, one_route: bool
    ) -> tuple[Mapping[str, Mesh], dict[str, float]]:
        """A mesh for each source, learned from a sample, and the rows of each in it; with
        `one_route`, the best single order of each."""


class Streams(Protocol):
    """What a planner may ask of the streams of a join before it runs; the platform answers."""

    def sampled_join(self, training: Training) -> SampledJoin:
        """A stretch of time of all streams of a join, stored."""

    def stream_sizes(self) -> dict[str, int]:
        """How many rows each stream of a batch job has."""

    def watch_sources(self) -> SourceWatch | None:
        """What tells how many rows wait at the sources of a running stream."""


@dataclass(frozen=True)
class Job:
    """A query on its data, about to run. `views` are by the alias of their source.

    `streams` are those of a join. `given` are the meshes that `run` was given, empty for a bare
    query; `sampled` is whether it was given a sample. `tasks` are how many run at once;
    `one_machine` is whether driver and tasks share a file system anyway.
    """

    name: str
    views: Mapping[str, BoundQuery]
    join: JoinQuery | None
    streaming: bool
    trainer: Trainer
    streams: Streams | None = None
    given: Mapping[str, Mesh] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    sampled: bool = False
    checkpoint: str | None = None
    one_machine: bool = True
    tasks: int = 1
    on_error: str = "raise"

    def written(self, why: str | None = None) -> dict[str, Mesh]:
        """The order as written for every source."""
        return {alias: written_mesh(view, why) for alias, view in self.views.items()}

    def channel_folder(self, alias: str, label: str, given: Mesh | None = None) -> str:
        """Where what is learned of a source is kept; `label` names the policy."""
        label = label if self.join is None else f"{label} {alias}"
        return channel_folder(self.views[alias], label, given, self.checkpoint, self.one_machine)


@dataclass(frozen=True)
class Following:
    """How the tasks of a run are routed.

    `whole_rows` is whether rows must travel with all their columns, since what is yet to be learned
    may ask about any; `telling` are such columns that may come and go. `planner_sample` is what
    tasks tell a planner beside their counts.
    """

    sources: Mapping[str, RouterSource]
    whole_rows: bool = False
    telling: TellingColumns | None = None
    planner_sample: PlannerSample | None = None


class Beginning(Protocol):
    """A run about to start: the meshes, and how many tuples of each stream come for one another."""

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        """The mesh of each source, by its alias."""

    @property
    def rates(self) -> Mapping[str, float]:
        """By stream of a join; empty where nothing is known."""

    def follow(self, run: Run) -> Following:
        """Put what learns, plans or hands on into the run, and say where tasks find routers."""


@dataclass(frozen=True)
class CommandLine:
    """What was said on the command line to whichever policy is chosen.

    `own` are the options that belong to some policies alone, by name and as text: those that were
    given. A policy names its own in `own_options`.
    """

    training: Training
    adapt: bool = True
    own: Mapping[str, str] = field(default_factory=dict)


class Policy(ABC):
    """Decides which operators a tuple meets in which order. Options are checked when it is made."""

    name: ClassVar[str]
    shares_a_pass: ClassVar[bool] = False
    """Whether several queries can share one pass under it."""

    can_be_written: ClassVar[bool] = False
    """Whether its routes can be written into Spark's plan beforehand."""

    has_plans: ClassVar[bool] = False
    """Whether it plans as it runs, so that there is a page of its plans."""

    own_options: ClassVar[tuple[str, ...]] = ()
    """The options of the command line that are its own, such as "goal" for --goal."""

    @classmethod
    def from_command_line(cls, said: CommandLine) -> Self:
        """The policy with what was said on the command line; with its defaults unless it looks."""
        return cls()

    def check(self, query: BoundQuery | JoinQuery, engine: str) -> None:
        """Refuse what it cannot run, naming what can."""
        if isinstance(query, SharedQuery | SharedJoin) and not self.shares_a_pass:
            raise UnsupportedError(
                f"policy {self.name!r} is for one query, not for several that share one pass: run "
                "each by itself, or use policy='mesh'"
            )
        if isinstance(query, JoinQuery) and engine == "native":
            raise UnsupportedError(
                "a join of windowed streams runs on states of its own: use engine='auto'; or "
                "policy='rate', which can run it as a tree of Spark's own joins"
            )

    @property
    def must_adapt(self) -> bool:
        """Whether it was told to change routes while a stream runs, which a fixed plan cannot."""
        return False

    @abstractmethod
    def begin(self, job: Job) -> Beginning:
        """Decide what a run starts with."""


def open_channel(
    job: Job, view: View, label: str, *, must: bool, learners: Sequence[ClassifierKind] = ()
) -> Channel | None:
    """The channel of a view's meshes, with what an earlier run learned taken up into the view.

    A mesh that cannot be read is told and set aside, and the newest that can takes its place. Where
    there is no folder for a channel that is a problem only if one `must` be.
    """
    try:
        folder = job.channel_folder(view.alias, label, job.given.get(view.alias))
        channel = Channel(folder, learners)
        version = channel.open()
        while version and not _take_up(channel, version, view):
            version = channel.open()  # without any mesh, rows are profiled again
    except (QueryMeshError, OSError) as problem:
        if must and isinstance(problem, OSError):
            raise UnsupportedError(
                f"meshes cannot be kept under the checkpoint {job.checkpoint} ({problem}): give a "
                "folder that driver and executors can write to"
            ) from problem
        if must:
            raise
        log.warning("the stream keeps its mesh and does not adapt: %s", problem)
        return None
    return channel


def _take_up(channel: Channel, version: int, view: View) -> bool:
    """Whether a published mesh can be read and the view goes on with it; else it is set aside."""
    try:
        learned = check_fits(channel.read(version, view.bound.query), view.bound)
    except MeshFileError as problem:
        view.tell(f"what an earlier run learned is set aside: {problem}")
        channel.set_aside(version)
        return False
    view.versions.append((version, learned))
    return True
