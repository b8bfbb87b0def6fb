"""What tasks tell the driver: counts, times, and profiled samples, through a Spark accumulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
from pyspark.accumulators import AccumulatorParam

from querymesh.arrays import Floats
from querymesh.fabric.core.metrics import Metrics
from querymesh.stats.profile import Profile


class RouterState(NamedTuple):
    """What a router that learns knew at the end of a task, of a batch (-1 if of none)."""

    batch: int
    state: Mapping[str, Any]


@dataclass
class Report:
    """One task's report. Profiles travel as plain Arrow and numpy.

    `query` and `batch` are those of a stream; `asked_evaluations` those made for profiling while
    the query runs, as against those for learning a first mesh; `problems` what went wrong beside
    the query and did not stop it; `routers` what routers that learn know, by shard.
    """

    metrics: Metrics
    profiles: list[Profile] = field(default_factory=list)
    batch: int | None = None
    query: str | None = None
    asked_evaluations: int = 0
    problems: list[str] = field(default_factory=list)
    routers: dict[str, RouterState] = field(default_factory=dict)

    def add_profile(self, profile: Profile) -> None:
        """Add a profiled sample."""
        self.profiles.append(profile)

    def add(self, other: Report) -> None:
        """Add another task's report to this one."""
        self.metrics.add(other.metrics)
        self.profiles += other.profiles
        self.asked_evaluations += other.asked_evaluations
        self.problems += other.problems
        self.routers.update(other.routers)


class Receiver(Protocol):
    """Whoever wants the reports, on the driver."""

    def receive(self, report: Any) -> None:
        """Take one task's report; called on Spark's accumulator thread, so be quick."""


_receivers: WeakValueDictionary[str, Receiver] = WeakValueDictionary()
"""By run, on the driver only: in a task's process this is empty, and reports are merely merged."""

_kept: list[Receiver] = []
"""Receivers of streams: a stream outlives the DataFrame it was started from."""


class ReportParam(AccumulatorParam[Any]):  # type: ignore[misc]
    """Merges reports in tasks and hands them to the run's receiver on the driver."""

    def __init__(self, run: str) -> None:
        self.run = run

    def zero(self, value: Any) -> Any:
        """Nothing reported yet."""
        return None

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802
        """Merge, or deliver."""
        receiver = _receivers.get(self.run)
        if receiver is not None:
            if value2 is not None:
                receiver.receive(value2)
            return None
        if value1 is None or value2 is None:
            return value1 or value2
        value1.add(value2)
        return value1


def deliver_to(run: str, receiver: Receiver, *, keep: bool) -> None:
    """From now on, reports of this run go to the receiver; `keep` it alive for a stream."""
    _receivers[run] = receiver
    if keep:
        _kept.append(receiver)


def ipc_bytes(table: pa.Table) -> bytes:
    """A table as the bytes that are sent to the tasks."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def join_profiles(profiles: list[Profile]) -> Profile:
    """Several tasks' profiles of one query as one; costs are weighted by rows."""
    rows = np.array([profile.rows for profile in profiles], dtype=np.float64)

    def mean(costs: list[Floats]) -> Floats:
        return np.asarray((np.array(costs) * rows[:, None]).sum(axis=0) / rows.sum())

    return replace(
        profiles[0],
        sample=pa.concat_tables([profile.sample for profile in profiles]),
        outcomes=np.concatenate([profile.outcomes for profile in profiles]),
        drop_us=mean([profile.drop_us for profile in profiles]),
        pass_us=mean([profile.pass_us for profile in profiles]),
    )
