"""Spark's own part of our join: the same streaming job, but nobody joins.

Sources, layout, shuffle, shards, Arrow batches to Python and the sink are those of our join; the
Python function takes the batches in and gives none out. No streaming job that hands its rows to
Python can cost less, so our join is judged by what it costs above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import querymesh as qm
from querymesh.optimize.shards.join_shards import join_cube
from querymesh.query.join import JoinQuery
from querymesh.spark.inputs import bind_inputs
from querymesh.spark.joins.join_layout import join_layout
from querymesh.spark.joins.join_run import stream_frames
from querymesh.spark.schema import WATERMARK, output_struct
from querymesh_lab.bench.joins.join_case import CORES, JoinCase, Outcome, window_sql
from querymesh_lab.bench.joins.on_spark.replay import StreamFrames, replay


def floor_contestant(session: SparkSession, case: JoinCase) -> Outcome:
    """The case without its join: rows travel to Python and no further."""

    def carried(streams: StreamFrames, _: Path) -> DataFrame:
        given = bind_inputs(qm.query(window_sql(case.design), time="ts"), dict(streams))
        join = given.bound
        assert isinstance(join, JoinQuery)
        sent = {alias: join.columns_sent(alias) for alias in join.aliases}
        frames = stream_frames(join, given.data)
        laid, _slots = join_layout(join, frames, sent, join_cube(join, CORES, {}))
        struct = output_struct(join.views[join.aliases[0]], given.data, leave_out=[WATERMARK])
        return laid.mapInArrow(taken_in, struct)

    return replay(session, case, carried)


def taken_in(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take all batches in and give none out."""
    for _ in batches:
        pass
    return
    yield
