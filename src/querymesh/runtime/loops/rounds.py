"""From what the tasks of a micro-batch report to the `Round` that a planner is told.

A tuple may be in several shards, so counts of tasks are counts of copies. With p shards, and s
having copies(s) of each tuple, a pair of tuples of s and r meets in as many shards as neither of
them is placed by::

    asked by tuples   asked by copies / copies(s)
    found by tuples   found by copies · (shares that place s or r) / p
    stored in all     mean of a shard · p / copies(r)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from querymesh.fabric.core.metrics import Metrics, Visits
from querymesh.fabric.join.view import own_conditions
from querymesh.mesh.hypercube import Hypercube
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.planning.planner import ConditionStats, PairStats, Round
from querymesh.query.bind.static_joins import relations_of
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery, Filter, Meeting, Probe
from querymesh.runtime.task_report import TaskReport
from querymesh.stats.profile import Profile

Versions = Mapping[str, Mapping[int, Mesh]]
"""By stream, its meshes so far."""


@dataclass
class ProbeCounts:
    """Copies of tuples that probed a relation by their links to the source alone."""

    asked: float = 0.0
    found: float = 0.0

    def add(self, asked: float, found: float) -> None:
        """Add copies that probed, and what they found."""
        self.asked += asked
        self.found += found


@dataclass
class Rounds:
    """Makes rounds of batches, one after the other."""

    join: JoinQuery
    cube: Hypercube
    newest_us: dict[str, int] = field(default_factory=dict)

    def of(
        self,
        number: int,
        reports: Collection[TaskReport],
        versions: Versions,
        passed_s: float,
    ) -> Round:
        """A batch as a round; `passed_s` is the clock's, for streams that have no time."""
        arrived = {
            alias: sum(r.arrived[alias] - r.late[alias] - r.untimed[alias] for r in reports)
            for alias in self.join.aliases
        }
        metrics = {alias: _together(alias, reports) for alias in self.join.aliases}
        own = {alias: own_conditions(view) for alias, view in self.join.views.items()}
        stored = dict.fromkeys(self.join.aliases, 0)
        for report in reports:
            for (shard, alias), state in report.states.items():
                stored[alias] += state.rows if self.cube.is_home(alias, shard) else 0
        keys: dict[tuple[str, int], list[np.ndarray]] = {}
        for report in reports:
            for key, codes in report.key_codes.items():
                if self.cube.is_home(key[0], report.shard):
                    keys.setdefault(key, []).append(codes)
        return Round(
            number=number,
            seconds=self._seconds(reports, passed_s),
            busy_seconds=sum(each.total_seconds for each in metrics.values())
            + sum(report.state_seconds for report in reports),
            arrived=arrived,
            passed={a: _passed(arrived[a], metrics[a], own[a]) for a in self.join.aliases},
            own_seconds={
                alias: sum(v.seconds for k, v in figures.by_operator().items() if k in own[alias])
                for alias, figures in metrics.items()
            },
            met=self._met(reports, metrics, versions),
            stored=stored,
            results=sum(each.rows_out for each in metrics.values()),
            keys={key: np.concatenate(codes) for key, codes in keys.items()},
            storing_seconds=sum(report.state_seconds for report in reports),
            conditions=self._tried(reports, metrics, own),
        )

    def _tried(
        self,
        reports: Collection[TaskReport],
        metrics: Mapping[str, Metrics],
        own: Mapping[str, Collection[int]],
    ) -> dict[tuple[str, int], ConditionStats]:
        """What profiles show of the streams' own conditions. Some are not timed: then a condition
        costs what it took on its route."""
        found: dict[tuple[str, int], ConditionStats] = {}
        for alias, indices in own.items():
            profiles = [profile for report in reports for profile in report.views[alias].profiles]
            ran = metrics[alias].by_operator()
            for index in indices:
                asked, passed = np.sum([tried(index, p) for p in profiles] or [(0, 0)], axis=0)
                visits = ran.get(index, Visits())
                otherwise = visits.seconds / visits.evaluations if visits.evaluations else None
                cost_s = profiled_cost_s(index, profiles, otherwise)
                if asked and cost_s is not None:
                    found[alias, index] = ConditionStats(float(asked), float(passed), cost_s)
        return found

    def _seconds(self, reports: Iterable[TaskReport], passed_s: float) -> float:
        """How much later the newest tuples are than those before; of a first round, how long its
        tuples last."""
        firsts = [first for r in reports for first, _ in r.spans.values()]
        lasts = [last for r in reports for _, last in r.spans.values()]
        if not self.join.times:
            return passed_s
        if not lasts:
            return 0.0
        newest = max(lasts)
        before = max(self.newest_us.values(), default=min(firsts))
        for report in reports:
            for alias, (_, last) in report.spans.items():
                self.newest_us[alias] = max(last, self.newest_us.get(alias, last))
        return max(0, newest - before) / 1e6

    def _met(
        self,
        reports: Collection[TaskReport],
        metrics: Mapping[str, Metrics],
        versions: Versions,
    ) -> dict[tuple[str, str], PairStats]:
        found: dict[tuple[str, str], PairStats] = {}
        for alias, view in self.join.views.items():
            for operator in view.operators:
                if not isinstance(operator, Probe):
                    continue
                pair = met_pair(self.join, alias, operator)
                if pair is None:
                    continue
                asked = ProbeCounts()
                for report in reports:
                    for profile in report.views[alias].profiles:
                        asked.add(*profiled(view, operator, profile))
                if pair[0] == alias and not conditions_of(view, operator):
                    visits = _first_visits(metrics[alias], operator, view, versions[alias])
                    asked.add(visits.evaluations, visits.passed)
                if asked.asked <= 0:
                    continue
                held = [
                    r.window_fill[alias, pair[1]]
                    for r in reports
                    if (alias, pair[1]) in r.window_fill
                ]
                cost_s = _cost_s(operator, metrics[alias], reports, alias)
                found[pair] = self._of_tuples(pair, asked, float(np.mean(held or [0.0])), cost_s)
        return found

    def _of_tuples(
        self, pair: tuple[str, str], asked: ProbeCounts, held: float, cost_s: float
    ) -> PairStats:
        source, relation = pair
        shards = self.cube.shards
        placing = {*self.cube.owned(source), *self.cube.owned(relation)}
        meets = shards // prod(self.cube.shares[d] for d in placing)
        return PairStats(
            asked=max(1, round(asked.asked / self.cube.replication(source))),
            found=round(asked.found / meets),
            stored=held * shards / self.cube.replication(relation),
            seconds=asked.asked * cost_s,
        )


def met_pair(join: JoinQuery, alias: str, probe: Probe) -> tuple[str, str] | None:
    """Whose tuples are seen to meet whose by a probe of a view: the source's, or those of the
    static table it goes through. None if it goes through another stream, which has its own view."""
    (parent,) = probe.links - {alias} or {alias}
    statics = {relation.alias for relation in join.statics}
    return (parent, probe.relation) if parent == alias or parent in statics else None


def conditions_of(view: BoundQuery, probe: Probe) -> list[int]:
    """The conditions that read nothing but the source and what is probed: they link the two."""
    both = {view.source.alias, probe.relation}
    return [
        op.index
        for op in view.operators
        if isinstance(op, Filter) and probe.index in op.after and relations_of(op.expr) <= both
    ]


def profiled(view: BoundQuery, probe: Probe, profile: Profile) -> tuple[float, float]:
    """The profiled rows that reached a probe, and what they found there."""
    before = np.prod(profile.outcomes[:, [k - 1 for k in sorted(probe.after)]], axis=1)
    linked = [probe.index, *conditions_of(view, probe)]
    after = np.prod(profile.outcomes[:, [k - 1 for k in linked]], axis=1)
    return float(before.sum()), float((before * after).sum())


def tried(index: int, profile: Profile) -> tuple[float, float]:
    """The profiled rows that a condition was asked about, and those it let through."""
    before = np.prod(profile.outcomes[:, [k - 1 for k in sorted(profile.after[index - 1])]], axis=1)
    return float(before.sum()), float((before * profile.outcomes[:, index - 1]).sum())


def profiled_cost_s(
    index: int, profiles: Iterable[Profile], otherwise: float | None
) -> float | None:
    """The mean of what profiles timed an operator at, if any did."""
    costs_us = [float(profile.cost_us[index - 1]) for profile in profiles]
    known = [cost_us for cost_us in costs_us if not np.isnan(cost_us)]
    return float(np.mean(known)) / 1e6 if known else otherwise


def _together(alias: str, reports: Iterable[TaskReport]) -> Metrics:
    total = Metrics()
    for report in reports:
        total.add(report.views[alias].metrics)
    return total


def _passed(arrived: int, metrics: Metrics, own: Collection[int]) -> int:
    """The tuples that a stream's own conditions let through, by the share of copies that passed."""
    if not metrics.rows_in:
        return 0
    visits = metrics.by_operator()
    dropped = sum(visits[k].evaluations - visits[k].passed for k in own if k in visits)
    return round(arrived * (1 - dropped / metrics.rows_in))


def _first_visits(
    metrics: Metrics, probe: Probe, view: BoundQuery, versions: Mapping[int, Mesh]
) -> Visits:
    """What a probe did on routes on which it came before all others, and so by its source alone."""
    total = Visits()
    for (version, leaf, index), visits in metrics.visits.items():
        if index != probe.index or version not in versions:
            continue
        route = versions[version].leaf_routes[leaf]
        met = [k for k in route if isinstance(view.operators[k - 1], Probe | Meeting)]
        if met[0] == index:
            total.add(visits)
    return total


def _cost_s(probe: Probe, metrics: Metrics, reports: Iterable[TaskReport], alias: str) -> float:
    """Seconds that a probe takes for a row, as it runs; else as it was profiled."""
    visits = metrics.by_operator().get(probe.index)
    if visits is not None and visits.evaluations:
        return visits.seconds / visits.evaluations
    profiles = [profile for report in reports for profile in report.views[alias].profiles]
    return profiled_cost_s(probe.index, profiles, None) or 0.0
