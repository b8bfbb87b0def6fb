"""How reports get from tasks to the run on the driver: by a Spark accumulator.

A `ReportSender` goes with the task. In a session that has no accumulators another one takes its
place, and neither the tasks nor the run notice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from querymesh.runtime.reports import ReportReceiver
from querymesh.runtime.task_report import TaskReport
from querymesh.spark.context import accumulator

_receivers: WeakValueDictionary[str, ReportReceiver] = WeakValueDictionary()
"""By run, on the driver only: in a task's process this is empty, and reports are merely merged."""

_kept: list[ReportReceiver] = []
"""Receivers of streams: a stream outlives the DataFrame it was started from."""


class _Reports(AccumulatorParam[Any]):
    """Merges reports in tasks and hands them to the run's receiver on the driver."""

    def __init__(self, run: str) -> None:
        self.run = run

    def zero(self, value: Any) -> Any:
        """What the accumulator starts with in a task: no report."""
        return None

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802
        """Merge two reports, or deliver one."""
        receiver = _receivers.get(self.run)
        if receiver is not None:
            if value2 is not None:
                receiver.receive(value2)
            return None
        if value1 is None or value2 is None:
            return value1 or value2
        value1.add(value2)
        return value1


@dataclass
class AccumulatorSender:
    """Sends reports by an accumulator."""

    reports: Accumulator[Any]

    def send(self, report: TaskReport) -> None:
        """Add the report; Spark brings it to the driver when the task succeeds."""
        self.reports += report


def reports_to(
    session: SparkSession, run: str, receiver: ReportReceiver, *, keep: bool
) -> AccumulatorSender:
    """A sender whose reports go to the receiver; `keep` it alive for a stream."""
    _receivers[run] = receiver
    if keep:
        _kept.append(receiver)
    return AccumulatorSender(accumulator(session, _Reports(run)))
