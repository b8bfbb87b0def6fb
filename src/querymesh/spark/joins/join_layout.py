"""What the streams of a join send to its shards: the columns that are read, and their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from querymesh.classify.tree import attributes_of
from querymesh.mesh.hypercube import Hypercube
from querymesh.mesh.mesh import Mesh
from querymesh.query.expr import Column
from querymesh.query.join import JoinQuery
from querymesh.query.render import quoted_name, spark_sql
from querymesh.query.types import Kind, kind_of
from querymesh.runtime.task.slots import NOW, PLACE, SlotMap
from querymesh.spark.joins.layout import StreamInput, shard_layout
from querymesh.spark.joins.numbered import numbered


def columns_to_send(
    join: JoinQuery, meshes: Mapping[str, Mesh], whole_rows: bool
) -> dict[str, list[str]]:
    """By stream the columns that anything reads, or with `whole_rows` all: what is yet to be
    learned may ask about any."""
    found = {}
    for alias in join.aliases:
        read = set(join.columns_sent(alias))
        for label, mesh in meshes.items():
            if join.of_view(label)[1] == alias:
                read |= set(attributes_of(mesh.tree))
        found[alias] = [n for n in join.schemas[alias].names if whole_rows or n in read]
    return found


def join_layout(
    join: JoinQuery,
    frames: Mapping[str, DataFrame],
    sent: Mapping[str, Sequence[str]],
    cube: Hypercube,
) -> tuple[DataFrame, SlotMap]:
    """These columns of all streams as one DataFrame by shard, and how a task reads it."""
    streaming = next(iter(frames.values())).isStreaming
    inputs = []
    for alias in join.aliases:
        frame, columns = frames[alias], list(sent[alias])
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
    laid, slots = shard_layout(
        inputs,
        cube,
        drop_null_keys=not join.counts_rows and not join.codes_may_be_of_null,
        sort_by_time=not streaming and bool(join.times),
        sort_by_place=not streaming and join.counts_rows,
    )
    return (laid.withColumn(NOW, F.current_timestamp()) if streaming else laid), slots


_SPARK_TYPE = {Kind.INTEGER: "bigint", Kind.FLOAT: "double"}


def _key_sql(join: JoinQuery, number: int, alias: str) -> str:
    """A key as Spark SQL, in the type its class is compared in."""
    each = join.classes[number]
    text = spark_sql(each.members[alias], column=_unqualified)
    kind = _SPARK_TYPE.get(kind_of(each.dtype))
    return f"CAST({text} AS {kind})" if kind else text


def _unqualified(column: Column) -> str:
    return quoted_name(column.name)
