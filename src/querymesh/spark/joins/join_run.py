"""Running a join of windowed streams: one shuffle to a hypercube's shards, one task each."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from querymesh.classify.tree import attributes_of
from querymesh.errors import MeshFileError, QueryMeshError, SchemaError, UnsupportedError
from querymesh.fabric.routers.make_eddy import CBR, EDDIES
from querymesh.fabric.routers.routing import Routing
from querymesh.index.tune.indexing import Indexing
from querymesh.mesh.fit import as_single, check_fits
from querymesh.mesh.hypercube import Hypercube
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.planning.planners import PLANNED, Aim
from querymesh.optimize.shards.join_shards import join_cube, shard_count
from querymesh.optimize.train.training import Training
from querymesh.query.expr import Column
from querymesh.query.join import JoinQuery
from querymesh.query.model import Query, Window
from querymesh.query.render import spark_sql
from querymesh.query.types import Kind, kind_of
from querymesh.runtime.channel import Channel, channel_folder
from querymesh.runtime.durations import microseconds_of
from querymesh.runtime.join_run import JoinRun
from querymesh.runtime.loops.index_tuning import IndexTuning
from querymesh.runtime.loops.learning import rows_to_learn_from, setting_for
from querymesh.runtime.reports import ReportParam, deliver_to, ipc_bytes
from querymesh.runtime.run import LiveRun, remember
from querymesh.runtime.state.ownership import claim, state_folder
from querymesh.runtime.storage import is_address
from querymesh.runtime.task.index_source import IndexSource
from querymesh.runtime.task.mesh_source import MeshSource, RouterSource
from querymesh.spark.eddy_run import join_eddies, written
from querymesh.spark.inputs import Data
from querymesh.spark.joins.join_task import NOW, JoinTask, Storing
from querymesh.spark.joins.join_train import static_inputs, train_join, written_join_mesh
from querymesh.spark.joins.layout import StreamInput, shard_layout
from querymesh.spark.joins.place import PLACE, numbered
from querymesh.spark.joins.planned_join import planned_join
from querymesh.spark.schema import WATERMARK, output_struct

log = logging.getLogger("querymesh")


@dataclass(frozen=True)
class JoinSettings:
    """How a join is to run; see `querymesh.run`."""

    policy: str
    checkpoint: str | None
    on_error: str
    sample: Mapping[str, Data] | None
    training: Training
    adaptation: Adaptation | None
    shards: int | None
    delay: str
    idle: str
    routing: Routing | None = None
    index: str = "hash"
    indexing: Indexing | None = None
    aim: Aim | None = None


def run_join(
    mesh_or_query: JoinMesh | Mesh | Query,
    join: JoinQuery,
    data: Mapping[str, Data],
    how: JoinSettings,
) -> DataFrame:
    """The join as a DataFrame, streaming if its streams are."""
    for name in ("delay", "idle"):
        microseconds_of(getattr(how, name), name)
    if how.checkpoint is not None:
        how = replace(how, checkpoint=_absolute(str(how.checkpoint)))
    frames = stream_frames(join, data)
    streaming = next(iter(frames.values())).isStreaming
    session = next(iter(frames.values())).sparkSession
    given = given_mesh(mesh_or_query, join)
    planner = planned_join(join, data, how) if how.policy in PLANNED else None
    mesh = _mesh(given, join, data, how, streaming) if planner is None else planner.mesh
    shards = shard_count(join, how.shards, session.sparkContext.defaultParallelism)
    cube, storing = join_cube(join, shards, mesh.rates), None
    if streaming:
        storing, cube = _claimed(join, how, cube)
    views = {alias: LiveRun(mesh.meshes[alias], "join", how.policy) for alias in join.aliases}
    indices = _index_source(how, streaming)
    tuning = IndexTuning(join, indices)
    for problem in tuning.open():
        log.warning("%s", problem)
    live = JoinRun(join, views, cube, mesh.rates, how.policy, tuning)
    name = uuid4().hex
    deliver_to(name, live, keep=streaming)
    context = session.sparkContext
    sources: Mapping[str, RouterSource]
    if how.policy in EDDIES:
        master = context.master if streaming else None
        routing = how.routing or Routing()
        sources = join_eddies(name, join, how.policy, routing, views, how.checkpoint, master)
        classifies = how.policy == CBR
    else:
        channels = _channels(join, views, given, how, context.master) if streaming else {}
        sources = _mesh_sources(name, mesh, how, channels, cube)
        if planner is not None:
            live.planner = planner.follow(views, channels, cube) if streaming else planner.planner
        for alias, channel in channels.items() if planner is None else ():
            run, view = views[alias], join.views[alias]
            if how.adaptation is not None or not run.mesh.is_learned:
                run.learn(setting_for(view, channel, run, how.training, how.adaptation))
        classifies = bool(channels) and how.policy == "mesh"
    laid, slots = shard_layout(
        _stream_inputs(join, frames, mesh, classifies),
        cube,
        drop_null_keys=not join.counts_rows,
        sort_by_time=not streaming and bool(join.times),
        sort_by_place=not streaming and join.counts_rows,
    )
    if streaming:
        laid = laid.withColumn(NOW, F.current_timestamp())
    tables = static_inputs(join, data)
    sent = {alias: context.broadcast(ipc_bytes(table)) for alias, table in tables.items()}
    reports = context.accumulator(None, ReportParam(name))
    task = JoinTask(
        name, join, sources, slots, cube, reports, sent, how.on_error, storing, indices,
        None if planner is None else planner.telling,
    )  # fmt: skip
    # A result's times may be older than its inputs' watermarks say: they hold for it no longer.
    struct = output_struct(join.views[join.aliases[0]], data, leave_out=[WATERMARK])
    out = laid.mapInArrow(task, struct)
    remember(out, live)
    return out


def _index_source(how: JoinSettings, streaming: bool) -> IndexSource:
    """How states are indexed; on a stream the plans go through a folder beside the states."""
    settings = how.indexing or Indexing()
    chooses = how.index != "hash" or settings.hashes is not None
    channel = None
    if streaming and chooses and how.checkpoint is not None:
        channel = Channel(f"{how.checkpoint.rstrip('/')}/querymesh/index-{how.index}")
    return IndexSource(how.index, settings, channel)


def _absolute(path: str) -> str:
    """Tasks need not run in the driver's directory."""
    return path if is_address(path) else os.path.abspath(path)


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


def given_mesh(mesh_or_query: JoinMesh | Mesh | Query, join: JoinQuery) -> JoinMesh | None:
    """The mesh that was given, if it was one and is of this join."""
    if isinstance(mesh_or_query, Query):
        return None
    if isinstance(mesh_or_query, Mesh):
        raise MeshFileError(
            f"the mesh is of one stream, but this query joins {', '.join(join.aliases)}: train it "
            "with qm.train(query, sample={...})"
        )
    if set(mesh_or_query.meshes) != set(join.aliases):
        raise MeshFileError(
            f"the mesh is of the streams {', '.join(mesh_or_query.meshes)}, but the query joins "
            f"{', '.join(join.aliases)}: train it again"
        )
    for alias in join.aliases:
        check_fits(mesh_or_query.meshes[alias], join.views[alias])
    return mesh_or_query


def _mesh_sources(
    name: str,
    mesh: JoinMesh,
    how: JoinSettings,
    channels: Mapping[str, Channel],
    cube: Hypercube,
) -> dict[str, MeshSource]:
    """Where the tasks find the mesh of each stream."""
    sources = {}
    for alias, started in mesh.meshes.items():
        learns = alias in channels and not started.is_learned
        rows = rows_to_learn_from(how.training, cube.shards) if learns else 0
        run = f"{name}/{alias}"
        sources[alias] = MeshSource(run, started, channels.get(alias), rows, how.training.seed)
    return sources


def _mesh(
    given: JoinMesh | None,
    join: JoinQuery,
    data: Mapping[str, Data],
    how: JoinSettings,
    streaming: bool,
) -> JoinMesh:
    if how.policy in EDDIES:
        meshes = {alias: written(view, how.policy) for alias, view in join.views.items()}
        rates = {} if given is None else given.rates
        return JoinMesh(join.query, meshes, rates)
    if given is not None:
        if how.policy != "single":
            return given
        return replace(given, meshes={a: as_single(mesh) for a, mesh in given.meshes.items()})
    if how.sample is not None:
        return train_join(join, {**data, **how.sample}, how.policy, how.on_error, how.training)
    if streaming:
        return written_join_mesh(join)
    return train_join(join, data, how.policy, how.on_error, how.training)


def _claimed(join: JoinQuery, how: JoinSettings, cube: Hypercube) -> tuple[Storing, Hypercube]:
    """The folder of the state, claimed for this query; the cube is that of the first run."""
    if how.checkpoint is None:
        raise QueryMeshError(
            "a streaming join keeps its state under the query's checkpoint: give checkpoint=, the "
            "directory you also give to writeStream as checkpointLocation"
        )
    folder = state_folder(str(how.checkpoint))
    description = {
        "the query": _spaced_once(join.query.sql),
        "the time column": str(join.query.time),
    }
    for stream in join.streams:
        description[f"the window of {stream.alias}"] = _window_text(stream.window)
    for alias, schema in join.schemas.items():
        fields = ", ".join(f"{field.name} {field.type}" for field in schema)
        description[f"the columns of {alias}"] = fields
    description["shards"] = str(cube.shards)
    description["shares"] = json.dumps(list(cube.shares))
    adopt = ["shares"] if how.shards is not None else ["shards", "shares"]
    stored = claim(folder, description, adopt=adopt, checkpoint=str(how.checkpoint))
    shares = tuple(json.loads(stored["shares"]))
    cube = Hypercube(cube.dimensions, shares, int(stored["shards"]))
    delay_us = microseconds_of(how.delay, "delay")
    idle_us = microseconds_of(how.idle, "idle")
    return Storing(folder, str(how.checkpoint), delay_us, idle_us), cube


def _spaced_once(sql: str) -> str:
    """The text with one space for any white space that is not in quotes."""
    parts = re.split(r"""('(?:[^'\\]|\\.)*'|"[^"]*"|`[^`]*`)""", sql.strip())
    return "".join(p if k % 2 else re.sub(r"\s+", " ", p) for k, p in enumerate(parts))


def _window_text(window: Window | None) -> str:
    if window is None:
        return "none"
    if window.kind == "rows":
        return f"[ROWS {window.size}]"
    seconds, rest = divmod(window.size, 1_000_000)
    return f"[RANGE {window.size} MICROSECONDS]" if rest else f"[RANGE {seconds} SECONDS]"


def _channels(
    join: JoinQuery,
    views: Mapping[str, LiveRun],
    given: JoinMesh | None,
    how: JoinSettings,
    master: str,
) -> dict[str, Channel]:
    """A channel for each stream whose mesh is learned or adapts, open."""
    channels = {}
    for alias, live in views.items():
        view = join.views[alias]
        learns = not live.mesh.is_learned
        if len(view.operators) < 2 or (not learns and how.adaptation is None):
            continue
        mesh = given.meshes[alias] if given is not None else None
        folder = channel_folder(view, f"{how.policy} {alias}", mesh, how.checkpoint, master)
        channel = Channel(folder)
        try:
            if learned := channel.open():
                read = channel.read(learned, join.query)
                live.versions.append((learned, check_fits(read, view)))
        except MeshFileError as problem:
            log.warning("the stream starts with the mesh it was given: %s", problem)
        except OSError as problem:
            raise UnsupportedError(
                f"meshes cannot be kept under the checkpoint {how.checkpoint} ({problem}): give a "
                "folder that driver and executors can write to"
            ) from problem
        channels[alias] = channel
    return channels


def _stream_inputs(
    join: JoinQuery, frames: Mapping[str, DataFrame], mesh: JoinMesh, classifies: bool
) -> list[StreamInput]:
    """What is sent of each stream: the columns anything reads, and those its classifier may ask."""
    inputs = []
    for alias in join.aliases:
        frame = frames[alias]
        asked = set(attributes_of(mesh.meshes[alias].tree)) | set(join.columns_sent(alias))
        columns = [n for n in join.schemas[alias].names if classifies or n in asked]
        if join.counts_rows:
            frame = numbered(frame)
            columns = [*columns, PLACE]
        keys = {
            each.name: _key_sql(join, each.number, alias)
            for each in join.classes
            if alias in each.members and each.in_catalyst
        }
        place = PLACE if join.counts_rows else None
        inputs.append(StreamInput(alias, frame, columns, keys, join.times.get(alias), place))
    return inputs


_SPARK_TYPE = {Kind.INTEGER: "bigint", Kind.FLOAT: "double"}


def _key_sql(join: JoinQuery, number: int, alias: str) -> str:
    """A key as Spark SQL, in the type its class is compared in."""
    each = join.classes[number]
    text = spark_sql(each.members[alias], column=_quoted)
    kind = _SPARK_TYPE.get(kind_of(each.dtype))
    return f"CAST({text} AS {kind})" if kind else text


def _quoted(column: Column) -> str:
    return f"`{column.name.replace('`', '``')}`"
