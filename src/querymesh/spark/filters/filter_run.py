"""Running a query over one source: in Catalyst's generated code, or on the fabric in tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.classify.tree import classifiers_of
from querymesh.errors import OptionError, SchemaError, UnsupportedError
from querymesh.mesh.fit import check_fits
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.training import Training
from querymesh.policies.policy import Beginning, Job, Policy
from querymesh.query.model import BoundQuery
from querymesh.runtime.job_functions import JobFunctions
from querymesh.runtime.run import Run
from querymesh.runtime.task.filter_task import FilterTask
from querymesh.runtime.view import View
from querymesh.spark.context import SentTables, driver_host, on_one_machine, parallelism, task_place
from querymesh.spark.filters.filter_job import FilterJob
from querymesh.spark.filters.gates import ColumnGates
from querymesh.spark.filters.learning.prepared import PreparedTrainer, learning_of
from querymesh.spark.filters.learning.proxies import learn_proxies
from querymesh.spark.filters.native import (
    CatalystColumns,
    run_native,
    run_plainly,
    why_not_native,
)
from querymesh.spark.filters.pushed import left_to_spark
from querymesh.spark.filters.staged import (
    columns_to_send,
    gated,
    must_travel_whole,
    staged_filter,
    tellable,
)
from querymesh.spark.inputs import Data
from querymesh.spark.options import FilterOptions
from querymesh.spark.prices.price_loop import PriceLoop
from querymesh.spark.remembered import remember
from querymesh.spark.reporting import reports_to
from querymesh.spark.schema import conform, output_struct
from querymesh.spark.workers.task_edge import at_the_edge, tells_plainly
from querymesh.spark.workers.worker_python import check_workers


@tells_plainly
def run_filter(
    bound: BoundQuery,
    data: Mapping[str, Data],
    mesh: Mesh | JoinMesh | None,
    options: FilterOptions,
    columns: CatalystColumns | None = None,
) -> DataFrame:
    """The query as a DataFrame, streaming if its source is.

    `columns` are how Catalyst evaluates the parts of the query that only it can.
    """
    columns = columns or CatalystColumns()
    whole = _source(bound, data)
    given = _given(bound, mesh, options)
    if isinstance(options.sample, pa.Table):
        conform(options.sample, bound.schemas[bound.source.alias])
    streaming = whole.isStreaming
    suited = engine_for(options.engine, bound, options.policy, streaming)
    if options.engine == "auto" and any(any(classifiers_of(m.tree)) for m in given.values()):
        suited = "fabric"
    settle = streaming or not options.policy.can_be_written or options.engine == "fabric"
    left = left_to_spark(bound, columns, settle=settle)
    if given and not _fits(given, left.bound):
        left = replace(left, bound=bound)
    given = {alias: check_fits(each, left.bound) for alias, each in given.items()}
    bound = left.bound
    alias, session = bound.source.alias, whole.sparkSession
    staged = not settle and options.engine == "auto"
    staged = staged and (not bound.operators or not must_travel_whole(bound))
    tables = {other: each for other, each in data.items() if other != alias}
    filtering = FilterJob(
        whole, left, columns, options.sample, options.on_error,
        engine="auto" if staged else suited, named=options.engine != "auto", data=tables,
        budget=options.budget,
    )  # fmt: skip
    functions = JobFunctions(bound.query.functions, options.budget)
    trainer = PreparedTrainer(filtering)
    job = Job(
        name=uuid4().hex,
        views={alias: bound},
        join=None,
        streaming=streaming,
        trainer=trainer,
        given=given,
        sampled=options.sample is not None,
        checkpoint=options.checkpoint,
        one_machine=on_one_machine(session),
        tasks=parallelism(session) if streaming else 1,
        on_error=options.on_error,
    )
    beginning = options.policy.begin(job)
    mesh = beginning.meshes[alias]
    engine = _settled(options, suited, mesh, job)
    plainly = trainer.preparation is not None and trainer.preparation.plainly
    if plainly:
        engine = "native"
    elif mesh.stages is not None:
        engine = "fabric" if mesh.stages.in_python(mesh) else "native"
    if engine == "fabric" and not streaming and any(f.proxy for f in functions.functions.values()):
        learn_proxies(learning_of(filtering, Training(), one_route=True), mesh)
    views = {alias: View(alias, bound, mesh)}
    run = Run(bound.query, options.policy.name, engine, views)
    run.functions = functions
    run.left_to_spark = left.names
    run.preparation = trainer.preparation
    if run.preparation is not None and run.preparation.priced is not None:
        run.loops.append(PriceLoop(session, alias, run.preparation.priced))
    if plainly:
        out = run_plainly(whole, bound, columns, left.below)
    elif engine == "native":
        out = run_native(whole, bound, mesh, columns, left.below)
    else:
        out = _on_fabric(filtering, data, job, beginning, run)
    remember(out, run)
    return out


def _on_fabric(
    filtering: FilterJob, data: Mapping[str, Data], job: Job, beginning: Beginning, run: Run
) -> DataFrame:
    """The query on Arrow tasks."""
    session = filtering.whole.sparkSession
    check_workers(session)
    view, functions = run.view, run.functions
    assert functions is not None
    following = beginning.follow(run)
    reports = reports_to(session, job.name, run, keep=job.streaming)
    tables = SentTables(session, filtering.tables)
    task = FilterTask(
        view.bound, following.sources[view.alias], reports, tables, job.on_error,
        functions=functions.begin(driver_host(session), streaming=job.streaming),
    )  # fmt: skip
    if not must_travel_whole(view.bound):
        extra = tellable(view.bound) if following.whole_rows else ()
        gates = None
        if following.telling is not None:
            gates = ColumnGates(session, gated(view.bound))
            following.telling.attach(gates.names, gates.open)
            task = replace(task, gated=gates.names)
        sent = columns_to_send(view.bound, view.mesh, filtering.columns, extra=extra, gates=gates)
        return staged_filter(filtering, task, sent, view.mesh)

    def results(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return at_the_edge(task.run(batches, task_place()))

    return filtering.source.mapInArrow(results, output_struct(view.bound, data))


def _fits(given: Mapping[str, Mesh], bound: BoundQuery) -> bool:
    """Whether a mesh is of the operators that remain once Spark has its part."""
    names = [operator.name for operator in bound.operators]
    return all([op.name for op in mesh.operators] == names for mesh in given.values())


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


def _settled(options: FilterOptions, suited: str, mesh: Mesh, job: Job) -> str:
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


def _given(
    bound: BoundQuery, mesh: Mesh | JoinMesh | None, options: FilterOptions
) -> dict[str, Mesh]:
    """The mesh that was given, if it is of this query."""
    if isinstance(mesh, JoinMesh) or isinstance(options.sample, Mapping):
        raise OptionError(
            f"{bound.source.name} is the only windowed stream of this query: its mesh and its "
            "sample are of one stream, not of several"
        )
    return {} if mesh is None else {bound.source.alias: mesh}
