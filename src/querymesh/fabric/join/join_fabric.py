"""A join of windowed streams, one step at a time: store what arrived, then let it probe.

::

    arrivals of a ──> conditions on a ──> stored ──┐              ┌── STeM a
    arrivals of b ──> conditions on b ──> stored ──┼── then each ─┼── STeM b     results
    arrivals of c ──> conditions on c ──> stored ──┘   probes the └── STeM c
                                                       others by its route

Within a step a probe meets only what came before it (by serial), so each result is made once, by
its last arrival. No intermediate result is kept: a route can change from one step to the next, or
between two classes of the same step, and no state moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from querymesh.fabric.core.operators import UserCalls
from querymesh.fabric.core.router import Router
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.state import static_stem
from querymesh.fabric.join.together import Arrived, Together
from querymesh.fabric.join.view import Admitted, ViewFabric
from querymesh.index.store.partition import Partition, concat
from querymesh.index.store.stem import Stem
from querymesh.query.join import JoinQuery

Routers = Mapping[str, Router]


@dataclass(frozen=True)
class Step:
    """Arrivals that are stored and ready to probe, by stream; and the partition of each."""

    admitted: Mapping[str, list[Admitted]]
    partitions: Mapping[str, Partition]


class JoinFabric:
    """The states of all relations of a join, and a view for each stream."""

    def __init__(
        self,
        join: JoinQuery,
        statics: Mapping[str, Stem] | None = None,
        on_error: str = "raise",
    ) -> None:
        self.join = join
        self.streams = {alias: Stem() for alias in join.aliases}
        self.stems: dict[str, Stem] = {**self.streams, **(statics or {})}
        self.views: dict[str, ViewFabric] = {
            alias: ViewFabric(join, alias, self.stems, on_error) for alias in join.aliases
        }
        self._together = Together(join)

    def admit(self, arrivals: Mapping[str, Arrivals], routers: Routers) -> Step:
        """Store what arrived and passed the conditions on its stream alone."""
        admitted, partitions = {}, {}
        for alias, arrived in arrivals.items():
            admitted[alias], made = self.views[alias].admitted(arrived, routers[alias])
            if made:
                partitions[alias] = concat(made)
        for alias, partition in partitions.items():
            if len(partition):
                partitions[alias] = self.streams[alias].laid_out(partition)
                self.streams[alias].insert(partitions[alias])
        return Step(admitted, partitions)

    def results(self, step: Step, routers: Routers) -> Iterator[pa.RecordBatch]:
        """The results whose last arrival is in the step; afterwards its tuples are as any other.

        Streams whose tuples only probe, on routes that are known, do so together.
        """
        together: list[Arrived] = []
        for alias, admitted in step.admitted.items():
            view, router = self.views[alias], routers[alias]
            if alias not in step.partitions or not len(step.partitions[alias]):
                continue
            arrived = self._together.arrived(view, admitted, step.partitions[alias], router)
            if arrived is None:
                yield from view.results(admitted, router)
            else:
                together.append(arrived)
        if together:
            yield from self._together.results(together)
        for stem in self.streams.values():
            stem.settle()

    def evict(self, horizon_us: int, counted: Mapping[str, int]) -> None:
        """Forget what no later arrival can meet: none will be older than the horizon.

        `counted` are the arrivals so far of streams whose windows count rows.
        """
        for stream in self.join.streams:
            if (oldest := oldest_needed(self.join, stream.alias, horizon_us, counted)) is not None:
                self.streams[stream.alias].evict(oldest)


def oldest_needed(
    join: JoinQuery, alias: str, horizon_us: int, counted: Mapping[str, int]
) -> int | None:
    """The least time (or arrival number) a stored tuple must have to be in a later result."""
    window = join.window_of(alias)
    if window is None:
        return None
    return (counted[alias] if window.kind == "rows" else horizon_us) - window.size


def static_stems(
    join: JoinQuery, tables: Mapping[str, pa.Table], on_error: str = "raise"
) -> dict[str, Stem]:
    """The static tables of a join, ready to be probed."""
    calls = UserCalls(join.query.functions, on_error)
    return {r.alias: static_stem(join, r.alias, tables[r.alias], calls) for r in join.statics}
