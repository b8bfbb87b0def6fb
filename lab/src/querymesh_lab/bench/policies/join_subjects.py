"""Windowed joins as subjects of `bench policies`: the designs of `bench join`, on the join core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.fabric.core.router import Router
from querymesh.fabric.join.view import own_conditions
from querymesh.fabric.profile.join_profile import SampledJoin, profile_arrivals
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.query.model import Meeting
from querymesh.query.parse.query import query
from querymesh_lab.bench.data.join_data import Design, streams
from querymesh_lab.bench.joins.core_run import as_batches, run_core
from querymesh_lab.bench.joins.join_case import window_sql
from querymesh_lab.bench.limits import limits
from querymesh_lab.bench.policies.race import (
    PolicyCase,
    PolicyRun,
    RouterMaker,
    SampledView,
    WorkBounds,
    answer_of,
    mean_bounds,
)

SAMPLED = 0.5
"""Share of the streams, from their beginning, that training sees, as in `bench join`."""

PROFILED = 2000
LIMITED = 4000
"""Arrivals of each stream, by chance from all of them, that limits are taken from."""

STEP = 1000
"""Arrivals of each stream, on average, that are taken in together."""


@dataclass(frozen=True)
class JoinSubject:
    """A join of generated streams."""

    name: str
    design: Design
    kind: str = "joins"

    @cached_property
    def streams(self) -> dict[str, pa.RecordBatch]:
        """All rows of each stream, by alias."""
        return as_batches({name.lower(): table for name, table in streams(self.design).items()})

    @cached_property
    def join(self) -> JoinQuery:
        """The query with its columns known."""
        schemas = {alias.upper(): batch.schema for alias, batch in self.streams.items()}
        return bind_join(query(window_sql(self.design), time="ts"), schemas)

    @property
    def sample(self) -> dict[str, pa.RecordBatch]:
        """What training sees: the first part of all streams."""
        return {a: batch.slice(0, int(SAMPLED * len(batch))) for a, batch in self.streams.items()}

    def views(self) -> dict[str, SampledView]:
        """Each stream, with a profile of the sample."""
        sampled = SampledJoin(self.join, self.sample, {})
        return {
            alias: SampledView(
                view, sampled.profile(alias, PROFILED, seed=0), own_conditions(view), STEP
            )
            for alias, view in self.join.views.items()
        }

    def run(self, makers: Mapping[str, RouterMaker]) -> PolicyRun:
        """Run the join step by step; the time is the core's."""
        used: dict[str, Router] = {alias: make() for alias, make in makers.items()}
        out: list[pa.RecordBatch] = []
        done = run_core(self.join, self.streams, lambda _: used, STEP * len(used), out.append)
        seconds = sum(visits.seconds for visits in done.metrics.visits.values())
        return PolicyRun(
            answer_of(out), done.metrics, done.cpu_seconds, 1e6 * seconds, used, done.rows_of
        )

    def bounds(self) -> WorkBounds:
        """Probes a tuple, over arrivals of all times; the class is the row's kind.

        A condition between two probed streams takes no visit, so it costs nothing here.
        """
        sampled = SampledJoin(self.join, self.streams, {})
        rng = np.random.default_rng(0)
        parts = []
        for alias, view in self.join.views.items():
            arrivals = sampled.arrivals[alias]
            chosen = np.zeros(len(arrivals), dtype=bool)
            count = min(LIMITED, len(arrivals))
            chosen[rng.choice(len(arrivals), count, replace=False)] = True
            some = arrivals.some(chosen)
            stems = sampled.fabric.stems
            profile, _ = profile_arrivals(self.join, alias, stems, some, timed=False)
            visits = np.array([0.0 if isinstance(op, Meeting) else 1.0 for op in view.operators])
            kinds = np.asarray(profile.sample.column("kind"), np.int64)
            found = limits(replace(profile, drop_us=visits, pass_us=visits), kinds)
            assert found.oracle is not None
            parts.append((float(len(arrivals)), WorkBounds(found.oracle.us, found.bound.us)))
        return mean_bounds(parts)


def of_design(name: str, rows: int, **given: Any) -> JoinSubject:
    """The subject of a design with so many rows a stream."""
    return JoinSubject(name, Design(rows=rows, **given))


ROWS, QUICK = 24_000, 600
QUICK_RATE = {"rate": 60.0, "window_s": 4}
DESIGNS: dict[str, dict[str, Any]] = {
    "3-way uniform": {"shape": "3-way", "matches": 0.8},
    "3-way skewed": {"shape": "3-way", "matches": 6.0, "rare": 0.005},
    "5-way uniform": {"shape": "5-way", "matches": 0.8},
    "5-way skewed": {"shape": "5-way", "matches": 3.0, "rare": 0.002},
    "clique uniform": {"shape": "clique", "matches": 4.0, "linked": 0.1},
    "clique skewed": {"shape": "clique", "matches": 4.0, "linked": 0.2, "rare": 0.05},
    "star uniform": {"shape": "star", "matches": 0.8},
    "star skewed": {"shape": "star", "matches": 3.0, "rare": 0.002},
}
"""Those of `bench join`, as large as its skewed ones."""


def _maker(name: str, given: Mapping[str, Any]) -> Callable[[int], JoinSubject]:
    def make(rows: int) -> JoinSubject:
        return of_design(name, rows, **given, **(QUICK_RATE if rows == QUICK else {}))

    return make


CASES: dict[str, PolicyCase] = {
    name: (_maker(name, given), ROWS, QUICK) for name, given in DESIGNS.items()
}
