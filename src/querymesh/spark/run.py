"""Running: DataFrame in, DataFrame out, batch or streaming, on the engine that suits the query."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import overload
from uuid import uuid4

from pyspark.sql import DataFrame

from querymesh.cost.utility import Weights
from querymesh.errors import QueryMeshError, SchemaError, UnsupportedError
from querymesh.fabric.routers.make_eddy import EDDIES
from querymesh.fabric.routers.routing import Routing
from querymesh.index.tune.indexing import INDEXES, Indexing
from querymesh.mesh.fit import as_single, check_fits
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh, SharedMesh, written_order
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.chart.charting import Charting
from querymesh.optimize.planning.planners import PLANNED, aim_for
from querymesh.optimize.rate.goals import Goal
from querymesh.optimize.train.train import POLICIES
from querymesh.optimize.train.training import Training
from querymesh.options import check_name
from querymesh.query.bind.share import SharedQuery
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery, Query
from querymesh.runtime.channel import Channel, channel_folder
from querymesh.runtime.durations import microseconds_of
from querymesh.runtime.loops.learning import rows_to_learn_from, setting_for
from querymesh.runtime.reports import ReportParam, deliver_to
from querymesh.runtime.run import LiveRun, metrics, remember
from querymesh.runtime.task.mesh_source import MeshSource
from querymesh.spark.aggregate import aggregated
from querymesh.spark.eddy_run import check_policy, run_eddy
from querymesh.spark.filters.fabric_task import FabricTask
from querymesh.spark.filters.filter_task import columns_to_send, filter_by
from querymesh.spark.filters.native import run_native
from querymesh.spark.inputs import Data, Inputs, bind_inputs, bind_shared, sent_tables
from querymesh.spark.joins.join_run import JoinSettings, run_join
from querymesh.spark.joins.join_sample import join_sample
from querymesh.spark.joins.tree_run import run_tree
from querymesh.spark.results import Results
from querymesh.spark.schema import output_struct
from querymesh.spark.train import ENGINES, engine_for, train_or_written

log = logging.getLogger("querymesh")

ON_ERROR = ("raise", "drop")
AUTO, AUTO_IS = "auto", "mesh"
"""Policy "auto" is the mesh, which no other is ahead of in the table of `querymesh bench goals`,
under any of its goals. Who has a goal of RBO or weights of OM asks for their policies."""


@overload
def run(
    mesh_or_query: Mesh | JoinMesh | Query,
    inputs: DataFrame | Inputs,
    *,
    policy: str = ...,
    engine: str = ...,
    index: str = ...,
    shards: int | None = ...,
    checkpoint: str | None = ...,
    delay: str = ...,
    idle: str = ...,
    on_error: str = ...,
    sample: Data | Inputs | None = ...,
    training: Training | None = ...,
    adapt: bool | Adaptation = ...,
    routing: Routing | None = ...,
    indexing: Indexing | None = ...,
    goal: Goal | None = ...,
    weights: Weights | Sequence[float] | None = ...,
    charting: Charting | None = ...,
) -> DataFrame: ...


@overload
def run(
    mesh_or_query: Sequence[Query],
    inputs: DataFrame | Inputs,
    *,
    policy: str = ...,
    engine: str = ...,
    checkpoint: str | None = ...,
    on_error: str = ...,
    sample: Data | None = ...,
    training: Training | None = ...,
    adapt: bool | Adaptation = ...,
) -> Results: ...


def run(
    mesh_or_query: Mesh | JoinMesh | Query | Sequence[Query],
    inputs: DataFrame | Inputs,
    *,
    policy: str = "mesh",
    engine: str = "auto",
    index: str = "hash",
    shards: int | None = None,
    checkpoint: str | None = None,
    delay: str = "10 seconds",
    idle: str = "10 minutes",
    on_error: str = "raise",
    sample: Data | Inputs | None = None,
    training: Training | None = None,
    adapt: bool | Adaptation = True,
    routing: Routing | None = None,
    indexing: Indexing | None = None,
    goal: Goal | None = None,
    weights: Weights | Sequence[float] | None = None,
    charting: Charting | None = None,
) -> DataFrame | Results:
    """Run a query on Spark; the result is a DataFrame, streaming if the source is.

    A list of queries over the same source shares one pass (QM § 5.2): what several of them ask is
    evaluated once a tuple, and the result is a DataFrame for each, as `Results`.

    A mesh runs as it is. A query without one is trained first: on a uniform sample of a batch
    source (one scan; or give `sample=`), on the first batches of a stream, which starts with the
    order as written and switches without a restart. `policy` is "mesh", or "single" for the best
    single order; "auto" is the one that measured best, which is "mesh".
    `checkpoint` is the directory you also give to `writeStream`.

    Policies "eddy" and "cbr" need no training: each tuple's next operator is decided while it runs,
    by the operators' overall selectivities, or by the tuple's content (CBR). `routing` has their
    settings; `metrics(out).router.explain()` tells what they have learned. A mesh gives its query.

    Policies "rate" and "chart" plan joins of windowed streams, from one micro-batch to the next.
    "rate" goes by output rates (RBO): `goal` is `MostBy(seconds)`, `First(results)` or `Last()`
    (see docs/rates.md); with engine="native" it runs as a tree of Spark's own joins, which stays.
    "chart" goes by output rate and memory (OM), which `weights` weigh against each other;
    `charting` has all settings (see docs/charts.md). `metrics(out).planner.explain()` tells what
    they know and chose.

    A stream on the fabric adapts (QM § 5.3): as its data changes, so does its mesh, between batches
    and without a restart; `metrics(out).switches` tells when and why. An `Adaptation` says how
    eagerly, `adapt=False` turns it off. On the native engine, which "auto" takes for a trained mesh
    of SQL filters, the mesh is written into the plan and stays: choose engine="fabric", or give an
    `Adaptation`, to have it adapt.

    A query over two or more windowed streams is a join on as many `shards` (unless told, Spark's
    default parallelism; on an old checkpoint, those it has), whose states are kept under
    `checkpoint`. Tuples that come more than `delay` behind their streams are dropped and counted;
    a stream silent for longer than `idle` does not hold the others' state (see docs/joins.md).
    `index` is how states are searched: "hash", "bitmap", "amri" or "auto" (see docs/indices.md);
    `indexing` has the settings. `sample` then has a table for each stream.
    """
    check_name("policy", policy, (AUTO, *POLICIES, *EDDIES, *PLANNED))
    policy = AUTO_IS if policy == AUTO else policy
    aim = aim_for(policy, goal, weights, charting)
    check_name("engine", engine, ENGINES)
    check_name("on_error", on_error, ON_ERROR)
    check_name("index", index, INDEXES)
    if indexing is not None and not isinstance(indexing, Indexing):
        raise QueryMeshError(f"indexing is a querymesh.Indexing, not {type(indexing).__name__}")
    check_policy(policy, engine, routing, adapt, sample)
    bound: BoundQuery | JoinQuery
    if isinstance(mesh_or_query, str):
        raise QueryMeshError('a query is given as qm.query("SELECT ..."), not as bare text')
    if isinstance(mesh_or_query, SharedMesh):
        raise UnsupportedError(
            "this mesh is of several queries in one pass: run the list of them, which learns it"
        )
    if isinstance(mesh_or_query, Mesh | JoinMesh | Query):
        query = mesh_or_query if isinstance(mesh_or_query, Query) else mesh_or_query.query
        bound, data = bind_inputs(query, inputs)
    else:
        queries = tuple(mesh_or_query)
        if any(isinstance(q, Query) and q.aggregate is not None for q in queries):
            raise UnsupportedError(
                "queries that share one pass are not aggregated: run the one that aggregates by "
                "itself, or aggregate the DataFrames that come out"
            )
        if policy in (*EDDIES, *PLANNED):
            raise UnsupportedError(
                f"policy {policy!r} is for one query, not for several that share one pass: run "
                "each by itself, or use policy='mesh'"
            )
        bound, data = bind_shared(queries, inputs)
    training = training or Training()
    if isinstance(bound, JoinQuery):
        assert isinstance(mesh_or_query, Mesh | JoinMesh | Query)
        if engine == "native" and policy != "rate":
            raise UnsupportedError(
                "a join of windowed streams runs on states of its own: use engine='auto'; or "
                "policy='rate', which can run it as a tree of Spark's own joins"
            )
        how = JoinSettings(
            policy, checkpoint, on_error, join_sample(bound, sample), training, _adaptation(adapt),
            shards, delay, idle, routing, index, indexing, aim,
        )  # fmt: skip
        if engine == "native":
            return _on_top(run_tree(mesh_or_query, bound, data, how), query, None)
        return _on_top(run_join(mesh_or_query, bound, data, how), query, _behind(bound, delay))
    if index != "hash" or indexing is not None:
        raise QueryMeshError(
            "index= and indexing= are of the states of a join, and this query joins no windowed "
            "streams: leave them out"
        )
    if isinstance(mesh_or_query, JoinMesh) or isinstance(sample, Mapping):
        raise QueryMeshError(
            f"{bound.source.name} is the only windowed stream of this query: its mesh and its "
            "sample are of one stream, not of several"
        )
    if policy in PLANNED:
        raise UnsupportedError(
            f"policy {policy!r} plans joins of windowed streams, and this query joins none: of "
            "filters and look-ups, the order with the least work gives the most results in any "
            "time and keeps nothing, and that is policy='single'"
        )
    source = data[bound.source.alias]
    if not isinstance(source, DataFrame):
        raise SchemaError(
            f"{bound.source.name} is the source and must be a Spark DataFrame, not "
            f"{type(source).__name__}: spark.createDataFrame(table) makes one"
        )
    adaptation = _adaptation(adapt)
    late = f"{microseconds_of(delay, 'delay')} microseconds"
    if policy in EDDIES:
        if isinstance(mesh_or_query, Mesh):
            check_fits(mesh_or_query, bound)
        out, live = run_eddy(
            source, data, bound, policy, routing or Routing(), checkpoint, on_error
        )
        remember(out, live)
        return _on_top(out, bound.query, late)
    suited = engine_for(engine, bound)
    if isinstance(adapt, Adaptation):
        if not source.isStreaming:
            log.warning("adapt= is for streams: a batch keeps the mesh its sample gave it")
        elif engine == "auto":
            suited = "fabric"  # before training, which times operators where they will run
    if isinstance(mesh_or_query, Mesh):
        mesh = check_fits(mesh_or_query, bound)
        mesh = as_single(mesh) if policy == "single" else mesh
    elif source.isStreaming and sample is None:
        names = tuple(operator.name for operator in bound.operators)
        mesh = written_order(bound.query, names, bound.precedence)
    else:
        mesh = train_or_written(bound, data, sample, policy, on_error, training, suited)
    if source.isStreaming and (not mesh.is_learned or isinstance(adapt, Adaptation)):
        if engine == "auto":
            suited = "fabric"  # what is learned while it runs cannot be written into the plan
        elif suited == "native" and mesh.is_learned:
            raise UnsupportedError(
                "engine 'native' writes the mesh into the plan, where it cannot adapt: leave out "
                "adapt=, or use engine='fabric' or 'auto'"
            )
    live = LiveRun(mesh, suited, policy)
    if suited == "native":
        if source.isStreaming and not mesh.is_learned and len(bound.operators) > 1:
            raise UnsupportedError(
                "engine 'native' writes the mesh into the plan, and an untrained stream has none "
                "yet: train first, or use engine='fabric' or 'auto'"
            )
        out = run_native(source, bound, mesh)
    else:
        channel = None
        if source.isStreaming and len(bound.operators) > 1:
            given = mesh_or_query if isinstance(mesh_or_query, Mesh) else None
            channel = _channel(source, bound, live, given, checkpoint, adapt)
        out = _run_fabric(source, data, bound, live, channel, on_error, training, adaptation)
    remember(out, live)
    if not isinstance(bound, SharedQuery):
        return _on_top(out, bound.query, late)
    results = Results(out, len(bound.parts))
    for each in (results, *results):
        remember(each, live)
    return results


def _behind(join: JoinQuery, delay: str) -> str | None:
    """How far a time in a join's results may lie behind the newest of them; None if any far.

    A result's member may be as old as its own window, and the horizon as far behind the newest
    result as the longest window of the others.
    """
    if join.counts_rows:
        return None
    longest = max(s.window.size for s in join.streams if s.window is not None)
    return f"{microseconds_of(delay, 'delay') + 2 * longest} microseconds"


def _on_top(out: DataFrame, query: Query, delay: str | None) -> DataFrame:
    """What comes out, grouped and aggregated by Spark if the query asks for it."""
    if query.aggregate is None:
        return out
    grouped = aggregated(out, query.aggregate, delay=delay)
    remember(grouped, metrics(out))
    return grouped


def _adaptation(adapt: bool | Adaptation) -> Adaptation | None:
    if not isinstance(adapt, bool | Adaptation):
        raise QueryMeshError(
            f"adapt is True, False or a querymesh.Adaptation, not {type(adapt).__name__}"
        )
    if isinstance(adapt, Adaptation):
        return adapt
    return Adaptation() if adapt else None


def _run_fabric(
    source: DataFrame,
    data: Mapping[str, Data],
    bound: BoundQuery,
    live: LiveRun,
    channel: Channel | None,
    on_error: str,
    training: Training,
    adaptation: Adaptation | None,
) -> DataFrame:
    context = source.sparkSession.sparkContext
    run_name = uuid4().hex
    deliver_to(run_name, live, keep=source.isStreaming)
    sent = sent_tables(context, bound, data)
    learns = channel is not None and not live.mesh.is_learned
    mesh_source = MeshSource(
        run_name,
        live.mesh,
        channel,
        rows_to_learn_from(training, context.defaultParallelism) if learns else 0,
        training.seed,
    )
    reports = context.accumulator(None, ReportParam(run_name))
    task = FabricTask(bound, mesh_source, reports, sent, on_error)
    if channel is not None:
        if adaptation is not None or learns:
            live.learn(setting_for(bound, channel, live, training, adaptation))
    elif (needed := columns_to_send(bound, live.mesh)) is not None:
        return filter_by(source, task, needed)
    return source.mapInArrow(task, output_struct(bound, data))


def _channel(
    source: DataFrame,
    bound: BoundQuery,
    live: LiveRun,
    given: Mesh | None,
    checkpoint: str | None,
    adapt: bool | Adaptation,
) -> Channel | None:
    """The channel of a stream that learns or adapts, open; None where the mesh stays as it is.

    What an earlier run learned is taken up here. A trained mesh runs without a channel too, so a
    stream adapts by default only where there is a folder for one.
    """
    learns = not live.mesh.is_learned
    if not learns and adapt is False:
        return None
    master = source.sparkSession.sparkContext.master
    try:
        channel = Channel(channel_folder(bound, live.policy, given, checkpoint, master))
        if learned := channel.open():
            live.versions.append((learned, check_fits(channel.read(learned, bound.query), bound)))
    except (QueryMeshError, OSError) as problem:
        if learns or isinstance(adapt, Adaptation):
            if isinstance(problem, QueryMeshError):
                raise
            raise UnsupportedError(
                f"meshes cannot be kept under the checkpoint {checkpoint} ({problem}): give a "
                "folder that driver and executors can write to"
            ) from problem
        log.warning("the stream keeps its mesh and does not adapt: %s", problem)
        return None
    return channel
