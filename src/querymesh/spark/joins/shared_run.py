"""Joins of windowed streams that share one pass (QM § 5.2): one shuffle, one state a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.errors import UnsupportedError
from querymesh.fabric.core.operators import UserCalls
from querymesh.fabric.join.admission import Admission
from querymesh.fabric.join.join_fabric import static_stems
from querymesh.fabric.profile.join_profile import SampledJoin
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.training import Training
from querymesh.query.shared_join import SharedJoin
from querymesh.spark.inputs import Data
from querymesh.spark.joins.join_run import begin_run, join_job, stream_frames
from querymesh.spark.joins.join_sample import STRETCH, stretch_of_time
from querymesh.spark.joins.join_train import JoinData, static_inputs, timed_batch
from querymesh.spark.options import RunOptions
from querymesh.spark.remembered import inspect
from querymesh.spark.schema import WATERMARK, struct_of_parts
from querymesh.spark.workers.task_edge import tells_plainly


@tells_plainly
def run_shared_joins(
    shared: SharedJoin, data: Mapping[str, Data], options: RunOptions
) -> DataFrame:
    """The results of all joins as one DataFrame, each row with the number of its query."""
    frames = stream_frames(shared, data)
    job = join_job(shared, data, frames, None, options)
    assert isinstance(job.trainer, JoinData)
    trainer = SharedJoinData(shared, data, job.trainer.sample, options.on_error)
    options = replace(options, shards=_shards(shared, options.shards))
    struct = struct_of_parts(shared.parts, data, leave_out=[WATERMARK])
    out = begin_run(replace(job, trainer=trainer), data, frames, options, struct)
    inspect(out).sharing = tuple(shared.sharing)
    return out


def _shards(shared: SharedJoin, asked: int | None) -> int | None:
    """One shard, where no key and no stream is in all the joins."""
    if shared.spread or any(len(each.members) > 1 for each in shared.classes):
        return asked
    if asked not in (None, 1):
        raise UnsupportedError(
            f"these queries have no stream in common by which all of them can be spread over "
            f"{asked} shards: leave shards= out, or run them apart"
        )
    return 1


@dataclass(frozen=True)
class SharedJoinData(JoinData):
    """The inputs of joins that share one pass, to learn a mesh for each view of them."""

    join: SharedJoin

    def train(
        self, training: Training, *, one_route: bool
    ) -> tuple[dict[str, Mesh], dict[str, float]]:
        """Meshes by the label of a view, group by group, from one stretch of all streams."""
        data = {**self.data, **(self.sample or {})}
        tables = stretch_of_time(self.join, data, STRETCH * training.sample_rows)
        batches = {a: timed_batch(self.join, a, table) for a, table in tables.items()}
        calls = UserCalls(self.join.query.functions, self.on_error)
        masks = {a: Admission(self.join, a, calls).mask(batch) for a, batch in batches.items()}
        meshes: dict[str, Mesh] = {}
        rates = {alias: float(batch.num_rows) for alias, batch in batches.items()}
        for number, group in enumerate(self.join.groups):
            theirs = {
                alias: batches[alias].filter(pa.array(masks[alias] & group.mask != 0))
                for alias in group.alone.aliases
            }
            sampled = _GroupData(group.alone, data, None, self.on_error, theirs)
            learned, _ = sampled.train(training, one_route=one_route)
            meshes |= {self.join.label(number, alias): mesh for alias, mesh in learned.items()}
        return meshes, rates


@dataclass(frozen=True)
class _GroupData(JoinData):
    """A sample of the streams of one group: the tuples that are for one of its queries."""

    batches: Mapping[str, pa.RecordBatch]

    def sampled_join(self, training: Training) -> SampledJoin:
        """The sample, stored."""
        statics = static_stems(self.join, static_inputs(self.join, self.data), self.on_error)
        return SampledJoin(self.join, self.batches, statics, self.on_error)
