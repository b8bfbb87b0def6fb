"""Training a join: profile a stretch of its streams, and search a mesh for each stream."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import SparkSession

from querymesh.fabric.core.tables import one_batch
from querymesh.fabric.join.join_fabric import static_stems
from querymesh.fabric.profile.calibrate_join import overheads_for
from querymesh.fabric.profile.join_profile import SampledJoin, written_mesh
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.routes.index_ties import with_fewer_indices
from querymesh.optimize.shards.join_shards import join_cube, shard_count
from querymesh.optimize.train.judge import train_until_accurate
from querymesh.optimize.train.training import Training
from querymesh.query.join import JoinQuery
from querymesh.spark.inputs import Data
from querymesh.spark.joins.join_sample import STRETCH, stretch_of_time
from querymesh.spark.sample import whole_table
from querymesh.spark.schema import conform
from querymesh.stats.profile import Profile


def train_join(
    join: JoinQuery,
    data: Mapping[str, Data],
    policy: str,
    on_error: str,
    training: Training,
) -> JoinMesh:
    """A mesh for the tuples of each stream, learned from the earliest arrivals of all of them."""
    rows = STRETCH * training.sample_rows
    sample = stretch_of_time(join, data, rows)
    statics = static_stems(join, static_inputs(join, data), on_error)
    timed = {alias: timed_batch(join, alias, table) for alias, table in sample.items()}
    sampled = SampledJoin(join, timed, statics, on_error)
    meshes: dict[str, Mesh] = {}
    profiles: dict[str, Profile] = {}
    for alias, view in join.views.items():

        def take(rows: int, seed: int, alias: str = alias) -> Profile:
            profile = sampled.profile(alias, rows, seed)
            if profile.rows == 0:
                raise _NothingToProfile
            profiles[alias] = profile
            return profile

        meshes[alias] = written_mesh(view)
        overheads = overheads_for(view, training.window)
        if len(view.operators) >= 2:
            with suppress(_NothingToProfile):
                meshes[alias] = train_until_accurate(view.query, take, overheads, training, policy)
    rates = {alias: float(batch.num_rows) for alias, batch in timed.items()}
    session = SparkSession.getActiveSession()
    cores = session.sparkContext.defaultParallelism if session is not None else 1
    cube = join_cube(join, shard_count(join, None, cores), rates)
    return JoinMesh(join.query, with_fewer_indices(join, meshes, profiles), rates, cube)


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


def written_join_mesh(join: JoinQuery) -> JoinMesh:
    """The order as written for every stream, until something is known."""
    return JoinMesh(join.query, {alias: written_mesh(view) for alias, view in join.views.items()})


def timed_batch(join: JoinQuery, alias: str, table: pa.Table) -> pa.RecordBatch:
    """The rows of a sample that have a time, if its stream has."""
    batch = one_batch(table)
    if alias not in join.times:
        return batch
    return batch.filter(batch.column(join.times[alias]).is_valid())
