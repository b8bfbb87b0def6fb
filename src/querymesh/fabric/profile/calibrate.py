"""Measure the two machine constants of QM eq. 2: the cost of a test, and of one more ruster.

The paper leaves OVH abstract; here it is measured. Both come from the fabric itself, run on a small
generated window: the time of a threshold test per row, and the extra time when the same rows travel
as several rusters instead of one. In this thread's processor time: nothing here waits, and on a
busy machine the clock would make rusters seem dear and meshes small.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from time import thread_time

import numpy as np
import pyarrow as pa

from querymesh.classify.tree import Threshold, answers
from querymesh.cost.route_time import WINDOW, Overheads
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.router import Router
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.token import RouteToken
from querymesh.query.parse.query import query
from querymesh.stats.least_time import least_seconds

RUSTERS = 8
REPEATS = 7


@lru_cache(maxsize=8)
def calibrate(window: int = WINDOW) -> Overheads:
    """The overheads of this machine for windows of so many rows; takes about 20 ms."""
    values = pa.array(np.arange(window, dtype=np.float64))
    node_s = _shortest(lambda: answers(Threshold("x", window / 2, False), values)) / window
    one, many = _travel_seconds(values, 1), _travel_seconds(values, RUSTERS)
    ruster_us = max(0.0, 1e6 * (many - one) / (RUSTERS - 1))
    return Overheads(1e6 * node_s, ruster_us, window)


def _travel_seconds(values: pa.Array, parts: int) -> float:
    """The time to send all rows through one cheap operator in so many rusters."""
    batch = pa.RecordBatch.from_arrays([values], names=["x"])
    fabric = Fabric(query("SELECT x FROM w WHERE x >= 0").bind({"w": batch.schema}))
    window = fabric.window(batch)
    token = RouteToken((1,))
    pieces = [Ruster(window, part, token) for part in np.array_split(np.arange(len(values)), parts)]

    class Fixed(Router):
        def rusters(self, window: ClassificationWindow) -> list[Ruster]:
            return list(pieces)

    return _shortest(lambda: list(fabric.run(batch, Fixed())))


def _shortest(action: Callable[[], object]) -> float:
    return least_seconds(action, REPEATS, thread_time)
