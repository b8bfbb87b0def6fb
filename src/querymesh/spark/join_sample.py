"""Samples of several streams for training a join: the same stretch of time of each."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from querymesh.errors import TrainingError, did_you_mean
from querymesh.query.join import JoinQuery
from querymesh.spark.sample import whole_table
from querymesh.spark.schema import conform

STRETCH = 20
"""So many rows are looked at for each one that is profiled: its partners must be there."""


def stretch_of_time(
    join: JoinQuery, data: Mapping[str, DataFrame | pa.Table], rows: int
) -> dict[str, pa.Table]:
    """The earliest `rows` arrivals of all streams together, by stream.

    Rows taken by chance from each stream would hardly find their partners. Without a time column
    the first rows of each stream are taken.
    """
    for alias in join.aliases:
        given = data[alias]
        if isinstance(given, DataFrame) and given.isStreaming:
            raise TrainingError(
                f"{alias} is a stream, which has no sample before it runs: give batch DataFrames "
                "or Arrow tables, or run the query untrained and it learns from its first batches"
            )
    found = {}
    end = _end(join, data, rows)
    for alias in join.aliases:
        given, time = data[alias], join.times.get(alias)
        if isinstance(given, DataFrame):
            if time is not None and end is not None:
                given = given.where(F.col(f"`{time}`") <= F.lit(end))
            elif time is None:
                given = given.limit(rows)
            table = whole_table(given, alias)
        elif time is not None and end is not None:
            table = given.filter(pc.less_equal(given.column(time), pa.scalar(end)))
        else:
            table = given.slice(0, rows)
        found[alias] = conform(table, join.schemas[alias])
    return found


def _end(join: JoinQuery, data: Mapping[str, DataFrame | pa.Table], rows: int) -> object:
    """The time of the last of the earliest `rows` arrivals; None where all are taken."""
    times = []
    for alias, time in join.times.items():
        given = data[alias]
        if isinstance(given, DataFrame):
            earliest = given.select(F.col(f"`{time}`").alias("time")).where("time IS NOT NULL")
            table = earliest.orderBy("time").limit(rows).toArrow()
            times.append(table.column("time").cast(join.schemas[alias].field(time).type))
        else:
            times.append(given.column(time).drop_null())
    if not times or sum(map(len, times)) <= rows:
        return None
    chunks = [chunk.cast(times[0].type) for column in times for chunk in column.chunks]
    together = pc.sort_indices(pa.chunked_array(chunks))
    return pa.chunked_array(chunks).take(together[:rows])[-1].as_py()


def join_sample(join: JoinQuery, given: object) -> dict[str, DataFrame | pa.Table] | None:
    """The samples of the streams by alias, as `run` was given them by relation name."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise TrainingError(
            f"the query joins {', '.join(s.name for s in join.streams)}: give sample= as a dict "
            "with a DataFrame or an Arrow table for each"
        )
    by_name = {str(name).lower(): data for name, data in given.items()}
    found = {}
    for stream in join.streams:
        if stream.name.lower() not in by_name:
            raise TrainingError(
                f"sample= has nothing for {stream.name}: {did_you_mean(stream.name, given)}"
            )
        found[stream.alias] = by_name[stream.name.lower()]
    return found
