"""The indices of a join's states: what each did, and how it is told to go on (AMRI § 3 and 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.fabric.join.join_ruster import moved
from querymesh.index.store.index_plan import IndexPlan
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import Pattern
from querymesh.index.store.stem import Stem
from querymesh.index.tune.migration import Frequencies, to_move
from querymesh.index.tune.prices import machine_prices
from querymesh.index.tune.tuner import Attributes, Change, Load, Tuner
from querymesh.query.join import JoinQuery

SAMPLED_ROWS = 256
"""Rows by which it is estimated how often values repeat."""


def attributes_of(join: JoinQuery) -> dict[str, Attributes]:
    """The join attributes of each stream."""
    return {
        alias: Attributes(len(join.keys_of(alias)), len(join.orders_of(alias)))
        for alias in join.aliases
    }


@dataclass
class Meter:
    """Tells what the states of a fabric did since it was last asked; and, if a bit-address index
    may be chosen by it, how often values `repeat`."""

    fabric: JoinFabric
    repeat: bool = True
    _seen: dict[str, Counter[Pattern]] = field(default_factory=dict)

    def loads(self, arrived: Mapping[str, int]) -> dict[str, Load]:
        """What each state did since the last call; `arrived` are the stream's tuples since then."""
        loads = {}
        for alias, stem in self.fabric.streams.items():
            requests = stem.requests - self._seen.get(alias, Counter())
            self._seen[alias] = stem.requests.copy()
            largest = max(map(len, stem.partitions), default=0)
            came = arrived.get(alias, 0)
            repeats = repeats_of(stem) if self.repeat else {}
            loads[alias] = Load(requests, came, stem.rows, largest, repeats)
        return loads


def repeats_of(stem: Stem) -> dict[int, float]:
    """By join attribute, the chance that two rows of a state have the same value, from a sample."""
    if not stem.partitions:
        return {}
    largest = max(stem.partitions, key=len)
    chosen = np.linspace(0, len(largest) - 1, min(len(largest), SAMPLED_ROWS)).astype(np.int64)
    pairs = len(chosen) * (len(chosen) - 1)
    found = {}
    for number, codes in enumerate(largest.keys):
        _, counts = np.unique(codes[chosen], return_counts=True)
        found[number] = float((counts * (counts - 1)).sum() / pairs) if pairs else 0.0
    return found


@dataclass
class Indices:
    """The indices of a fabric's states: those of `plans` until `tune` chooses others."""

    fabric: JoinFabric
    tuner: Tuner
    plans: dict[str, IndexPlan] = field(default_factory=dict)
    frequencies: dict[str, Frequencies] = field(default_factory=dict)
    moved: int = 0

    def __post_init__(self) -> None:
        self._meter = Meter(self.fabric, self.tuner.kind != "hash")
        self._arrived: Counter[str] = Counter()
        self.plans = self.plans or dict(self.tuner.plans)
        use(self.fabric, self.plans)

    def arrive(self, arrivals: Mapping[str, Arrivals]) -> None:
        """Lay stored rows out anew, as far as the migration says, for tuples about to probe."""
        for alias, arrived in arrivals.items():
            self._arrived[alias] += len(arrived)
        migration = self.tuner.settings.migration
        self.moved += use(self.fabric, self.plans, migration, self.frequencies, arrivals)

    def loads(self) -> dict[str, Load]:
        """What the states did since the last call."""
        loads = self._meter.loads(self._arrived)
        self._arrived.clear()
        return loads

    def tune(self) -> list[Change]:
        """Let the tuner choose plans by what the states were asked, and use them from now on."""
        changes = self.tuner.see(self.loads())
        for change in changes:
            self.plans[change.state] = change.new
            self.frequencies[change.state] = change.frequencies
        return changes


def use(
    fabric: JoinFabric,
    plans: Mapping[str, IndexPlan],
    migration: str = "nothing",
    frequencies: Mapping[str, Frequencies] | None = None,
    arrivals: Mapping[str, Arrivals] | None = None,
) -> int:
    """Index the states by other plans from now on; return how many stored rows were moved.

    `arrivals` are in process: they are about to probe.
    """
    rows = 0
    for alias, plan in plans.items():
        stem = fabric.streams[alias]
        stem.plan = plan
        if migration != "nothing" and not all(map(plan.suits, stem.partitions)):
            seen = (frequencies or {}).get(alias, {})
            serves = [
                in_process(fabric.join, alias, partition, arrivals or {})
                for partition in stem.partitions
            ]
            chosen = to_move(migration, stem.partitions, plan, serves, seen, machine_prices)
            rows += stem.replan(chosen)
    return rows


def in_process(
    join: JoinQuery, alias: str, partition: Partition, arrivals: Mapping[str, Arrivals]
) -> int:
    """How many tuples in process have a partition of a stream in their window (AMRI § 8.2)."""
    window = join.window_of(alias)
    count = 0
    for other, arrived in arrivals.items():
        if other == alias:
            continue
        if window is None or window.kind == "rows":
            count += len(arrived)
        else:
            until = moved(np.array([partition.last]), window.size)[0]
            count += int(np.count_nonzero(arrived.times <= until))
    return count
