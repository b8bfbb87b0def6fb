"""What policies `mesh` and `single` share: trained beforehand, or learned while a stream runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from querymesh.classify.classifier import ClassifierKind
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.stages import python_part
from querymesh.policies.policy import Following, Job, open_channel
from querymesh.runtime.channel import Channel
from querymesh.runtime.run import Run
from querymesh.runtime.task.mesh_source import MeshSource

if TYPE_CHECKING:
    from querymesh.optimize.train.training import Training
    from querymesh.policies.mesh import Trained


def mesh_sources(
    job: Job, run: Run, channels: Mapping[str, Channel], training: Training
) -> dict[str, MeshSource]:
    """Where tasks find the mesh of each source: the newest in its channel, or the first."""
    sources = {}
    for alias, view in run.views.items():
        _, started = view.versions[0]
        rows = 0
        if alias in channels and not started.is_learned:
            from querymesh.runtime.loops.learner import rows_to_learn_from

            rows = rows_to_learn_from(training, run.cube.shards if run.cube else job.tasks)
        name = f"{job.name}/{alias}"
        sources[alias] = MeshSource(
            name, python_part(started), channels.get(alias), rows, training.seed
        )
    return sources


def mesh_channels(
    job: Job,
    run: Run,
    label: str,
    *,
    adapts: bool,
    must: bool,
    learners: Sequence[ClassifierKind] = (),
) -> dict[str, Channel]:
    """An open channel for each source of a stream whose mesh is learned or changes."""
    channels = {}
    for alias, view in run.views.items() if job.streaming else ():
        learns = not view.mesh.is_learned
        if len(view.bound.operators) < 2 or not (learns or adapts):
            continue
        must_be = must or learns or job.join is not None
        channel = open_channel(job, view, label, must=must_be, learners=learners)
        if channel is not None:
            channels[alias] = channel
    return channels


@dataclass(frozen=True)
class LearnedMeshes:
    """The beginning of a run on meshes."""

    job: Job
    policy: Trained
    meshes: Mapping[str, Mesh]
    rates: Mapping[str, float]

    def follow(self, run: Run) -> Following:
        """Let a stream's meshes be learned and adapt; those of a batch stay as they are."""
        if not self.job.streaming:
            return Following(mesh_sources(self.job, run, {}, self.policy.training))
        policy, adapts = self.policy, self.policy.adaptation is not None
        channels = mesh_channels(
            self.job,
            run,
            policy.name,
            adapts=adapts,
            must=policy.must_adapt,
            learners=policy.training.learners,
        )
        sources = mesh_sources(self.job, run, channels, policy.training)
        telling = None
        for alias, channel in channels.items():
            view = run.views[alias]
            if adapts or not view.mesh.is_learned:
                from querymesh.runtime.loops.learner import Learner, settings_for

                settings = settings_for(
                    view, channel, policy.training, policy.adaptation, one_route=policy.one_route
                )
                learner = Learner(view, settings)
                run.loops.append(learner)
                if self.job.join is None and not policy.one_route:
                    telling = learner.telling
        any_column = bool(channels) and self.job.join is not None and not policy.one_route
        return Following(sources, any_column, telling)
