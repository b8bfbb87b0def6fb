"""The step of a windowed join: whoever drives a join, task, benchmark or test, drives this.

::

    arrivals ──> indices laid out ──> stored ──> `stored` is told ──> probes ──> results
                                                                        │
                              what no later tuple can meet is forgotten ┘  (`forget`)

Between storing and probing the caller is told: that is when a stream's state is committed, and when
rows can be profiled as they will probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.fabric.core.router import Router
from querymesh.fabric.join.arrivals import Arrivals, in_order
from querymesh.fabric.join.index_order import in_index_order
from querymesh.fabric.join.indices import Indices
from querymesh.fabric.join.join_fabric import JoinFabric, oldest_needed
from querymesh.index.store.partition import Partition
from querymesh.query.join import JoinQuery
from querymesh.runtime.task.slots import PLACE

OnStored = Callable[[Mapping[str, Arrivals], Mapping[str, Partition]], None]
"""Told what arrived and the partition of each stream, when they are stored and have not probed."""


def counted_streams(join: JoinQuery, known: Mapping[str, int] | None = None) -> dict[str, int]:
    """The arrivals so far of the streams whose windows count rows."""
    return {
        stream.alias: int((known or {}).get(stream.alias, 0))
        for stream in join.streams
        if stream.window is not None and stream.window.kind == "rows"
    }


@dataclass
class JoinSteps:
    """A join, step by step. `routers` may be exchanged between steps.

    `counted` are the arrivals so far of streams whose windows count rows. If it `tunes`, indices
    are chosen anew after each step by what states were asked; else someone else does that.
    """

    fabric: JoinFabric
    routers: Mapping[str, Router]
    indices: Indices | None = None
    tunes: bool = False
    counted: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counted = self.counted or counted_streams(self.fabric.join)

    def arrivals(
        self, streams: Mapping[str, pa.RecordBatch], places: Mapping[str, Ints] | None = None
    ) -> dict[str, Arrivals]:
        """Rows in the order in which they count as arrived. Windows that count rows go by where
        a row stood in its input: `places`, or the column `PLACE`."""
        join = self.fabric.join
        if not self.counted:
            return in_order(streams, join.times)
        if places is None:
            places = {a: np.asarray(rows.column(PLACE), np.int64) for a, rows in streams.items()}
            streams = {alias: rows.drop_columns([PLACE]) for alias, rows in streams.items()}
        return in_order(streams, join.times, self.counted, places)

    def step(
        self, arrivals: Mapping[str, Arrivals], on_stored: OnStored | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Store what arrived and let it probe: the results whose last tuple is among it."""
        if self.indices is not None:
            self.indices.arrive(arrivals)
        plans = {alias: stem.plan for alias, stem in self.fabric.streams.items()}
        in_order = in_index_order(self.fabric.join, arrivals, plans, self.routers)
        step = self.fabric.admit(in_order, self.routers)
        for alias in self.counted:
            self.counted[alias] += len(arrivals.get(alias, ()))
        if on_stored is not None:
            on_stored(arrivals, step.partitions)
        yield from self.fabric.results(step, self.routers)
        if self.indices is not None and self.tunes:
            self.indices.tune()

    def forget(self, horizon_us: int) -> None:
        """Evict what no tuple from the horizon on can meet, and merge small partitions."""
        self.fabric.evict(horizon_us, self.counted)
        for alias in self.fabric.join.aliases:
            self.compact(alias, oldest_needed(self.fabric.join, alias, horizon_us, self.counted))

    def compact(self, alias: str, oldest: int | None) -> None:
        """Merge small partitions of a stream, without what is older than `oldest`."""
        window = self.fabric.join.window_of(alias)
        self.fabric.streams[alias].compact(window.size if window else None, oldest)


def newest_us(arrivals: Mapping[str, Arrivals]) -> int | None:
    """The last time of what arrived; None if nothing did."""
    return max((int(each.times[-1]) for each in arrivals.values() if len(each)), default=None)
