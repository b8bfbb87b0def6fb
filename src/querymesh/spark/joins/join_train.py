"""What a join's streams tell before a run: trained meshes, a stored stretch, their sizes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.fabric.core.tables import one_batch
from querymesh.fabric.join.join_fabric import static_stems
from querymesh.fabric.profile.calibrate_join import overheads_for
from querymesh.fabric.profile.join_profile import SampledJoin
from querymesh.mesh.mesh import Mesh, written_mesh
from querymesh.optimize.routes.index_ties import with_fewer_indices
from querymesh.optimize.train.judge import train_until_accurate
from querymesh.optimize.train.learned_line import tell_join_learned
from querymesh.optimize.train.training import Training
from querymesh.query.join import JoinQuery
from querymesh.spark.context import job_description
from querymesh.spark.inputs import Data
from querymesh.spark.joins.join_sample import STRETCH, stretch_of_time
from querymesh.spark.joins.source_waiting import SparkSourceWatch, watch_sources
from querymesh.spark.sample import whole_table
from querymesh.spark.schema import conform
from querymesh.stats.profile import Profile

DOUBLINGS = 2
"""How often a profile is doubled while it leaves in doubt whether a mesh pays. The stretch that is
stored has rows for that, and a probe takes a tenth of a microsecond."""


@dataclass(frozen=True)
class JoinData:
    """The inputs of a join by alias; `sample` stands for some of them when it is learned from."""

    join: JoinQuery
    data: Mapping[str, Data]
    sample: Mapping[str, Data] | None
    on_error: str

    def train(
        self, training: Training, *, one_route: bool
    ) -> tuple[dict[str, Mesh], dict[str, float]]:
        """A mesh for the tuples of each stream, learned from the earliest arrivals of all."""
        started = perf_counter()
        sampled = self.sampled_join(training)
        meshes: dict[str, Mesh] = {}
        profiles: dict[str, Profile] = {}
        for alias, view in self.join.views.items():

            def take(rows: int, seed: int, alias: str = alias) -> Profile:
                profile = sampled.profile(alias, rows, seed)
                if profile.rows == 0:
                    raise _NothingToProfile
                profiles[alias] = profile
                return profile

            meshes[alias] = written_mesh(view)
            if len(view.operators) >= 2:
                overheads = overheads_for(view, training.window)
                with suppress(_NothingToProfile):
                    meshes[alias] = train_until_accurate(
                        view.query,
                        take,
                        overheads,
                        training,
                        one_route=one_route,
                        doublings=DOUBLINGS,
                    )
        rates = {alias: float(len(sampled.arrivals[alias])) for alias in self.join.aliases}
        found = with_fewer_indices(self.join, meshes, profiles)
        tell_join_learned(found, perf_counter() - started)
        return found, rates

    def sampled_join(self, training: Training) -> SampledJoin:
        """A stretch of all streams, stored."""
        data = {**self.data, **(self.sample or {})}
        sample = stretch_of_time(self.join, data, STRETCH * training.sample_rows)
        statics = static_stems(self.join, static_inputs(self.join, data), self.on_error)
        timed = {alias: timed_batch(self.join, alias, table) for alias, table in sample.items()}
        return SampledJoin(self.join, timed, statics, self.on_error)

    def stream_sizes(self) -> dict[str, int]:
        """How many rows each stream of a batch has."""
        given = {alias: self.data[alias] for alias in self.join.aliases}
        return {alias: _row_count(alias, each) for alias, each in given.items()}

    def watch_sources(self) -> SparkSourceWatch | None:
        """What tells how many rows wait at the sources of the streams."""
        given = {alias: self.data[alias] for alias in self.join.aliases}
        return watch_sources({a: each for a, each in given.items() if isinstance(each, DataFrame)})


def _row_count(alias: str, given: Data) -> int:
    if not isinstance(given, DataFrame):
        return int(given.num_rows)
    with job_description(given.sparkSession, f"QueryMesh: how many rows {alias} has"):
        return given.count()


class _NothingToProfile(Exception):  # noqa: N818
    """The sample has no row of a stream, or none that can be joined: its order stays as written."""


def static_inputs(join: JoinQuery, data: Mapping[str, Data]) -> dict[str, pa.Table]:
    """The static tables, whole, by alias; a table of several aliases is collected once."""
    collected: dict[int, pa.Table] = {}
    for relation in join.statics:
        given = data[relation.alias]
        if id(given) not in collected:
            table = whole_table(given, relation.alias)
            collected[id(given)] = conform(table, join.schemas[relation.alias])
    return {r.alias: collected[id(data[r.alias])] for r in join.statics}


def timed_batch(join: JoinQuery, alias: str, table: pa.Table) -> pa.RecordBatch:
    """The rows of a sample that have a time, if its stream has."""
    batch = one_batch(table)
    if alias not in join.times:
        return batch
    return batch.filter(batch.column(join.times[alias]).is_valid())
