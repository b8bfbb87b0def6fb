"""A join whose orders a planner chooses: of a batch from a sample, of a stream while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import DataFrame

from querymesh.errors import QueryError
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.join_fabric import static_stems
from querymesh.fabric.join.view import own_conditions
from querymesh.fabric.join.window_fill import rows_in_window
from querymesh.fabric.profile.join_profile import SampledJoin, written_mesh
from querymesh.mesh.hypercube import Hypercube
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.optimize.planning.orders import planned_mesh
from querymesh.optimize.planning.own_order import OwnOrder
from querymesh.optimize.planning.planner import ConditionStats, PairStats, Planner, Round
from querymesh.optimize.planning.planners import Aim, planner_for
from querymesh.optimize.rate.rate_planner import RatePlanner
from querymesh.optimize.train.training import Training
from querymesh.query.join import JoinQuery
from querymesh.query.model import Probe
from querymesh.runtime.channel import Channel
from querymesh.runtime.loops.plan_loop import PlanLoop, PlanSettings
from querymesh.runtime.loops.rounds import Rounds, met_pair, profiled, tried
from querymesh.runtime.run import LiveRun
from querymesh.runtime.task.planner_sample import PlannerSample
from querymesh.spark.inputs import Data
from querymesh.spark.joins.join_sample import STRETCH, stretch_of_time
from querymesh.spark.joins.join_train import static_inputs, timed_batch
from querymesh.spark.joins.source_waiting import watch_sources
from querymesh.stats.profile import Profile

if TYPE_CHECKING:
    from querymesh.spark.joins.join_run import JoinSettings


@dataclass(frozen=True)
class PlannedJoin:
    """A planner, and the meshes of the orders to start with."""

    join: JoinQuery
    planner: Planner
    mesh: JoinMesh
    settings: PlanSettings
    telling: PlannerSample
    own: OwnOrder
    streams: Mapping[str, DataFrame] = field(default_factory=dict)

    def follow(
        self, views: Mapping[str, LiveRun], channels: Mapping[str, Channel], cube: Hypercube
    ) -> PlanLoop:
        """The loop of the running stream."""
        rounds = Rounds(self.join, cube)
        sources = watch_sources(self.streams)
        return PlanLoop(
            self.join, self.planner, rounds, views, channels, self.settings, self.own, sources
        )


def planned_join(join: JoinQuery, data: Mapping[str, Data], how: JoinSettings) -> PlannedJoin:
    """The planner of the policy; a batch, or a stream with a sample, is planned at once."""
    frames = [data[alias] for alias in join.aliases]
    streaming = any(isinstance(each, DataFrame) and each.isStreaming for each in frames)
    aim = how.aim or Aim()
    if not streaming:
        aim = replace(aim, sizes=sizes_of(join, data))
    if (how.sample is not None or not streaming) and aim.charting is not None:
        # A sample is one round, and all there is to be observed before the run.
        aim = replace(aim, charting=replace(aim.charting, settle=1))
    planner = planner_for(how.policy, join, aim)
    meshes = {alias: written_mesh(view) for alias, view in join.views.items()}
    own = OwnOrder(join)
    rates: dict[str, float] = {}
    if how.sample is not None or not streaming:
        sampled = {**data, **(how.sample or {})}
        shown = sampled_round(sampled_join(join, sampled, how), how.training)
        own.observe(shown)
        decision = planner.observe(shown)
        if isinstance(planner, RatePlanner) and planner.problem:
            raise QueryError(planner.problem)
        if decision is not None:
            rows = max(1, sum(met.asked for met in shown.met.values()))
            meshes |= {
                alias: planned_mesh(
                    join.views[alias], order, decision.reason, rows, own.orders.get(alias, ())
                )
                for alias, order in decision.orders.items()
            }
        rates = {alias: float(rows) for alias, rows in shown.arrived.items()}
    budget = how.adaptation.budget if how.adaptation is not None else 0.0
    return PlannedJoin(
        join,
        planner,
        JoinMesh(join.query, meshes, rates),
        PlanSettings(how.training.sample_rows, budget),
        PlannerSample(planner.wants_keys),
        own,
        {a: data[a] for a in join.aliases} if streaming else {},
    )


def sizes_of(join: JoinQuery, data: Mapping[str, Data]) -> dict[str, int]:
    """How many rows each stream of a batch has."""
    return {
        alias: given.count() if isinstance(given, DataFrame) else given.num_rows
        for alias, given in ((alias, data[alias]) for alias in join.aliases)
    }


def sampled_join(join: JoinQuery, data: Mapping[str, Data], how: JoinSettings) -> SampledJoin:
    """A stretch of all streams, stored."""
    sample = stretch_of_time(join, data, STRETCH * how.training.sample_rows)
    statics = static_stems(join, static_inputs(join, data), how.on_error)
    timed = {alias: timed_batch(join, alias, table) for alias, table in sample.items()}
    return SampledJoin(join, timed, statics, how.on_error)


def sampled_round(sampled: SampledJoin, training: Training) -> Round:
    """A sample as the one round that a planner sees before a run."""
    join = sampled.join
    profiles = {
        alias: sampled.profile(alias, training.sample_rows, training.seed) for alias in join.aliases
    }
    passing = {alias: _passing(join, alias, profile) for alias, profile in profiles.items()}
    arrived = {alias: len(sampled.arrivals[alias]) for alias in join.aliases}
    keys = {
        (alias, each.number): np.concatenate([p.keys[at] for p in stem.partitions])
        for alias, stem in sampled.fabric.streams.items()
        for at, each in enumerate(join.keys_of(alias))
        if stem.partitions
    }
    return Round(
        number=0,
        seconds=_seconds(join, sampled.arrivals),
        busy_seconds=0.0,
        arrived=arrived,
        passed={alias: round(arrived[alias] * share) for alias, (share, _) in passing.items()},
        own_seconds={alias: arrived[alias] * cost_s for alias, (_, cost_s) in passing.items()},
        met=_met(join, sampled, profiles),
        stored={alias: stem.rows for alias, stem in sampled.fabric.streams.items()},
        keys=keys,
        conditions={
            (alias, index): ConditionStats(
                *tried(index, profile), float(profile.cost_us[index - 1]) / 1e6
            )
            for alias, profile in profiles.items()
            for index in own_conditions(join.views[alias])
            if tried(index, profile)[0]
        },
    )


def _seconds(join: JoinQuery, arrivals: Mapping[str, Arrivals]) -> float:
    """How long the sample lasts; of streams without time a second, so that rates are its rows."""
    some = [each.times for each in arrivals.values() if len(each)]
    if not some or not join.times:
        return 1.0
    return max(1, max(int(t.max()) for t in some) - min(int(t.min()) for t in some)) / 1e6


def _passing(join: JoinQuery, alias: str, profile: Profile) -> tuple[float, float]:
    """The share of tuples that a stream's own conditions let through, and the seconds they take."""
    own = [k - 1 for k in sorted(own_conditions(join.views[alias]))]
    if not own or not profile.rows:
        return 1.0, 0.0
    reached = np.cumprod(np.hstack([np.ones((profile.rows, 1)), profile.outcomes[:, own]]), axis=1)
    cost_us = float(reached[:, :-1].mean(axis=0) @ profile.cost_us[own])
    return float(reached[:, -1].mean()), cost_us / 1e6


def _met(
    join: JoinQuery, sampled: SampledJoin, profiles: Mapping[str, Profile]
) -> dict[tuple[str, str], PairStats]:
    found: dict[tuple[str, str], PairStats] = {}
    for alias, view in join.views.items():
        profile = profiles[alias]
        for operator in view.operators:
            if not isinstance(operator, Probe) or not profile.rows:
                continue
            pair = met_pair(join, alias, operator)
            if pair is None:
                continue
            asked, matches = profiled(view, operator, profile)
            stem = sampled.fabric.stems[operator.relation]
            held = rows_in_window(join, operator.relation, stem, sampled.profiled[alias])
            cost_s = float(profile.cost_us[operator.index - 1]) / 1e6
            if asked > 0:
                found[pair] = PairStats(round(asked), round(matches), held, asked * cost_s)
    return found
