"""Measure what one more leaf of a mesh, and one more ruster of an Eddy, cost a join.

Where routes are known from the start, all leaves go through the states in one program: one more is
some more states to count, and smaller groups that probe together. An Eddy's rusters go one by one:
each makes its request, goes through every partition of the state and gathers what it found,
whether ten tuples ask or a thousand. Both are measured as at a filter (`calibrate.py`), on two
small streams of which one is stored in as many partitions as a window usually has
(`index/store/merging.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from time import thread_time

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.classify.tree import Leaf, Split, Threshold, Tree
from querymesh.cost.route_time import Overheads
from querymesh.fabric.core.leaf_numbers import LeafNumbers
from querymesh.fabric.core.router import MeshRouter, Router
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.join.arrivals import in_order
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.fabric.profile.calibrate import REPEATS, RUSTERS, calibrate
from querymesh.mesh.mesh import Mesh, written_mesh
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.model import BoundQuery, Filter, Probe
from querymesh.query.parse.query import query
from querymesh.stats.least_time import least_seconds

PARTITIONS = 5
STORED, ASKING = 1000, 800
_SQL = "SELECT a.k FROM A a [RANGE 1 HOUR], B b [RANGE 1 HOUR] WHERE a.k = b.k"
_SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64())])


def overheads_for(bound: BoundQuery, window: int) -> Overheads:
    """What leaves cost a query on this machine, in windows of so many rows.

    Of a view that has only probes behind its own conditions a leaf costs what it costs a program;
    where a condition needs tuples of several streams, rusters part there and travel on.
    """
    found = calibrate(window)
    probes = [op for op in bound.operators if isinstance(op, Probe)]
    if not probes:
        return found
    filters = [op for op in bound.operators if isinstance(op, Filter)]
    if any(op.after & {probe.index for probe in probes} for op in filters):
        return replace(found, ruster_us=visit_us(bound))
    in_program = len(bound.operators) - len(filters)
    ruster_us = found.ruster_us * len(filters) + leaf_us() * in_program
    return Overheads(asking_us(), ruster_us / len(bound.operators), window)


def visit_us(bound: BoundQuery) -> float:
    """What one more ruster takes at an operator of a query, however few its tuples."""
    at_a_filter = calibrate().ruster_us
    probes = any(isinstance(operator, Probe) for operator in bound.operators)
    return max(at_a_filter, probing_us()) if probes else at_a_filter


@lru_cache(maxsize=1)
def leaf_us() -> float:
    """The time of one more leaf at one probe, on any number of tuples."""
    return _more_us(lambda parts: MeshRouter(_mesh_of(parts)))


@lru_cache(maxsize=1)
def asking_us() -> float:
    """The time of one test of a classifier on one tuple."""
    rows = 16 * ASKING
    column = pa.array(np.arange(rows) % (RUSTERS * STORED))
    leaves = LeafNumbers(_mesh_of(RUSTERS).tree)
    leaves.of(lambda _: column, rows)
    took_s = least_seconds(lambda: leaves.of(lambda _: column, rows), REPEATS, thread_time)
    return 1e6 * took_s / rows / (RUSTERS - 1)


@lru_cache(maxsize=1)
def probing_us() -> float:
    """The time of one more ruster at one probe; takes about a tenth of a second."""
    return _more_us(Parts)


def _more_us(router: Callable[[int], Router]) -> float:
    """The time that one more part takes, of a router that makes so many."""
    seconds = {
        parts: min(_seconds(router(parts)) for _ in range(REPEATS)) for parts in (1, RUSTERS)
    }
    return max(0.0, 1e6 * (seconds[RUSTERS] - seconds[1]) / (RUSTERS - 1))


def _mesh_of(parts: int) -> Mesh:
    """A mesh of so many leaves, all on the only route there is."""
    mesh = written_mesh(two_streams().join.views["a"])
    tree: Tree = Leaf(0)
    for part in range(1, parts):
        tree = Split(
            Threshold("k", float(part * STORED * PARTITIONS // parts), False), tree, Leaf(0)
        )
    return replace(mesh, tree=tree, leaves=mesh.leaves * parts)


def _seconds(router: Router) -> float:
    """The time in which some tuples probe a state, on the routes of a router."""
    fabric = two_streams()
    routers: Mapping[str, Router] = {"a": router, "b": Parts(1)}
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
