"""What tasks tell the driver: counts, times, profiled samples, and what routers have learned.

What a report says is here; what carries it is somebody else's: a task has a `ReportSender`, the
driver a `ReportReceiver`, and between the two is whatever the platform has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats
from querymesh.runtime.task_report import TaskReport
from querymesh.stats.profile import Profile


class ReportSender(Protocol):
    """How a task's report gets to the driver; picklable, it travels with the task."""

    def send(self, report: TaskReport) -> None:
        """Send the report, once, at the end of a task."""


class ReportReceiver(Protocol):
    """Whoever wants the reports, on the driver."""

    def receive(self, report: TaskReport) -> None:
        """Take one task's report; called on a thread that others wait for, so be quick."""


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
