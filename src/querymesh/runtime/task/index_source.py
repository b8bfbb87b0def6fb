"""How a task's states are indexed: by what the driver chose, or in a batch job by itself.

A stream's tasks tell the driver what their states were asked, and take up the plans that it hands
out through the channel. A batch job is one task a shard, from beginning to end: it has a tuner of
its own. Either way rows are found, whatever plan each partition has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from querymesh.errors import QueryMeshError
from querymesh.fabric.join.indices import Indices, attributes_of
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.index.store.index_plan import HashPlan, IndexPlan, plan_from_json
from querymesh.index.store.request import Pattern
from querymesh.index.tune.indexing import Indexing
from querymesh.index.tune.tuner import Tuner
from querymesh.query.join import JoinQuery
from querymesh.runtime.channel import Channel
from querymesh.runtime.task_report import IndexUse, TaskReport


@dataclass(frozen=True)
class IndexSource:
    """How the states of a run are indexed; picklable."""

    kind: str = "hash"
    settings: Indexing = field(default_factory=Indexing)
    channel: Channel | None = None

    def tuner(self, join: JoinQuery) -> Tuner:
        """A tuner that knows nothing yet."""
        return Tuner(self.kind, attributes_of(join), self.settings)

    def begin(
        self, fabric: JoinFabric, shard: int, layouts: Mapping[str, Pattern], report: TaskReport
    ) -> Indices:
        """The indices of a task's states; `layouts` are the patterns that its routes ask for."""
        tuner = self.tuner(fabric.join)
        told = self._told(report)
        plans = {**tuner.plans, **told.for_shard(shard)}
        for alias, plan in plans.items():
            if plan == HashPlan():
                plans[alias] = HashPlan(None, layouts.get(alias, ()))
        return Indices(fabric, tuner, plans, dict(told.frequencies))

    def _told(self, report: TaskReport) -> IndexPlans:
        if self.channel is None:
            return IndexPlans()
        try:
            number = self.channel.state().index_number
            return IndexPlans.from_json(self.channel.indices(number)) if number else IndexPlans()
        except (OSError, QueryMeshError) as problem:
            report.problems.append(f"indices are chosen anew: {problem}")
            return IndexPlans()


@dataclass(frozen=True)
class IndexPlans:
    """The plans that the driver hands out: by stream, and by shard and stream where they differ."""

    common: Mapping[str, IndexPlan] = field(default_factory=dict)
    shards: Mapping[str, Mapping[str, IndexPlan]] = field(default_factory=dict)
    frequencies: Mapping[str, Mapping[Pattern, float]] = field(default_factory=dict)

    def for_shard(self, shard: int) -> dict[str, IndexPlan]:
        """The plans of a shard's states."""
        return {**self.common, **self.shards.get(str(shard), {})}

    def to_json(self) -> dict[str, Any]:
        """The plans as plain data, for JSON."""
        return {
            "common": {alias: plan.to_json() for alias, plan in self.common.items()},
            "shards": {
                shard: {alias: plan.to_json() for alias, plan in plans.items()}
                for shard, plans in self.shards.items()
            },
            "frequencies": {
                alias: [[list(pattern), share] for pattern, share in seen.items()]
                for alias, seen in self.frequencies.items()
            },
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> IndexPlans:
        """From plain data; raises QueryMeshError if that is none."""
        try:
            return cls(
                _plans(stored["common"]),
                {str(shard): _plans(plans) for shard, plans in stored["shards"].items()},
                {
                    str(alias): {tuple(map(int, p)): float(share) for p, share in seen}
                    for alias, seen in stored["frequencies"].items()
                },
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise QueryMeshError(f"the plans of the indices cannot be read: {problem!r}") from None


def _plans(stored: Mapping[str, Any]) -> dict[str, IndexPlan]:
    return {str(alias): plan_from_json(plan) for alias, plan in stored.items()}


def tell(indices: Indices, shard: int, report: TaskReport) -> None:
    """Report what a task's states did, and how they are indexed."""
    loads = indices.loads()
    for alias, stem in indices.fabric.streams.items():
        report.indices[shard, alias] = IndexUse(
            load=loads[alias],
            probes=stem.probes,
            comparisons=stem.comparisons,
            seconds=stem.index_seconds,
            bytes=stem.index_bytes,
            partitions=[(len(part), part.index_text()) for part in stem.partitions],
        )
    report.index_changes += [(shard, change) for change in indices.tuner.changes]
    report.tuning_seconds += indices.tuner.seconds
    report.moved_rows += indices.moved
