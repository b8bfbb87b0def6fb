"""A queue in front of a run: what waits, and what is out in time, by the time of each step.

Steps arrive evenly; one begins when it is there and the step before is done::

    arrives   a1      a2      a3      a4
    runs        [ 1 ][   2    ][ 3 ]    [ 4 ]        waiting at its end: what came and is not done
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from querymesh_lab.bench.joins.core_run import CoreRun


class QueueOutcome(NamedTuple):
    """A run behind a queue: results by the time the last tuple arrives, and the most tuples that
    had come and were not done when a step ended."""

    results: int
    waiting: int


class StepTime(NamedTuple):
    """One step of a run: how long it took, and how many results it gave."""

    took_s: float
    results: int


def queued(taken: Sequence[StepTime], rows: int, lasting_s: float) -> QueueOutcome:
    """What becomes of a run if its tuples, so many in all, come evenly over this time.

    Of a step under way at the end, the share of its results is out that its time is over.
    """
    every_s, each = lasting_s / len(taken), rows / len(taken)
    done_s, by_end, waiting = 0.0, 0.0, 0.0
    for number, (took_s, results) in enumerate(taken, 1):
        begun_s = max(done_s, number * every_s)
        done_s = begun_s + took_s
        arrived = min(len(taken), int(done_s / every_s))
        waiting = max(waiting, (arrived - number) * each)
        by_end += results * min(1.0, max(0.0, lasting_s - begun_s) / max(took_s, 1e-12))
    return QueueOutcome(round(by_end), round(waiting))


def usual_steps(runs: Sequence[CoreRun], lasting_s: float | None = None) -> list[StepTime]:
    """The steps of several runs of the same tuples: of each, the median of its times; all of them
    together as long as is said, if it is."""
    took_s = np.median([np.diff([at for at, _ in run.curve]) for run in runs], axis=0)
    if lasting_s is not None:
        took_s = took_s * (lasting_s / took_s.sum())
    results = np.diff([out for _, out in runs[0].curve])
    return [StepTime(float(s), int(n)) for s, n in zip(took_s, results, strict=True)]
