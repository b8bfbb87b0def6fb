"""Filters and look-ups as subjects of `bench policies`: the generators of `bench where`, and drift.

Rows come in batches as Spark would hand them over. Where a generator knows each row's class and
verdicts the limits are exact; else they are of the first rows, which come in random order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import process_time

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Ints
from querymesh.cost.route_time import WINDOW
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.tables import make_tables, one_batch
from querymesh.fabric.profile.profiler import profile_sample
from querymesh.optimize.train.training import Training
from querymesh.query.model import BoundQuery, Query
from querymesh.query.parse.query import query
from querymesh.stats.profile import Profile
from querymesh_lab.bench.data import csic, kdd, lines, messages
from querymesh_lab.bench.data.classed import OPPOSITE, UNIFORM, ClassedRows
from querymesh_lab.bench.data.real_folder import folder_with
from querymesh_lab.bench.data.row_predicate import RowPredicate, functions, select
from querymesh_lab.bench.filters import correlated
from querymesh_lab.bench.filters.contest import steady_profile
from querymesh_lab.bench.limits import counted, designed_profile, limits
from querymesh_lab.bench.policies import race

SAMPLE = Training().sample_rows
PROFILED = 4000
LIMITED = 20_000
"""Rows that limits are taken from where they must be run for it."""


@dataclass(frozen=True)
class FilterSubject:
    """One source with its conditions and look-ups. `sample` is what training sees: the first rows,
    unless told."""

    name: str
    query: Query
    relation: str
    table: pa.Table
    partners: Mapping[str, pa.Table] = field(default_factory=dict)
    classes: Ints | None = None
    passes: Bools | None = None
    sample: pa.Table | None = None
    kind: str = "filters"

    @cached_property
    def bound(self) -> BoundQuery:
        """The query with its columns known."""
        inputs = {self.relation: self.table, **self.partners}
        return self.query.bind({name: table.schema for name, table in inputs.items()})

    @cached_property
    def tables(self) -> dict[str, LookupTable]:
        """The look-up tables by alias, ready to be probed."""
        found = {r.alias: self.partners.get(r.name) for r in self.query.relations}
        return make_tables(self.bound, {a: t for a, t in found.items() if t is not None})

    @cached_property
    def profile(self) -> Profile:
        """What every operator does, over as many rows as it is known of."""
        if self.passes is not None:
            measured = steady_profile(self.bound, self.table.slice(0, PROFILED))
            return designed_profile(measured, self.table, self.passes)
        return steady_profile(self.bound, self.table.slice(0, LIMITED), self.tables)

    def views(self) -> dict[str, race.SampledView]:
        """The one source, with a profile of its sample."""
        seen = self.table.slice(0, SAMPLE) if self.sample is None else self.sample
        profile = profile_sample(self.bound, seen, self.tables)
        return {self.bound.source.alias: race.SampledView(self.bound, profile)}

    def run(self, makers: Mapping[str, race.RouterMaker]) -> race.PolicyRun:
        """Send all rows through the fabric, batch by batch."""
        alias = self.bound.source.alias
        fabric, router = Fabric(self.bound, self.tables), makers[alias]()
        batch = one_batch(self.table)
        half = batch.num_rows // 2
        early = 0
        out: list[pa.RecordBatch] = []
        started = process_time()
        for part in (batch.slice(0, half), batch.slice(half)):
            early = fabric.metrics.evaluations
            for first in range(0, part.num_rows, WINDOW):
                out += fabric.run(part.slice(first, WINDOW), router)
        seconds = process_time() - started
        metrics = fabric.metrics
        return race.PolicyRun(
            race.answer_of(out), metrics, seconds, self._operator_us(metrics), {alias: router},
            {alias: metrics.rows_in}, (metrics.evaluations - early) / max(batch.num_rows - half, 1),
        )  # fmt: skip

    def _operator_us(self, metrics: Metrics) -> float:
        """Evaluations by what each costs: what a busy machine does not change."""
        return counted(metrics, self.profile).us * metrics.rows_in

    def bounds(self) -> race.WorkBounds:
        """The limits that the profile of all rows gives."""
        classes = None if self.classes is None else self.classes[: self.profile.rows]
        found = limits(self.profile, classes)
        nothing = float("nan")
        return race.WorkBounds(
            found.oracle.evaluations if found.oracle else nothing,
            found.bound.evaluations,
            found.oracle.us if found.oracle else nothing,
            found.bound.us,
        )


def of_messages(name: str, data: ClassedRows, sample: pa.Table | None = None) -> FilterSubject:
    """The subject of Python predicates on messages."""
    return _python(name, messages.RELATION, data.table, messages.PREDICATES, data, sample)


def of_lines(name: str, data: ClassedRows) -> FilterSubject:
    """The subject of regular expressions on lines."""
    asked = query(lines.sql())
    return FilterSubject(name, asked, lines.RELATION, data.table, {}, data.classes, data.passes)


def of_readings(name: str, data: ClassedRows) -> FilterSubject:
    """Cheap conditions of which training is told that each costs 20 µs."""
    count = data.passes.shape[1]
    conditions = " AND ".join(f"holds{k}(x{k})" for k in range(1, count + 1))
    text = f"SELECT id, channel FROM {correlated.RELATION} WHERE {conditions}"
    asked = query(text, functions=correlated.functions(count))
    return FilterSubject(
        name, asked, correlated.RELATION, data.table, {}, data.classes, data.passes
    )


def _python(
    name: str,
    relation: str,
    table: pa.Table,
    predicates: Sequence[RowPredicate],
    known: ClassedRows | None = None,
    sample: pa.Table | None = None,
) -> FilterSubject:
    asked = query(select(relation, predicates), functions=functions(predicates))
    classes, passes = (None, None) if known is None else (known.classes, known.passes)
    return FilterSubject(name, asked, relation, table, {}, classes, passes, sample)


def drifting(rows: int) -> tuple[ClassedRows, pa.Table, pa.Table]:
    """Messages whose channels change their meaning half way; a sample of the first half, and one
    of both halves.

    The true class of a row is its channel's class and the half it is in: an oracle knows both.
    """
    half = rows // 2
    swapped = tuple(OPPOSITE[(k + 1) % len(OPPOSITE)] for k in range(len(OPPOSITE)))
    parts = [messages.messages(half, OPPOSITE, 0), messages.messages(half, swapped, 1)]
    table = pa.concat_tables([part.table for part in parts])
    table = table.set_column(0, "id", pa.array(np.arange(table.num_rows)))
    both = pa.concat_tables([part.table.slice(0, SAMPLE // 2) for part in parts])
    classes = np.concatenate([parts[0].classes, parts[1].classes + len(OPPOSITE)])
    passes = np.concatenate([part.passes for part in parts])
    return ClassedRows(table, classes, passes), parts[0].table.slice(0, SAMPLE), both


def drift_first(rows: int) -> FilterSubject:
    """Messages that drift, of which training sees the first half only."""
    data, first, _ = drifting(rows)
    return of_messages("drift, first half seen", data, first)


def drift_both(rows: int) -> FilterSubject:
    """Messages that drift, of which training sees both halves."""
    data, _, both = drifting(rows)
    return of_messages("drift, both halves seen", data, both)


def csic_requests(rows: int) -> FilterSubject | None:
    """Real requests; None where the data are not there."""
    folder = folder_with(csic.FILES)
    if folder is None:
        return None
    table = csic.requests(folder, rows)
    return _python("CSIC requests", csic.RELATION, table, csic.PREDICATES)


def kdd_connections(rows: int) -> FilterSubject | None:
    """Real connections; None where the data are not there."""
    folder = folder_with([kdd.FILE])
    if folder is None:
        return None
    table = kdd.connections(folder, rows)
    return _python("KDD connections", kdd.RELATION, table, kdd.PREDICATES)


CASES: dict[str, race.PolicyCase] = {
    "python": (lambda n: of_messages("python", messages.messages(n, OPPOSITE)), 24_000, 1_000),
    "regex": (lambda n: of_lines("regex", lines.lines(n, lines.OPPOSITE)), 60_000, 2_000),
    "marginals": (lambda n: of_readings("marginals", correlated.marginals(n)), 100_000, 4_000),
    "pooled": (lambda n: of_readings("pooled", correlated.pooled(n)), 100_000, 4_000),
    "uniform": (lambda n: of_messages("uniform", messages.messages(n, UNIFORM)), 12_000, 1_000),
    "CSIC requests": (csic_requests, 40_000, 1_500),
    "KDD connections": (kdd_connections, 60_000, 2_000),
    "drift, first half seen": (drift_first, 24_000, 1_500),
    "drift, both halves seen": (drift_both, 24_000, 1_500),
}
