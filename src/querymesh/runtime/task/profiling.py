"""Profiling within a task: a share of its rows on every operator, beside the query (QM § 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Ints
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.fabric.join.shared_join_fabric import SharedJoinFabric
from querymesh.fabric.profile.join_profile import profile_arrivals
from querymesh.fabric.profile.profiler import profile_counted
from querymesh.optimize.adapt.budget import rows_to_profile
from querymesh.query.model import BoundQuery
from querymesh.runtime.task.router_source import TaskStart
from querymesh.runtime.task_report import ViewReport
from querymesh.stats.profile import Profile

MOST_CHARACTERS = 256
"""A text travels to the driver cut to this length: no test is on a longer one."""


def light(sample: pa.Table) -> pa.Table:
    """Profiled rows as they travel to the driver, of a bounded size whatever the rows are: long
    texts are cut, and values that no test can be about are left out."""
    return pa.table([_light(column) for column in sample.columns], schema=sample.schema)


def _light(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        longest = pc.max(pc.binary_length(column)).as_py() or 0
        if longest <= MOST_CHARACTERS:
            return column
        return pc.utf8_slice_codeunits(column, 0, MOST_CHARACTERS)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.nulls(len(column), kind)
    return column


class Profiling:
    """Profiles the share of the rows that a task was told to, into its report.

    If that is `timed`, costs are measured too, which runs operators more than once: for a first
    mesh only.
    """

    def __init__(
        self, report: ViewReport, start: TaskStart, rng: np.random.Generator, operators: int
    ) -> None:
        self.report = report
        self.timed = start.timed
        self._share, self._most = start.share, start.most
        self._rng = rng
        self._operators = operators

    def see(
        self, rows: int, profile: Callable[[Ints], tuple[Profile, int]], failing: str, remedy: str
    ) -> None:
        """Profile some of so many rows, by the numbers that `profile` is given.

        An operator that raises here may have met a row that its route would have spared it: the
        query goes on, and raises if it comes to that row. `failing` and `remedy` say so.
        """
        if self._share <= 0 or self._most < 1 or rows == 0:
            return
        wanted = rows_to_profile(self._share, self._most, rows, self._rng)
        if wanted == 0:
            return
        chosen = np.sort(self._rng.choice(rows, wanted, replace=False))
        self._most -= wanted
        started = perf_counter()
        try:
            found, evaluations = profile(chosen)
        except Exception as problem:
            self._count(wanted * self._operators)  # at most
            self.report.problems.append(f"{failing} ({problem}){remedy}")
            self._share = 0.0
            return
        if found.rows:
            self.report.add_profile(replace(found, sample=light(found.sample)))
        self._count(evaluations)
        self.report.metrics.profile_seconds += perf_counter() - started
        self.report.metrics.profiled_rows += found.rows

    def _count(self, evaluations: int) -> None:
        self.report.metrics.profile_evaluations += evaluations
        self.report.asked_evaluations += 0 if self.timed else evaluations


@dataclass(frozen=True)
class BatchProfiling:
    """Profiles rows of a source that meets filters and look-ups."""

    bound: BoundQuery
    tables: Mapping[str, LookupTable]
    on_error: str
    profiling: Profiling

    def see(self, batch: pa.RecordBatch) -> None:
        """Profile some rows of a batch."""

        def profile(chosen: Ints) -> tuple[Profile, int]:
            sample = pa.Table.from_batches([batch.take(pa.array(chosen))])
            timed = self.profiling.timed
            return profile_counted(self.bound, sample, self.tables, self.on_error, timed=timed)

        self.profiling.see(
            batch.num_rows,
            profile,
            "rows could not be profiled, so the mesh is not learned from them",
            ". If a function may only meet what another condition lets through, say so by after=",
        )


@dataclass(frozen=True)
class ViewProfiling:
    """Profiles arrivals of one stream of a join on every operator of its view, `alias`.

    They must be stored and not settled yet: they probe what came before them, as they do later.
    """

    fabric: JoinFabric
    alias: str
    on_error: str
    profiling: Profiling

    def see(self, arrivals: Arrivals) -> None:
        """Profile as many of these arrivals as the driver asked for."""

        join, stream = self.fabric.join.of_view(self.alias)

        def profile(chosen: Ints) -> tuple[Profile, int]:
            mask = np.zeros(len(arrivals), dtype=bool)
            mask[chosen] = True
            some = arrivals.some(mask)
            if isinstance(self.fabric, SharedJoinFabric):
                some = self.fabric.for_view(self.alias, some)
            stems = self.fabric.views[self.alias].stems
            return profile_arrivals(join, stream, stems, some, self.on_error, self.profiling.timed)

        self.profiling.see(
            len(arrivals),
            profile,
            f"arrivals on {self.alias} could not be profiled, so the mesh is not learned from them",
            "",
        )
