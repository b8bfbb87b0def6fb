"""Rivals in rounds over one table: their times, and their calls as the endpoint counts them.

Times are from the call to the end of the action, sampling and training included. Each run reads the
table under a path of its own, so that nothing was learned about it before.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

from pyspark.sql import DataFrame

import querymesh as qm
from querymesh_lab.bench.costly.cell import Ground
from querymesh_lab.bench.costly.counts import Counts
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.guest.tables import StoredTable
from querymesh_lab.bench.measure import Timing, interleave

Build = Callable[[DataFrame], DataFrame]


@dataclass
class Contest:
    """Who runs, on which table, and how the endpoint behaves to all of them."""

    ground: Ground
    table: StoredTable
    manners: Manners
    builds: Mapping[str, Build]
    counts: dict[str, list[Counts]] = field(default_factory=dict)
    explained: dict[str, str] = field(default_factory=dict)
    clock_s: float = 0.0

    def once(self, name: str) -> int:
        """One run: how many rows it found."""
        endpoint = self.ground.endpoint
        with self.table.linked() as path:
            df = self.ground.frame(path)
            endpoint.behave(self.manners)
            started = perf_counter()
            out = self.builds[name](df)
            found = out.count()
            self.clock_s += perf_counter() - started
            self.counts.setdefault(name, []).append(endpoint.counts())
            if "where" in name:
                self.explained[name] = str(qm.inspect(out).explain())
        return found

    def interleaved(self, rounds: int, control: str) -> Timing:
        """All of them in rounds; what ran before to warm up is not counted."""
        self.counts.clear()
        actions = {name: partial(self.once, name) for name in self.builds}
        log = self.ground.bench.log
        return interleave(
            actions, rounds, control=control, warm_ups=0, log=log, clock=lambda: self.clock_s
        )

    def median_calls(self, name: str) -> float:
        """How many calls a run made, the middle of all rounds."""
        return statistics.median(each.calls for each in self.counts[name])

    def most_calls(self, name: str) -> int:
        """How many calls a run made, at most."""
        return max(each.calls for each in self.counts[name])

    def money(self, name: str) -> float:
        """What a run cost, the middle of all rounds."""
        return statistics.median(each.money for each in self.counts[name])
