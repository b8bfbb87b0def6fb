"""Samples of several streams for training a join: the same stretch of time of each."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from querymesh.arrays import Ints
from querymesh.errors import TrainingError, did_you_mean
from querymesh.query.join import JoinQuery
from querymesh.query.render import quoted_name
from querymesh.spark.context import job_description
from querymesh.spark.inputs import Data
from querymesh.spark.sample import whole_table
from querymesh.spark.schema import conform

log = logging.getLogger("querymesh")

STRETCH = 20
"""So many rows at least are looked at for each one that is profiled: its partners must be there."""

MOST_STRETCH = 500_000
"""And so many at most, where windows are longer than those rows last."""

FULL = 1.5
"""So many of the longest windows are wanted, so that a third of the stretch sees full ones."""


def stretch_of_time(join: JoinQuery, data: Mapping[str, Data], rows: int) -> dict[str, pa.Table]:
    """The earliest arrivals of all streams together, by stream: `rows` of them, or as many more as
    it takes for windows to fill, up to `MOST_STRETCH`; with those of the same time as the last.

    Rows taken by chance from each stream would hardly find their partners. Those from before all
    streams have begun meet only a part of them, so the stretch begins a window before that. Without
    a time column the first rows of each stream are taken.
    """
    for alias in join.aliases:
        given = data[alias]
        if isinstance(given, DataFrame) and given.isStreaming:
            raise TrainingError(
                f"{alias} is a stream, which has no sample before it runs: give batch DataFrames "
                "or Arrow tables, or run the query untrained and it learns from its first batches"
            )
    stretch = _stretch(join, data, rows)
    if stretch is not None and stretch[1] - stretch[0] < join.longest_us:
        log.warning(
            "the %s rows to learn from last %g seconds, and the longest window %g: there will be "
            "more matches than in the sample",
            f"{MOST_STRETCH:,}", (stretch[1] - stretch[0]) / 1e6, join.longest_us / 1e6,
        )  # fmt: skip
    found = {}
    for alias in join.aliases:
        given, time = data[alias], join.times.get(alias)
        if time is None:
            given = given.limit(rows) if isinstance(given, DataFrame) else given.slice(0, rows)
        elif stretch is not None:
            begin, end = (_instant(join, alias, us) for us in stretch)
            given = _within(given, time, begin, end, MOST_STRETCH)
        found[alias] = conform(whole_table(given, alias), join.schemas[alias])
    return found


def _stretch(join: JoinQuery, data: Mapping[str, Data], rows: int) -> tuple[int, int] | None:
    """The first and the last microsecond of the stretch; None where all rows are taken."""
    most = max(rows, MOST_STRETCH)
    times = {alias: _earliest(data[alias], time, most) for alias, time in join.times.items()}
    if sum(map(len, times.values())) <= rows:
        return None
    firsts = {alias: int(found[0]) for alias, found in times.items() if len(found)}
    begin = max(min(firsts.values()), max(firsts.values()) - join.longest_us)
    for alias, first in firsts.items():
        if first < begin:
            since = _instant(join, alias, begin)
            times[alias] = _earliest(data[alias], join.times[alias], most, since)
    together = np.sort(np.concatenate(list(times.values())))
    until_full = int(np.searchsorted(together, begin + FULL * join.longest_us, side="right"))
    taken = min(max(rows, until_full), most, len(together))
    return begin, int(together[taken - 1])


def _earliest(given: Data, time: str, rows: int, begin: pa.Scalar | None = None) -> Ints:
    """The earliest times of a stream, from some time on, in order: `rows` of them at most."""
    if isinstance(given, DataFrame):
        found = given.select(F.col(quoted_name(time)).alias("time")).where("time IS NOT NULL")
        if begin is not None:
            found = found.where(F.col("time") >= _literal(begin))
        with job_description(given.sparkSession, f"QueryMesh: the earliest {rows:,} times"):
            times = found.orderBy("time").limit(rows).toArrow().column("time")
    else:
        times = given.column(time).drop_null()
        if begin is not None:
            times = times.filter(pc.greater_equal(times, begin))
    us = times.cast(pa.timestamp("us", times.type.tz), safe=False).cast(pa.int64())
    return np.sort(np.asarray(us, np.int64))[:rows]


def _instant(join: JoinQuery, alias: str, us: int) -> pa.Scalar:
    """Microseconds as a value of a stream's time column."""
    zone = join.schemas[alias].field(join.times[alias]).type.tz
    return pa.scalar(us, pa.timestamp("us", zone))


def _literal(instant: pa.Scalar) -> SparkColumn:
    """An instant for Spark; one without a zone must not be read in the zone of this process."""
    moment = instant.as_py()
    if moment.tzinfo is None:
        return F.lit(moment.isoformat(sep=" ")).cast("timestamp_ntz")
    return F.lit(moment)


def _within(given: Data, time: str, begin: pa.Scalar, end: pa.Scalar, rows: int) -> Data:
    """The rows of a stretch, in order; not all of them where very many have one time."""
    if isinstance(given, DataFrame):
        column = F.col(quoted_name(time))
        between = column.between(_literal(begin), _literal(end))
        return given.where(between).orderBy(column).limit(rows)
    times = given.column(time)
    found = given.filter(pc.and_(pc.greater_equal(times, begin), pc.less_equal(times, end)))
    return found.sort_by(time).slice(0, rows)


def join_sample(join: JoinQuery, given: object) -> dict[str, Data] | None:
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
