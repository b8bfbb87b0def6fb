"""What a running stream needs to learn and adapt, whatever it runs."""

from __future__ import annotations

from querymesh.fabric.profile.calibrate_join import overheads_for
from querymesh.fabric.profile.profiler import declared_cost
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.train.training import Training
from querymesh.query.model import BoundQuery
from querymesh.runtime.channel import Channel
from querymesh.runtime.loops.learner import Setting
from querymesh.runtime.run import LiveRun

LEAST_PROFILED = 100
"""A task that profiles fewer rows than this measures its calls rather than its operators."""


def rows_to_learn_from(training: Training, tasks: int) -> int:
    """How many rows each of so many tasks profiles as long as nothing is known."""
    return min(training.sample_rows, max(training.sample_rows // (2 * tasks), LEAST_PROFILED))


def setting_for(
    bound: BoundQuery,
    channel: Channel,
    live: LiveRun,
    training: Training,
    adaptation: Adaptation | None,
) -> Setting:
    """What the learner of a running stream works with."""
    measured = [declared_cost(operator, bound) is None for operator in bound.operators]
    overheads = overheads_for(bound, training.window)
    return Setting(channel, overheads, training, live.policy, measured, adaptation, live.installed)
