"""What the tasks of a join tell the driver: a report for each stream, and what the states hold."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from querymesh.index.tune.tuner import Change, Load
from querymesh.runtime.reports import Report

COUNTS = ("arrived", "late", "untimed", "unjoinable")


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


@dataclass
class JoinReport:
    """One task's report, or several added up.

    `views` are by stream. `arrived` counts tuples, `late` those that came after the horizon,
    `untimed` those without a time, `unjoinable` those with NULL in a key, each tuple once, though
    it may be in several shards. `states` are by shard and stream, as they are after the batch;
    `idle` are the streams that did not hold the horizon. `indices` are by shard and stream;
    `index_changes` are those that shards of a batch job chose themselves, and `tuning_seconds` is
    the time that took; `moved_rows` were laid out anew for another index.

    Where a planner is told (`planned_task.py`): `spans` are the first and the last time of each
    stream's tuples, `held` how many rows of a relation are in its window, on the average, when
    tuples of a stream arrive, and `key_codes` a sample of the codes of join attributes, by stream
    and key class.
    """

    views: dict[str, Report]
    batch: int | None = None
    query: str | None = None
    shard: int = 0
    arrived: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    late: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    untimed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    unjoinable: dict[str, int] = field(default_factory=lambda: defaultdict(int))
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
    held: dict[tuple[str, str], float] = field(default_factory=dict)
    key_codes: dict[tuple[str, int], npt.NDArray[np.int64]] = field(default_factory=dict)

    def add(self, other: JoinReport) -> None:
        """Add another task's report to this one."""
        for alias, report in other.views.items():
            self.views[alias].add(report)
        for name in COUNTS:
            counts = getattr(self, name)
            for alias, count in getattr(other, name).items():
                counts[alias] += count
        self.states.update(other.states)
        self.state_seconds += other.state_seconds
        self.indices.update(other.indices)
        self.index_changes += other.index_changes
        self.tuning_seconds += other.tuning_seconds
        self.moved_rows += other.moved_rows
        self.problems += other.problems
