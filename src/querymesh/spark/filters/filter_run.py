"""Running a query over one source: in Catalyst's generated code, or on the fabric in tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.errors import OptionError, SchemaError, UnsupportedError
from querymesh.mesh.fit import check_fits
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh
from querymesh.policies.policy import Beginning, Job, Policy
from querymesh.query.model import BoundQuery
from querymesh.runtime.run import Run
from querymesh.runtime.task.filter_task import FilterTask
from querymesh.runtime.view import View
from querymesh.spark.context import SentTables, on_one_machine, parallelism, task_place
from querymesh.spark.filters.filter_train import FilterTrainer
from querymesh.spark.filters.native import run_native, why_not_native
from querymesh.spark.filters.wide_rows import columns_to_send, filter_by
from querymesh.spark.inputs import Data, static_tables
from querymesh.spark.options import RunOptions
from querymesh.spark.remembered import remember
from querymesh.spark.reporting import reports_to
from querymesh.spark.schema import output_struct
from querymesh.spark.workers.task_edge import at_the_edge, tells_plainly
from querymesh.spark.workers.worker_python import check_workers


@tells_plainly
def run_filter(
    bound: BoundQuery,
    data: Mapping[str, Data],
    mesh: Mesh | JoinMesh | None,
    options: RunOptions,
) -> DataFrame:
    """The query as a DataFrame, streaming if its source is."""
    options.refuse_join_options()
    source = _source(bound, data)
    given = _given(bound, mesh, options)
    suited = engine_for(options.engine, bound, options.policy, source.isStreaming)
    alias, session = bound.source.alias, source.sparkSession
    job = Job(
        name=uuid4().hex,
        views={alias: bound},
        join=None,
        streaming=source.isStreaming,
        trainer=FilterTrainer(bound, data, options.sample, options.on_error, suited),
        given=given,
        sampled=options.sample is not None,
        checkpoint=options.checkpoint,
        one_machine=on_one_machine(session),
        tasks=parallelism(session),
        on_error=options.on_error,
    )
    beginning = options.policy.begin(job)
    engine = _settled(options, suited, beginning.meshes[alias], job)
    views = {alias: View(alias, bound, beginning.meshes[alias])}
    run = Run(bound.query, options.policy.name, engine, views)
    if engine == "native":
        out = run_native(source, bound, beginning.meshes[alias])
    else:
        out = _on_fabric(source, data, job, beginning, run)
    remember(out, run)
    return out


def _on_fabric(
    source: DataFrame,
    data: Mapping[str, Data],
    job: Job,
    beginning: Beginning,
    run: Run,
) -> DataFrame:
    """The query on Arrow tasks."""
    check_workers(source.sparkSession)
    view = run.view
    following = beginning.follow(run)
    reports = reports_to(source.sparkSession, job.name, run, keep=job.streaming)
    tables = SentTables(source.sparkSession, static_tables(view.bound, data))
    task = FilterTask(view.bound, following.sources[view.alias], reports, tables, job.on_error)
    if not following.whole_rows and (names := columns_to_send(view.bound, view.mesh)) is not None:
        return filter_by(source, task, names)

    def results(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return at_the_edge(task.run(batches, task_place()))

    return source.mapInArrow(results, output_struct(view.bound, data))


def engine_for(asked: str, bound: BoundQuery, policy: Policy, streaming: bool) -> str:
    """The engine asked for; for "auto" native where nothing needs Python, or must change."""
    problem = why_not_native(bound)
    if asked == "native" and problem is not None:
        raise UnsupportedError(
            f"engine 'native' runs SQL filters only, and {problem}: use engine='fabric' or 'auto'"
        )
    if asked != "auto":
        return asked
    native = problem is None and policy.can_be_written and not (streaming and policy.must_adapt)
    return "native" if native else "fabric"


def _settled(options: RunOptions, suited: str, mesh: Mesh, job: Job) -> str:
    """The engine, now that it is known what the run starts with: what is learned while it runs
    cannot be written into the plan."""
    changes = not mesh.is_learned or options.policy.must_adapt
    if not job.streaming or suited != "native" or not changes:
        return suited
    if options.engine == "auto":
        return "fabric"
    if mesh.is_learned:
        raise UnsupportedError(
            "engine 'native' writes the mesh into the plan, where it cannot adapt: leave out "
            "adapt=, or use engine='fabric' or 'auto'"
        )
    if len(mesh.operators) > 1:
        raise UnsupportedError(
            "engine 'native' writes the mesh into the plan, and an untrained stream has none yet: "
            "train first, or use engine='fabric' or 'auto'"
        )
    return suited


def _source(bound: BoundQuery, data: Mapping[str, Data]) -> DataFrame:
    source = data[bound.source.alias]
    if not isinstance(source, DataFrame):
        raise SchemaError(
            f"{bound.source.name} is the source and must be a Spark DataFrame, not "
            f"{type(source).__name__}: spark.createDataFrame(table) makes one"
        )
    return source


def _given(bound: BoundQuery, mesh: Mesh | JoinMesh | None, options: RunOptions) -> dict[str, Mesh]:
    """The mesh that was given, if it is of this query."""
    if isinstance(mesh, JoinMesh) or isinstance(options.sample, Mapping):
        raise OptionError(
            f"{bound.source.name} is the only windowed stream of this query: its mesh and its "
            "sample are of one stream, not of several"
        )
    return {} if mesh is None else {bound.source.alias: check_fits(mesh, bound)}
