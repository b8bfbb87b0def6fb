"""The progress of a run as users read it, field by field, in the names of Spark's own progress.

`docs/reference/progress.md` says what each field means. What only a join has is `NotRequired`.
"""

from __future__ import annotations

import datetime as dt
from typing import NotRequired, TypedDict


class TrainingProgress(TypedDict):
    """How the last search for a mesh ended: when, after how long, and what came of it."""

    timestamp: str
    durationMs: int
    outcome: str


class LearningProgress(TypedDict):
    """What the learner of a stream is doing. While `isLearning` its order is as written."""

    message: str
    isLearning: bool
    since: str
    numProfiledRows: int
    numWantedRows: int
    trainingSince: str | None
    lastTraining: TrainingProgress | None


class StreamProgress(TypedDict):
    """How far one source has come."""

    numInputRows: int
    numOutputRows: int
    meshVersion: int
    routeShares: dict[str, float]
    learning: NotRequired[LearningProgress]
    stateRows: NotRequired[int]
    stateBytes: NotRequired[int]
    statePartitions: NotRequired[int]
    lateRows: NotRequired[int]
    untimedRows: NotRequired[int]
    unjoinableRows: NotRequired[int]
    index: NotRequired[dict[str, object]]
    indexBytes: NotRequired[int]
    comparisonsPerProbe: NotRequired[float]


class RunProgress(TypedDict):
    """How far a run has come."""

    policy: str
    engine: str
    evaluations: int
    routingCalls: int
    streams: dict[str, StreamProgress]
    shards: NotRequired[int]
    horizon: NotRequired[str | None]
    idleStreams: NotRequired[list[str]]
    probes: NotRequired[int]
    comparisons: NotRequired[int]
    index: NotRequired[str]
    indexChanges: NotRequired[int]


def watermark_text(time_us: int | None) -> str | None:
    """A time as Spark's progress writes a watermark.

    >>> watermark_text(1_500_000)
    '1970-01-01T00:00:01.500Z'
    """
    if time_us is None:
        return None
    return time_text(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=time_us))


def time_text(moment: dt.datetime) -> str:
    """A time, in UTC, as Spark's progress writes it."""
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
