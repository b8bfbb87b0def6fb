"""What the tasks of a join tell the driver: a report for each stream, and what the states hold."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from querymesh.spark.reports import Report


@dataclass
class StreamState:
    """The state of one stream in one shard after a batch."""

    rows: int = 0
    bytes: int = 0
    partitions: int = 0


@dataclass
class JoinReport:
    """One task's report, or several added up.

    `views` are by stream; `late` counts tuples that came after the horizon, `untimed` those without
    a time, `unjoinable` those with NULL in a key. `states` are by shard and stream, as they are
    after the batch `batch`.
    """

    views: dict[str, Report]
    batch: int | None = None
    query: str | None = None
    late: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    untimed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    unjoinable: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    states: dict[tuple[int, str], StreamState] = field(default_factory=dict)
    state_seconds: float = 0.0
    horizon_us: int | None = None

    def add(self, other: JoinReport) -> None:
        """Add another task's report to this one."""
        for alias, report in other.views.items():
            self.views[alias].add(report)
        for name in ("late", "untimed", "unjoinable"):
            counts = getattr(self, name)
            for alias, count in getattr(other, name).items():
                counts[alias] += count
        self.states.update(other.states)
        self.state_seconds += other.state_seconds
