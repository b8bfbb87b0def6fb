"""One task's report: what it did, view by view, and what it saw of states and indices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from querymesh.arrays import Ints
from querymesh.fabric.core.metrics import Metrics
from querymesh.index.tune.tuner import Change, Load
from querymesh.runtime.task.place import TaskPlace
from querymesh.stats.profile import Profile

COUNTS = ("arrived", "late", "untimed", "unjoinable")


class RouterSnapshot(NamedTuple):
    """What a router that learns knew at the end of a task, of a batch (-1 if of none)."""

    batch: int
    state: Mapping[str, Any]


@dataclass
class ViewReport:
    """What a task did with the tuples of one source. Profiles travel as plain Arrow and numpy.

    `asked_evaluations` are those made for profiling while the query runs, as against those for
    learning a first mesh; `problems` what went wrong beside the query and did not stop it;
    `routers` what routers that learn know, by shard.
    """

    metrics: Metrics
    profiles: list[Profile] = field(default_factory=list)
    asked_evaluations: int = 0
    problems: list[str] = field(default_factory=list)
    routers: dict[str, RouterSnapshot] = field(default_factory=dict)

    def add_profile(self, profile: Profile) -> None:
        """Add a profiled sample."""
        self.profiles.append(profile)

    def add(self, other: ViewReport) -> None:
        """Add another task's report to this one."""
        self.metrics.add(other.metrics)
        self.profiles += other.profiles
        self.asked_evaluations += other.asked_evaluations
        self.problems += other.problems
        self.routers.update(other.routers)


@dataclass
class StreamState:
    """The state of one stream in one shard after a batch."""

    rows: int = 0
    bytes: int = 0
    partitions: int = 0


@dataclass
class IndexUse:
    """What the indices of one stream's state did in a task, and what they are at its end.

    `seconds` is the time of merging partitions and laying rows out, `partitions` has the rows of
    each and how they are indexed, from oldest to newest.
    """

    load: Load
    probes: int = 0
    comparisons: int = 0
    seconds: float = 0.0
    bytes: int = 0
    partitions: list[tuple[int, str]] = field(default_factory=list)


def _counts() -> dict[str, int]:
    return defaultdict(int)


@dataclass
class TaskReport:
    """One task's report, or several added up. `views` are by the alias of their source; a query of
    one source has one, and says nothing of states; of a filter, `seconds` are those from the task's
    first row to its last, with what Spark did meanwhile.

    Of a join of windowed streams: `arrived` counts tuples, `late` those that came after the
    horizon, `untimed` those without a time, `unjoinable` those with NULL in a key, each tuple once,
    though it may be in several shards. `states` are by shard and stream, as they are after the
    batch; `idle` are the streams that did not hold the horizon. `indices` are by shard and stream;
    `index_changes` are those that shards of a batch job chose themselves, and `tuning_seconds` is
    the time that took; `moved_rows` were laid out anew for another index.

    Where a planner is told (`planner_sample.py`): `spans` are the first and the last time of each
    stream's tuples, `window_fill` how many rows of a relation are in its window, on the average,
    when tuples of a stream arrive, and `key_codes` a sample of the codes of join attributes, by
    stream and key class.
    """

    views: dict[str, ViewReport]
    place: TaskPlace = field(default_factory=TaskPlace)
    seconds: float = 0.0
    arrived: dict[str, int] = field(default_factory=_counts)
    late: dict[str, int] = field(default_factory=_counts)
    untimed: dict[str, int] = field(default_factory=_counts)
    unjoinable: dict[str, int] = field(default_factory=_counts)
    states: dict[tuple[int, str], StreamState] = field(default_factory=dict)
    state_seconds: float = 0.0
    horizon_us: int | None = None
    idle: list[str] = field(default_factory=list)
    indices: dict[tuple[int, str], IndexUse] = field(default_factory=dict)
    index_changes: list[tuple[int, Change]] = field(default_factory=list)
    tuning_seconds: float = 0.0
    moved_rows: int = 0
    problems: list[str] = field(default_factory=list)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    window_fill: dict[tuple[str, str], float] = field(default_factory=dict)
    key_codes: dict[tuple[str, int], Ints] = field(default_factory=dict)

    @property
    def batch(self) -> int | None:
        """The micro-batch, None in a batch job."""
        return self.place.batch

    @property
    def query(self) -> str | None:
        """The id of the streaming query, None in a batch job."""
        return self.place.query

    @property
    def shard(self) -> int:
        """The shard of a join: the partition that the task works on."""
        return self.place.partition

    def add(self, other: TaskReport) -> None:
        """Add another task's report to this one."""
        for alias, report in other.views.items():
            self.views[alias].add(report)
        for name in COUNTS:
            counts = getattr(self, name)
            for alias, count in getattr(other, name).items():
                counts[alias] += count
        self.states.update(other.states)
        self.seconds += other.seconds
        self.state_seconds += other.state_seconds
        self.indices.update(other.indices)
        self.index_changes += other.index_changes
        self.tuning_seconds += other.tuning_seconds
        self.moved_rows += other.moved_rows
        self.problems += other.problems
