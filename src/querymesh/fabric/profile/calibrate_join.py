"""Measure what one more ruster costs a join: at a state it is more than at a filter.

A probe makes its request, goes through every partition of the state and gathers what it found,
whether ten tuples ask or a thousand. Measured as at a filter (`calibrate.py`), on two small streams
of which one is stored in as many partitions as a window usually has (`index/store/merging.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from time import thread_time

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.cost.route_time import Overheads
from querymesh.fabric.core.router import Router
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.join.arrivals import in_order
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.fabric.profile.calibrate import REPEATS, RUSTERS, calibrate
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.model import BoundQuery, Probe
from querymesh.query.parse.query import query

PARTITIONS = 5
STORED, ASKING = 1000, 800
_SQL = "SELECT a.k FROM A a [RANGE 1 HOUR], B b [RANGE 1 HOUR] WHERE a.k = b.k"
_SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64())])


def overheads_for(bound: BoundQuery, window: int) -> Overheads:
    """The overheads of this machine for a query's operators, in windows of so many rows."""
    found = calibrate(window)
    if not any(isinstance(operator, Probe) for operator in bound.operators):
        return found
    return replace(found, ruster_us=max(found.ruster_us, probing_us()))


@lru_cache(maxsize=1)
def probing_us() -> float:
    """The time of one more ruster at one probe; takes about a tenth of a second."""
    seconds = {parts: min(_seconds(parts) for _ in range(REPEATS)) for parts in (1, RUSTERS)}
    return max(0.0, 1e6 * (seconds[RUSTERS] - seconds[1]) / (RUSTERS - 1))


def _seconds(parts: int) -> float:
    """The time in which some tuples, in so many rusters, probe a state."""
    fabric = two_streams()
    routers: Mapping[str, Router] = {"a": Parts(parts), "b": Parts(1)}
    for number in range(PARTITIONS):
        step = fabric.admit(in_order({"b": _rows(number, STORED)}, fabric.join.times), routers)
        list(fabric.results(step, routers))
    step = fabric.admit(in_order({"a": _rows(PARTITIONS, ASKING)}, fabric.join.times), routers)
    started = thread_time()
    list(fabric.results(step, routers))
    return thread_time() - started


def two_streams() -> JoinFabric:
    """The join that is measured, with nothing stored yet."""
    return JoinFabric(bind_join(query(_SQL, time="ts"), {"A": _SCHEMA, "B": _SCHEMA}))


def _rows(number: int, count: int) -> pa.RecordBatch:
    keys = np.random.default_rng(number).integers(0, STORED * PARTITIONS, count)
    return rows_of(keys, number * STORED)


def rows_of(keys: Ints, first_us: int) -> pa.RecordBatch:
    """Rows with these keys, a microsecond apart."""
    times = pa.array(np.arange(len(keys)) + first_us, _SCHEMA[0].type)
    return pa.RecordBatch.from_arrays([times, pa.array(keys)], schema=_SCHEMA)


class Parts(Router):
    """All tuples on the only route there is, in so many rusters."""

    def __init__(self, parts: int) -> None:
        self.parts = parts

    def rusters(self, window: ClassificationWindow) -> list[Ruster]:
        """All tuples in `parts` rusters of about the same size."""
        rows = np.arange(window.rows)
        token = RouteToken((1,))
        return [Ruster(window, part, token) for part in np.array_split(rows, self.parts)]
