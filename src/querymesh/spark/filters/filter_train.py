"""Training for one source: take a sample, profile it, time it on the engine it will run on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from querymesh.mesh.mesh import Mesh, written_mesh
from querymesh.query.expr import opaque_parts_of
from querymesh.query.model import BoundQuery, Filter
from querymesh.spark.filters.native import CatalystColumns
from querymesh.spark.inputs import Data, static_tables
from querymesh.spark.sample import take_sample
from querymesh.spark.sampling.bounded_sample import NoSample, bounded_sample
from querymesh.spark.schema import conform

if TYPE_CHECKING:
    from querymesh.optimize.train.training import Training
    from querymesh.stats.profile import Profile


@dataclass(frozen=True)
class FilterTrainer:
    """Trains the mesh of a query over one source; `engine` is where it will run, and `started` from
    when on its time counts."""

    bound: BoundQuery
    data: Mapping[str, Data]
    sample: Data | None
    on_error: str
    engine: str
    columns: CatalystColumns = field(default_factory=CatalystColumns)
    started: float = field(default_factory=perf_counter)

    def train(
        self, training: Training, *, one_route: bool
    ) -> tuple[dict[str, Mesh], dict[str, float]]:
        """Train on the sample, or on one of the source; else the written order, where it will do.

        It will for fewer than two operators, which have one order, and for an empty DataFrame.
        """
        bound, alias = self.bound, self.bound.source.alias
        written = written_mesh(bound)
        if len(bound.operators) < 2:
            return {alias: written}, {}
        if self.columns.remote:
            why = f"{min(self.columns.remote)} can only be called in tasks: the order as written"
            return {alias: written_mesh(bound, why)}, {}
        given = self._with_opaque(self.data[alias] if self.sample is None else self.sample)
        first = self._first(given, training)
        if first.num_rows == 0:
            return {alias: written}, {}
        return {alias: self.train_on(given, first, training, one_route=one_route)}, {}

    def _with_opaque(self, given: Data) -> Data:
        """The rows to learn from with what Catalyst computes for the operators."""
        source = self.data[self.bound.source.alias]
        if not self.columns.opaque or not isinstance(source, DataFrame):
            return given
        if given is source:
            return source.withColumns(self.columns.sampled)
        frame = given
        if isinstance(given, pa.Table):
            frame = source.sparkSession.createDataFrame(given)
        assert isinstance(frame, DataFrame)
        return frame.withColumns(self.columns.on(source, frame))

    def _first(self, given: Data, training: Training) -> pa.Table:
        """A sample that reads a little of the source; all of it only where the plan must run whole
        anyway, or an accuracy is asked for, which needs rows from everywhere."""
        if isinstance(given, DataFrame) and training.accuracy is None:
            taken = bounded_sample(
                given, training.sample_rows, columns=given.columns, seed=training.seed
            )
            if not isinstance(taken, NoSample):
                return taken.table
        return take_sample(given, training.sample_rows, training.seed)

    def train_on(
        self, given: Data, first: pa.Table, training: Training, *, one_route: bool
    ) -> Mesh:
        """Train on a first sample, and on larger ones of what was given if it is not accurate."""
        from querymesh.fabric.core.tables import make_tables
        from querymesh.fabric.profile.calibrate import calibrate
        from querymesh.fabric.profile.profiler import profile_sample
        from querymesh.optimize.train.judge import train_until_accurate
        from querymesh.optimize.train.learned_line import tell_learned

        bound = self.bound
        tables = make_tables(bound, static_tables(bound, self.data), self.on_error)
        overheads = calibrate(training.window)
        natively = self.engine == "native" and len(bound.operators) > 1
        session = self._session() if natively else None
        if session is not None:
            overheads = replace(overheads, ruster_us=0.0)  # generated code has no rusters

        def take(rows: int, seed: int) -> Profile:
            again = (rows, seed) != (training.sample_rows, training.seed)
            sample = take_sample(given, rows, seed) if again else first
            sample = conform(sample, self._sample_schema())
            profile = profile_sample(bound, sample, tables, self.on_error)
            # No kinds are told apart by what Catalyst computes: it is no column of the source.
            own = bound.schemas[bound.source.alias].names
            profile = replace(profile, sample=profile.sample.select(own))
            if session is None or profile.rows == 0:
                return profile
            from querymesh.spark.filters.native_cost import native_costs_us

            drop_us, pass_us = native_costs_us(session, profile, bound)
            return replace(profile, drop_us=drop_us, pass_us=pass_us)

        mesh = train_until_accurate(bound.query, take, overheads, training, one_route=one_route)
        tell_learned(mesh.sample_rows, perf_counter() - self.started, mesh.why)
        return mesh

    def _sample_schema(self) -> pa.Schema:
        """The source's columns, and those that Catalyst computes for the operators."""
        schema = self.bound.schemas[self.bound.source.alias]
        opaque = [
            part
            for operator in self.bound.operators
            if isinstance(operator, Filter)
            for part in opaque_parts_of(operator.expr)
        ]
        for part in dict.fromkeys(opaque):
            schema = schema.append(pa.field(part.key, part.type))
        return schema

    def _session(self) -> SparkSession | None:
        source = self.data[self.bound.source.alias]
        if isinstance(source, DataFrame):
            return source.sparkSession
        return SparkSession.getActiveSession()
