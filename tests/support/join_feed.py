"""Streams of files for joins, run to their end, and DuckDB's answers to them."""

import os
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import querymesh as qm

PAIR = (
    "SELECT a.id AS a, b.id AS b FROM A a [RANGE 5 SECONDS], B b [RANGE 5 SECONDS] WHERE a.k = b.k"
)
EPOCH_US = 1_700_000_000_000_000
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), *((name, pa.int64()) for name in ("id", "k", "x", "y"))]
)


def rows_at(*seconds, k=1, first_id=0, x=0, y=0) -> pa.Table:
    """Rows at these seconds, in this order; no time where there is None."""
    times = [None if s is None else EPOCH_US + round(s * 1e6) for s in seconds]
    count = len(seconds)
    ids = range(first_id, first_id + count)
    columns = [pa.array(times, SCHEMA.field("ts").type), pa.array(ids)]
    return pa.Table.from_arrays(
        [*columns, *(pa.array([value] * count, pa.int64()) for value in (k, x, y))], schema=SCHEMA
    )


def random_rows(rng, count: int, seconds: float, start: float = 0.0, first_id: int = 0) -> pa.Table:
    """Rows in the order of their times."""
    times = np.sort(rng.integers(round(start * 1e6), round((start + seconds) * 1e6), count))
    return pa.table(
        {
            "ts": pa.array(EPOCH_US + times, SCHEMA.field("ts").type),
            "id": np.arange(first_id, first_id + count),
            **{name: rng.integers(0, 6, count) for name in "kxy"},
        }
    )


class Feed:
    """Streams from files, one of each in every micro-batch; an empty one leaves a stream silent."""

    def __init__(self, spark, folder: Path, names: str) -> None:
        self.spark, self.folder, self.names = spark, folder, names
        self.batches = 0
        self.schema = spark.createDataFrame(SCHEMA.empty_table()).schema
        for name in names:
            (folder / name).mkdir(parents=True)

    def add(self, **tables: pa.Table) -> None:
        """The rows of one more micro-batch, by stream."""
        for name in self.names:
            path = self.folder / name / f"{self.batches:03d}.parquet"
            pq.write_table(tables.get(name, SCHEMA.empty_table()), path)
            os.utime(path, (1_000_000_000 + self.batches,) * 2)
        self.batches += 1

    def streams(self) -> dict:
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return {name: reader.parquet(str(self.folder / name)) for name in self.names}

    def registered(self) -> duckdb.DuckDBPyConnection:
        """DuckDB with the whole data."""
        oracle = duckdb.connect()
        oracle.execute("SET TimeZone = 'UTC'; SET threads = 1")
        for name in self.names:
            oracle.register(name, pq.read_table(self.folder / name))
        return oracle


class Ran:
    """A run to the end of the files."""

    def __init__(self, feed: Feed, sql: str, checkpoint: Path, sink=None, **how) -> None:
        how = {"shards": 2, "watermark": "0 seconds", **how}
        asked = qm.query(sql, time="ts", functions=how.pop("functions", None))
        self.out = qm.run(asked, feed.streams(), checkpoint=str(checkpoint), **how)
        self.live = qm.inspect(self.out)
        self.tables: dict[int, pa.Table] = {}
        self.sink = sink
        self.query = to_end(self.out.writeStream.foreachBatch(self._keep), checkpoint)

    def _keep(self, batch, number) -> None:
        self.tables[number] = batch.toArrow()
        if self.sink is not None:
            self.sink(number, self.live)

    @property
    def rows(self) -> Counter:
        together = pa.concat_tables(self.tables.values())
        return Counter(zip(*(column.to_pylist() for column in together.columns), strict=True))

    @property
    def horizons_s(self) -> list[float]:
        """Those of the second batch and later: the first has none."""
        first, *later = [batch.horizon_us for batch in self.live.batches]
        assert first is None
        return [(horizon_us - EPOCH_US) / 1e6 for horizon_us in later]


def to_end(writer, checkpoint: Path):
    running = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    running = running.start()
    try:
        assert running.awaitTermination(240)
    finally:
        running.stop()
    return running


def query_of(sql: str = PAIR, **how) -> qm.Query:
    return qm.query(sql, time="ts", **how)


def pairs_of(feed: Feed, window_s: float = 5) -> Counter:
    """DuckDB's answer to PAIR."""
    found = feed.registered().sql(
        "SELECT a.id, b.id FROM A a, B b WHERE a.k = b.k AND "
        f"abs(epoch_us(a.ts) - epoch_us(b.ts)) <= {round(window_s * 1e6)}"
    )
    return Counter(found.fetchall())
