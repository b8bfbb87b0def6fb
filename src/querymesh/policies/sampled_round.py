"""A sample of a join's streams as the one round that a planner sees before a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.view import own_conditions
from querymesh.fabric.join.window_fill import rows_in_window
from querymesh.fabric.profile.join_profile import SampledJoin
from querymesh.optimize.planning.planner import ConditionStats, PairStats, Round
from querymesh.optimize.train.training import Training
from querymesh.query.join import JoinQuery
from querymesh.query.model import Probe
from querymesh.runtime.loops.rounds import met_pair, profiled, tried
from querymesh.stats.profile import Profile


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
