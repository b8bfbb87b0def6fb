"""The indices of a running join's states, on the driver: what was asked of them, and their plans.

::

    tasks: requests by access pattern ──> a tuner for each shard, and one for all
                                                     └──> channel ──> the next tasks

A shard has a plan of its own where that serves it better than the common one by a twentieth; a
shard that was asked too little goes with the others.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from querymesh.errors import QueryMeshError
from querymesh.explained import Explained
from querymesh.fabric.join.indices import attributes_of
from querymesh.index.store.index_plan import IndexPlan
from querymesh.index.store.request import Pattern
from querymesh.index.tune.migration import search_us
from querymesh.index.tune.prices import machine_prices
from querymesh.index.tune.tuner import Change, Load, Tuner
from querymesh.query.join import JoinQuery
from querymesh.runtime.loop import Loop
from querymesh.runtime.loops.background import Background
from querymesh.runtime.progress import RunProgress
from querymesh.runtime.task.index_source import IndexPlans, IndexSource
from querymesh.runtime.task_report import IndexUse, TaskReport

log = logging.getLogger("querymesh")

WORTH_IT = 0.05
"""A shard's own plan must save this share of what a request costs with the common one."""

EVERYWHERE = -1
"""The shard of changes that hold for all of them."""


@dataclass
class StreamIndices:
    """What is known of the indices of one stream's states, over all shards."""

    plan: IndexPlan
    frequencies: Mapping[Pattern, float] = field(default_factory=dict)
    probes: int = 0
    comparisons: int = 0
    seconds: float = 0.0
    last: dict[int, IndexUse] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Memory of the indices alone."""
        return sum(use.bytes for use in self.last.values())

    @property
    def partitions(self) -> dict[int, list[tuple[int, str]]]:
        """By shard, from oldest to newest the rows of each partition and how they are indexed."""
        return {shard: use.partitions for shard, use in sorted(self.last.items())}

    @property
    def comparisons_per_probe(self) -> float:
        """Stored rows that a probing row looked at, on average."""
        return self.comparisons / self.probes if self.probes else 0.0


class IndexLoop(Explained, Loop):
    """Chooses and hands out the plans of a stream, and keeps what tasks tell of their indices."""

    def __init__(self, join: JoinQuery, source: IndexSource) -> None:
        self.kind = source.kind
        self.attribute_names = {
            alias: [each.name for each in join.keys_of(alias)]
            + [str(order) for order in join.orders_of(alias)]
            for alias in join.aliases
        }
        self._source = source
        self._join = join
        self._lock = threading.Lock()
        self._common = source.tuner(join)
        self._shards: dict[int, Tuner] = {}
        self._waiting: deque[TaskReport] = deque()
        self._changes: list[tuple[int, Change]] = []
        self._uses: dict[str, StreamIndices] = {
            alias: StreamIndices(plan) for alias, plan in self._common.plans.items()
        }
        self._told = IndexPlans()
        self._problems: list[str] = []
        self._number = 0
        self._moved = 0
        self._tuning_seconds = 0.0
        self._tuning = Background(
            "querymesh-indices", self._tune, "states keep the indices they have"
        )

    def open(self) -> None:
        """Take up the plans of an earlier run; what cannot be read of them is a problem."""
        channel = self._source.channel
        if channel is None:
            return
        try:
            channel.open()
            self._number = channel.state().index_number
            if self._number:
                self._told = IndexPlans.from_json(channel.indices(self._number))
        except (OSError, QueryMeshError) as problem:
            self._problems.append(f"indices are chosen anew: {problem}")
            log.warning("%s", self._problems[-1])
            return
        for alias, plan in self._told.common.items():
            self._common.start_with(alias, plan)
            self._uses[alias].plan = plan

    @property
    def problems(self) -> Sequence[str]:
        """What of an earlier run could not be read, and what could not be tuned."""
        return [*self._problems, *self._tuning.problems]

    def receive(self, report: TaskReport) -> None:
        """Take in what a task did; returns at once."""
        with self._lock:
            for (shard, alias), use in report.indices.items():
                self._add(shard, alias, use)
            self._changes += report.index_changes
            for _, change in report.index_changes:
                self._uses[change.state].plan = change.new
                self._uses[change.state].frequencies = change.frequencies
            self._moved += report.moved_rows
            self._tuning_seconds += report.tuning_seconds
            if self._source.channel is None:
                return
            self._waiting.append(report)
        self._tuning.ask()

    def _add(self, shard: int, alias: str, use: IndexUse) -> None:
        known = self._uses[alias]
        known.probes += use.probes
        known.comparisons += use.comparisons
        known.seconds += use.seconds
        known.last[shard] = use

    def wait(self, seconds: float) -> bool:
        """Wait until all that was reported is taken in; False if it took longer."""
        return self._tuning.wait(seconds)

    def wait_until_learned(self, seconds: float) -> bool:
        """True at once: a route is learned, an index is only tuned."""
        return True

    def add_progress(self, progress: RunProgress) -> None:
        """The kind of index and its changes; of each stream its plan and how well it does."""
        progress["index"] = self.kind
        progress["indexChanges"] = len(self.changes)
        indices = self.streams
        for label, stream in progress["streams"].items():
            index = indices[self._join.of_view(label)[1]]
            stream["index"] = index.plan.to_json()
            stream["indexBytes"] = index.bytes
            stream["comparisonsPerProbe"] = index.comparisons_per_probe

    @property
    def streams(self) -> dict[str, StreamIndices]:
        """What is known of the indices of each stream's states."""
        with self._lock:
            return dict(self._uses)

    @property
    def changes(self) -> list[tuple[int, Change]]:
        """When and why a state was given another index, by shard; `EVERYWHERE` for all."""
        with self._lock:
            return list(self._changes)

    @property
    def moved_rows(self) -> int:
        """Stored rows that were laid out anew for it."""
        return self._moved

    @property
    def tuning_seconds(self) -> float:
        """Time that counting requests and choosing indices took."""
        tuners = [self._common, *self._shards.values()]
        return self._tuning_seconds + sum(tuner.seconds for tuner in tuners)

    def _tune(self) -> None:
        with self._lock:
            reports = list(self._waiting)
            self._waiting.clear()
        changes: list[tuple[int, Change]] = []
        together: dict[str, Load] = {}
        for report in reports:
            by_shard: dict[int, dict[str, Load]] = defaultdict(dict)
            for (shard, alias), use in report.indices.items():
                by_shard[shard][alias] = use.load
                together[alias] = self._added(alias, together.get(alias), use.load)
            for shard, loads in by_shard.items():
                changes += [(shard, change) for change in self._shard(shard).see(loads)]
        changes += [(EVERYWHERE, change) for change in self._common.see(together)]
        with self._lock:
            self._changes += [change for change in changes if change[0] == EVERYWHERE]
            for alias, plan in self._common.plans.items():
                self._uses[alias].plan = plan
                self._uses[alias].frequencies = self._common.frequencies.get(alias, {})
        if changes:
            self._hand_out()

    def _shard(self, shard: int) -> Tuner:
        if shard not in self._shards:
            tuner = Tuner(self.kind, attributes_of(self._join), self._source.settings)
            for alias, plan in self._told.for_shard(shard).items():
                tuner.start_with(alias, plan)
            self._shards[shard] = tuner
        return self._shards[shard]

    def _hand_out(self) -> None:
        assert self._source.channel is not None
        own = {
            str(shard): {a: plan for a, plan in tuner.plans.items() if self._better(a, tuner)}
            for shard, tuner in self._shards.items()
        }
        shards = {shard: plans for shard, plans in own.items() if plans}
        told = IndexPlans(self._common.plans, shards, self._common.frequencies)
        if told != self._told:
            self._source.channel.hand_out(told.to_json(), self._number + 1)
            self._number += 1
            self._told = told

    def _better(self, alias: str, tuner: Tuner) -> bool:
        """Whether a shard's own plan is worth having."""
        frequencies = tuner.frequencies.get(alias)
        common, own = self._common.plans[alias], tuner.plans[alias]
        if not frequencies or own == common:
            return False
        rows, prices = max(tuner.stored(alias), 1), machine_prices()
        cost = search_us(common, rows, frequencies, prices)
        return search_us(own, rows, frequencies, prices) < (1 - WORTH_IT) * cost

    def _added(self, alias: str, one: Load | None, other: Load) -> Load:
        """Requests and arrivals of both, and what all shards hold now."""
        requests = dict(one.requests) if one else {}
        for pattern, count in other.requests.items():
            requests[pattern] = requests.get(pattern, 0) + count
        with self._lock:
            last = [use.load for use in self._uses[alias].last.values()]
        largest = max(last, key=lambda load: load.largest)
        return Load(
            requests,
            other.arrived + (one.arrived if one else 0),
            sum(load.stored for load in last),
            largest.largest,
            largest.repeats,
        )
