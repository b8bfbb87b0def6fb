"""Running a join of windowed streams: one shuffle to a hypercube's shards, one task each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from querymesh.errors import MeshFileError, SchemaError
from querymesh.mesh.fit import check_fits
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.shards.join_shards import join_cube, shard_count
from querymesh.policies.policy import Following, Job
from querymesh.query.join import JoinQuery
from querymesh.runtime.channel import Channel
from querymesh.runtime.job_functions import JobFunctions
from querymesh.runtime.loops.index_loop import IndexLoop
from querymesh.runtime.run import Run
from querymesh.runtime.task.index_source import IndexSource
from querymesh.runtime.task.join_task import JoinTask
from querymesh.runtime.task.shard_files import Storing
from querymesh.runtime.task.slots import SlotMap
from querymesh.runtime.view import View
from querymesh.spark.conditions.around import Around
from querymesh.spark.context import SentTables, driver_host, on_one_machine, parallelism, task_place
from querymesh.spark.inputs import Data
from querymesh.spark.joins.join_layout import columns_to_send, join_layout
from querymesh.spark.joins.join_sample import join_sample
from querymesh.spark.joins.join_train import JoinData, static_inputs
from querymesh.spark.joins.stored_join import claim_state
from querymesh.spark.options import RunOptions
from querymesh.spark.remembered import remember
from querymesh.spark.reporting import reports_to
from querymesh.spark.schema import WATERMARK, output_struct
from querymesh.spark.workers.task_edge import at_the_edge, tells_plainly
from querymesh.spark.workers.worker_python import check_workers


@tells_plainly
def run_join(
    join: JoinQuery,
    data: Mapping[str, Data],
    mesh: Mesh | JoinMesh | None,
    options: RunOptions,
    around: Around | None = None,
) -> DataFrame:
    """The join as a DataFrame, streaming if its streams are.

    `around` is what Spark has done with the streams below, and does with samples of them too.
    """
    frames = stream_frames(join, data)
    job = join_job(join, data, frames, mesh, options, around)
    if options.engine == "native":
        from querymesh.spark.joins.tree_run import run_tree

        return run_tree(job, data, options)
    # A result's times may be older than its inputs' watermarks say: they hold for it no longer.
    struct = output_struct(join.views[join.aliases[0]], data, leave_out=[WATERMARK])
    return begin_run(job, data, frames, options, struct)


def begin_run(
    job: Job,
    data: Mapping[str, Data],
    frames: Mapping[str, DataFrame],
    options: RunOptions,
    struct: StructType,
) -> DataFrame:
    """A join that is about to run as a DataFrame of the given schema, on its states."""
    assert job.join is not None
    join = job.join
    check_workers(next(iter(frames.values())).sparkSession)
    functions = JobFunctions(join.query.functions, options.budget)
    beginning = options.policy.begin(job)
    shards = shard_count(join, options.shards, job.tasks)
    cube, storing = join_cube(join, shards, beginning.rates), None
    if job.streaming:
        storing, cube = claim_state(join, options, cube)
    views = {a: View(a, view, beginning.meshes[a]) for a, view in join.views.items()}
    run = Run(join.query, options.policy.name, "join", views, cube, beginning.rates)
    run.functions = functions
    indices = _index_source(options, job.streaming)
    index_loop = IndexLoop(join, indices)
    index_loop.open()
    following = beginning.follow(run)
    run.loops.append(index_loop)
    sent = columns_to_send(join, beginning.meshes, following.whole_rows)
    laid, slots = join_layout(join, frames, sent, cube)
    task = _task(job, data, frames, run, following, slots, storing, indices)

    def results(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return at_the_edge(task.run(batches, task_place()))

    out = laid.mapInArrow(results, struct)
    remember(out, run)
    return out


def join_job(
    join: JoinQuery,
    data: Mapping[str, Data],
    frames: Mapping[str, DataFrame],
    mesh: Mesh | JoinMesh | None,
    options: RunOptions,
    around: Around | None = None,
) -> Job:
    """The join on its data, about to run."""
    first = next(iter(frames.values()))
    sample = join_sample(join, options.sample)
    if sample is not None and around is not None:
        sample = {alias: around.input(alias, given) for alias, given in sample.items()}
    streams = JoinData(join, data, sample, options.on_error)
    given = given_mesh(mesh, join)
    return Job(
        name=uuid4().hex,
        views=join.views,
        join=join,
        streaming=first.isStreaming,
        trainer=streams,
        streams=streams,
        given={} if given is None else given.meshes,
        rates={} if given is None else given.rates,
        sampled=sample is not None,
        checkpoint=options.checkpoint,
        one_machine=on_one_machine(first.sparkSession),
        tasks=parallelism(first.sparkSession),
        on_error=options.on_error,
    )


def _task(
    job: Job,
    data: Mapping[str, Data],
    frames: Mapping[str, DataFrame],
    run: Run,
    following: Following,
    slots: SlotMap,
    storing: Storing | None,
    indices: IndexSource,
) -> JoinTask:
    assert job.join is not None
    assert run.cube is not None
    assert run.functions is not None
    session = next(iter(frames.values())).sparkSession
    reports = reports_to(session, job.name, run, keep=job.streaming)
    tables = SentTables(session, static_inputs(job.join, data))
    sample = following.planner_sample if job.streaming else None
    functions = run.functions.begin(driver_host(session), streaming=job.streaming)
    return JoinTask(
        job.name, job.join, following.sources, slots, run.cube, reports, tables,
        job.on_error, storing, indices, sample, functions,
    )  # fmt: skip


def _index_source(options: RunOptions, streaming: bool) -> IndexSource:
    """How states are indexed; on a stream the plans go through a folder beside the states."""
    index, channel = options.index, None
    if streaming and index.chooses and options.checkpoint is not None:
        channel = Channel(f"{options.checkpoint.rstrip('/')}/querymesh/index-{index.kind}")
    return IndexSource(index.kind, index.indexing, channel)


def stream_frames(join: JoinQuery, data: Mapping[str, Data]) -> dict[str, DataFrame]:
    """The windowed streams by alias, all of them streaming or none."""
    frames: dict[str, DataFrame] = {}
    for stream in join.streams:
        given = data[stream.alias]
        if not isinstance(given, DataFrame):
            raise SchemaError(
                f"{stream.name} is a windowed stream and must be a Spark DataFrame, not "
                f"{type(given).__name__}: spark.createDataFrame(table) makes one"
            )
        frames[stream.alias] = given
    kinds = {alias: frame.isStreaming for alias, frame in frames.items()}
    if len(set(kinds.values())) > 1:
        batch = ", ".join(alias for alias, streams in kinds.items() if not streams)
        raise SchemaError(
            f"{batch} is a batch DataFrame, but the other windowed streams are streaming: read all "
            "of them by readStream, or leave the window off a table that does not change"
        )
    return frames


def given_mesh(mesh: Mesh | JoinMesh | None, join: JoinQuery) -> JoinMesh | None:
    """The mesh that was given, if it was one and is of this join."""
    if mesh is None:
        return None
    if isinstance(mesh, Mesh):
        raise MeshFileError(
            f"the mesh is of one stream, but this query joins {', '.join(join.aliases)}: train it "
            "with qm.train(query, sample={...})"
        )
    if set(mesh.meshes) != set(join.aliases):
        raise MeshFileError(
            f"the mesh is of the streams {', '.join(mesh.meshes)}, but the query joins "
            f"{', '.join(join.aliases)}: train it again"
        )
    for alias in join.aliases:
        check_fits(mesh.meshes[alias], join.views[alias])
    return mesh
