"""Training for one source: take a sample, profile it, time it on the engine it will run on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from querymesh.arrays import Floats
from querymesh.mesh.mesh import Mesh
from querymesh.query.expr import columns_of, opaque_parts_of
from querymesh.query.model import BoundQuery, Filter
from querymesh.spark.filters.native import CatalystColumns, native_sql
from querymesh.spark.inputs import Data, static_tables
from querymesh.spark.prices.condition_costs import condition_costs_by_outcome_us
from querymesh.spark.sample import take_sample
from querymesh.spark.schema import conform

if TYPE_CHECKING:
    from querymesh.optimize.train.training import Training
    from querymesh.stats.profile import Profile


@dataclass
class FilterTrainer:
    """Trains the mesh of a query over one source; `engine` is where it will run, and `calls` are
    rows on which users' functions were called so far."""

    bound: BoundQuery
    data: Mapping[str, Data]
    on_error: str
    engine: str
    columns: CatalystColumns = field(default_factory=CatalystColumns)
    calls: int = 0

    def with_opaque(self, given: Data) -> Data:
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

    def train_on(
        self, given: Data, first: pa.Table, training: Training, *, one_route: bool
    ) -> Mesh:
        """Train on a first sample, and on larger ones of what was given if it is not accurate."""
        from querymesh.fabric.core.tables import make_tables
        from querymesh.fabric.profile.bounded_profile import called_by_users
        from querymesh.fabric.profile.calibrate import calibrate
        from querymesh.fabric.profile.profiler import profile_sample
        from querymesh.optimize.train.judge import train_until_accurate

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
            self.calls += profile.rows * len(called_by_users(bound))
            # No kinds are told apart by what Catalyst computes: it is no column of the source.
            own = bound.schemas[bound.source.alias].names
            profile = replace(profile, sample=profile.sample.select(own))
            if session is None or profile.rows == 0:
                return profile
            drop_us, pass_us = native_costs_us(session, profile, bound)
            return replace(profile, drop_us=drop_us, pass_us=pass_us)

        return train_until_accurate(bound.query, take, overheads, training, one_route=one_route)

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


def native_costs_us(
    spark: SparkSession, profile: Profile, bound: BoundQuery
) -> tuple[Floats, Floats]:
    """Microseconds a row of each operator, on rows it drops and on rows it lets through.

    What cannot be timed in Catalyst costs what the profile says it costs in Arrow.
    """
    filters = [operator for operator in bound.operators if isinstance(operator, Filter)]
    conditions = [native_sql(operator.expr) for operator in filters]
    read = {column.name for operator in filters for column in columns_of(operator.expr)}
    sample = profile.sample.select([name for name in profile.sample.column_names if name in read])
    passes = profile.outcomes > 0
    timed = condition_costs_by_outcome_us(spark, sample, conditions, passes)
    if timed is None:
        return profile.drop_us, profile.pass_us
    drop_us, pass_us = timed
    return (
        np.where(np.isnan(drop_us), profile.drop_us, drop_us),
        np.where(np.isnan(pass_us), profile.pass_us, pass_us),
    )
