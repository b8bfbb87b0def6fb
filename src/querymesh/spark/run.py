"""Running: DataFrame in, DataFrame out, batch or streaming, on the engine that suits the query."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.classify.tree import Leaf
from querymesh.errors import MeshFileError, QueryMeshError, SchemaError, UnsupportedError, did_you_mean
from querymesh.fabric.calibrate import WINDOW, calibrate
from querymesh.fabric.profiler import profile_sample
from querymesh.fabric.tables import make_tables
from querymesh.optimize.mesh import LeafStats, Mesh
from querymesh.optimize.train import POLICIES, Training, known_name, train_mesh, untrained_mesh
from querymesh.query.model import BoundQuery, Query
from querymesh.spark.channel import Channel
from querymesh.spark.live import LiveRun, remember
from querymesh.spark.native import run_native, why_not_native
from querymesh.spark.reports import ReportParam, deliver_to
from querymesh.spark.sample import take_sample, whole_table
from querymesh.spark.schema import arrow_schema, conform, output_struct
from querymesh.spark.task import FabricTask

Data = DataFrame | pa.Table
Inputs = Mapping[str, Data]

ENGINES = ("auto", "native", "fabric")
ON_ERROR = ("raise", "drop")


def train(
    query: Query,
    sample: Data | Inputs,
    *,
    seed: int = 0,
    policy: str = "mesh",
    on_error: str = "raise",
    training: Training | None = None,
) -> Mesh:
    """Learn a mesh for a query from a sample of its source, and its look-up tables whole.

    `sample` has a DataFrame or Arrow table for each relation of the query; for a query of one
    relation the bare table will do. A larger source is sampled down to `training.sample_rows`.
    """
    training = replace(training or Training(), seed=seed)
    inputs = _inputs(query, sample)
    bound = query.bind({name: arrow_schema(data) for name, data in inputs.items()})
    return _train(bound, _by_alias(bound, inputs), policy, on_error, training)


def run(
    mesh_or_query: Mesh | Query,
    inputs: DataFrame | Inputs,
    *,
    policy: str = "mesh",
    engine: str = "auto",
    checkpoint: str | None = None,
    on_error: str = "raise",
    sample: Data | None = None,
    training: Training | None = None,
) -> DataFrame:
    """Run a query on Spark; the result is a DataFrame, streaming if the source is.

    A mesh runs as it is. A query without one is trained first: on a uniform sample of a batch
    source (one scan; or give `sample=`), on the first batches of a stream, which starts with the
    order as written and switches without a restart. `policy` is "mesh", or "single" for the best
    single order. `checkpoint` is the directory you also give to `writeStream`.
    """
    known_name("policy", policy, POLICIES)
    known_name("engine", engine, ENGINES)
    known_name("on_error", on_error, ON_ERROR)
    query = mesh_or_query.query if isinstance(mesh_or_query, Mesh) else mesh_or_query
    given = _inputs(query, inputs)
    bound = query.bind({name: arrow_schema(data) for name, data in given.items()})
    data = _by_alias(bound, given)
    source = data[bound.source.alias]
    if not isinstance(source, DataFrame):
        raise SchemaError(
            f"{bound.source.name} is the source and must be a Spark DataFrame, not "
            f"{type(source).__name__}: spark.createDataFrame(table) makes one"
        )
    training = training or Training()
    if isinstance(mesh_or_query, Mesh):
        mesh = _fitting(mesh_or_query, bound)
        mesh = as_single(mesh) if policy == "single" else mesh
    elif source.isStreaming and sample is None:
        names = tuple(operator.name for operator in bound.operators)
        mesh = untrained_mesh(query, names, bound.precedence)
    else:
        from_data = data if sample is None else {**data, bound.source.alias: sample}
        mesh = _train_or_written(bound, from_data, policy, on_error, training)
    if engine == "auto":
        trained = mesh.sample_rows > 0 or not source.isStreaming
        engine = "native" if trained and why_not_native(bound) is None else "fabric"
    live = LiveRun(mesh, engine, policy)
    if engine == "native":
        if source.isStreaming and mesh.sample_rows == 0 and len(bound.operators) > 1:
            raise UnsupportedError(
                "engine 'native' writes the mesh into the plan, and an untrained stream has none "
                "yet: train first, or use engine='fabric' or 'auto'"
            )
        out = run_native(source, bound, mesh)
    else:
        out = _run_fabric(source, data, bound, live, checkpoint, on_error, training)
    remember(out, live)
    return out


def _inputs(query: Query, given: Data | Inputs) -> dict[str, Data]:
    """The inputs by relation name as FROM spells it."""
    names = list(dict.fromkeys(relation.name for relation in query.relations))
    if not isinstance(given, Mapping):
        if len(names) > 1:
            raise SchemaError(
                f"the query reads {', '.join(names)}: give a dict with a DataFrame for each"
            )
        return {names[0]: given}
    by_lower = {str(name).lower(): data for name, data in given.items()}
    for name in names:
        if name.lower() not in by_lower:
            raise SchemaError(f"no input for relation {name!r}: {did_you_mean(name, given)}")
    known = {name.lower() for name in names}
    for name in given:
        if str(name).lower() not in known:
            raise SchemaError(f"the query has no relation {name!r}: {did_you_mean(name, names)}")
    return {name: by_lower[name.lower()] for name in names}


def _by_alias(bound: BoundQuery, inputs: Mapping[str, Data]) -> dict[str, Data]:
    return {relation.alias: inputs[relation.name] for relation in bound.query.relations}


def _train(
    bound: BoundQuery, data: Mapping[str, Data], policy: str, on_error: str, training: Training
) -> Mesh:
    alias = bound.source.alias
    sample = take_sample(data[alias], training.sample_rows, training.seed)
    static = _static_tables(bound, data)
    profile = profile_sample(
        bound, conform(sample, bound.schemas[alias]), make_tables(bound, static), on_error
    )
    return train_mesh(bound.query, profile, calibrate(WINDOW), training, policy)


def _train_or_written(
    bound: BoundQuery, data: Mapping[str, Data], policy: str, on_error: str, training: Training
) -> Mesh:
    """Train; an empty DataFrame has nothing to learn from, and the written order will do for it."""
    names = tuple(operator.name for operator in bound.operators)
    if not names:
        return untrained_mesh(bound.query, names, bound.precedence)
    sample = take_sample(data[bound.source.alias], training.sample_rows, training.seed)
    if sample.num_rows == 0:
        return untrained_mesh(bound.query, names, bound.precedence)
    return _train(bound, {**data, bound.source.alias: sample}, policy, on_error, training)


def _static_tables(bound: BoundQuery, data: Mapping[str, Data]) -> dict[str, pa.Table]:
    return {
        alias: conform(whole_table(data[alias], alias), bound.schemas[alias])
        for alias in data
        if alias != bound.source.alias
    }


def _fitting(mesh: Mesh, bound: BoundQuery) -> Mesh:
    """A mesh is of one query: its operators must be those the query has on this data."""
    names = [operator.name for operator in bound.operators]
    trained = [operator.name for operator in mesh.operators]
    if names != trained:
        raise MeshFileError(
            f"the mesh was trained for the operators {trained}, but on these inputs the query has "
            f"{names}: train it again"
        )
    return mesh


def as_single(mesh: Mesh) -> Mesh:
    """The mesh's best single route as a mesh of its own."""
    leaf = LeafStats(1.0, mesh.single_us, mesh.single_us)
    return replace(
        mesh,
        tree=Leaf(0),
        routes=(mesh.single,),
        leaves=(leaf,),
        expected_us=mesh.single_us,
        why="policy single was asked for",
    )


def _run_fabric(
    source: DataFrame,
    data: Mapping[str, Data],
    bound: BoundQuery,
    live: LiveRun,
    checkpoint: str | None,
    on_error: str,
    training: Training,
) -> DataFrame:
    context = source.sparkSession.sparkContext
    run_name = uuid4().hex
    deliver_to(run_name, live, keep=source.isStreaming)
    sent = {
        alias: context.broadcast(_ipc(table))
        for alias, table in _static_tables(bound, data).items()
    }
    task = FabricTask(
        bound,
        live.mesh,
        context.accumulator(None, ReportParam(run_name)),
        sent,
        on_error,
        seed=training.seed,
        name=run_name,
    )
    if source.isStreaming and live.mesh.sample_rows == 0 and len(bound.operators) > 1:
        task.channel = Channel(_channel_folder(bound, live.policy, checkpoint, context.master))
        learned = task.channel.newest()
        if learned:
            live.versions.append((learned, task.channel.read(learned, bound.query.functions)))
        else:
            task.learn_rows = max(1, training.sample_rows // (2 * context.defaultParallelism))
            live.learn(task.channel, calibrate(WINDOW), training)
    return source.mapInArrow(task, output_struct(bound, data))


def _channel_folder(
    bound: BoundQuery, policy: str, checkpoint: str | None, master: str
) -> str:
    """Where this query's meshes are; another query or policy on the same checkpoint has another."""
    if checkpoint is not None:
        names = [operator.name for operator in bound.operators]
        asked = hashlib.sha256(repr((bound.query.sql, names, policy)).encode()).hexdigest()
        return f"{str(checkpoint).rstrip('/')}/querymesh/mesh-{asked[:16]}"
    if master.startswith("local"):
        return tempfile.mkdtemp(prefix="querymesh-mesh-")
    raise QueryMeshError(
        "an untrained stream on a cluster hands its mesh to the tasks through a shared folder: "
        "give checkpoint=, the directory you also give to writeStream"
    )


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
