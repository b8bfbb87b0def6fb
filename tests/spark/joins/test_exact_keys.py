"""Decimal keys beyond 2^53 and times without a zone, in windows and look-ups on Spark."""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import querymesh as qm
from join_feed import to_end
from oracle import duckdb_connection

EPOCH_US = 1_710_054_000_000_000  # an hour before New York's clocks skip one
BIG = 2**53
SQL = (
    "SELECT a.id AS a, b.id AS b FROM A a [RANGE 5 SECONDS], B b [RANGE 5 SECONDS] "
    "WHERE a.k = b.k AND a.small < b.small"
)
DUCK = (
    "SELECT a.id, b.id FROM A a, B b WHERE a.k = b.k AND a.small < b.small "
    "AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000000"
)


def rows(
    seed: int, digits: tuple[int, int], first_id: int = 0, zone: str | None = None
) -> pa.Table:
    """Keys that are neighbours, several to a DOUBLE, over an hour's change of the clock."""
    rng = np.random.default_rng(seed)
    count = 60
    keys = [Decimal(BIG + int(n)) + Decimal(int(h)) / 2 for n, h in rng.integers(0, 3, (count, 2))]
    shown = [None if rng.random() < 0.1 else key for key in keys]
    small = [Decimal(int(n)) / 10 for n in rng.integers(-20, 20, count)]
    seconds = np.sort(rng.integers(0, 7200, count))
    return pa.table(
        {
            "ts": pa.array(EPOCH_US + (seconds // 600) * 1_000_000, pa.timestamp("us", zone)),
            "id": np.arange(first_id, first_id + count),
            "k": pa.array(shown, pa.decimal128(*digits)),
            "small": pa.array(small, pa.decimal128(6, digits[1])),
        }
    )


def expected(a: pa.Table, b: pa.Table, sql: str = DUCK) -> Counter:
    oracle = duckdb_connection()
    oracle.register("A", a)
    oracle.register("B", b)
    return Counter(oracle.sql(sql).fetchall())


@pytest.fixture(scope="module", autouse=True)
def zone(spark: SparkSession) -> Iterator[None]:
    """A session whose clocks change, which readings of the clock must not notice."""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def frame(spark: SparkSession, table: pa.Table, folder: Path, name: str) -> DataFrame:
    pq.write_table(table, folder / f"{name}.parquet")
    return spark.read.parquet(str(folder / f"{name}.parquet"))


def found(out: DataFrame) -> Counter:
    return Counter(map(tuple, out.collect()))


def test_decimal_keys_of_two_scales_join_exactly_by_times_without_a_zone(spark, tmp_path):
    a, b = rows(1, (18, 1)), rows(2, (38, 3))
    assert len(set(map(float, filter(None, a["k"].to_pylist())))) < len(set(a["k"].to_pylist())) - 1
    frames = {"A": frame(spark, a, tmp_path, "A"), "B": frame(spark, b, tmp_path, "B")}
    assert dict(frames["A"].dtypes)["ts"] == "timestamp_ntz"
    wanted = expected(a, b)
    assert wanted
    for how in ({"shards": 3}, {"shards": 1, "index": "bitmap"}, {"shards": 2, "policy": "eddy"}):
        assert found(qm.run(qm.query(SQL, time="ts"), frames, **how)) == wanted, how


def test_a_stream_of_decimal_keys_and_zoneless_times_joins_exactly(spark, tmp_path):
    tables = {
        "A": [rows(3, (20, 1)), rows(4, (20, 1), 60)],
        "B": [rows(5, (18, 2)), rows(6, (18, 2), 60)],
    }
    streams = {}
    for name, parts in tables.items():
        folder = tmp_path / name
        folder.mkdir()
        for number, part in enumerate(parts):
            pq.write_table(part, folder / f"{number}.parquet")
        schema = spark.read.parquet(str(folder)).schema
        streams[name] = spark.readStream.schema(schema).parquet(str(folder))
    out = qm.run(
        qm.query(SQL, time="ts"), streams, checkpoint=str(tmp_path / "state"), shards=2,
        watermark="1 hour",
    )  # fmt: skip
    taken: list[tuple[object, ...]] = []
    writer = out.writeStream.foreachBatch(
        lambda batch, _: taken.extend(map(tuple, batch.collect()))
    )
    to_end(writer, tmp_path / "state")
    a, b = (pa.concat_tables(tables[name]) for name in "AB")
    assert Counter(taken) == expected(a, b)


def test_a_look_up_by_decimals_of_another_scale_or_a_bigint_is_exact(spark, tmp_path):
    a, b = rows(7, (18, 1)), rows(8, (38, 3))
    whole = pa.table({"n": pa.array([BIG, BIG + 1, BIG + 2, None]), "name": ["0", "1", "2", "x"]})
    frames = {
        "A": frame(spark, a, tmp_path, "A"), "B": frame(spark, b, tmp_path, "B"),
        "W": frame(spark, whole, tmp_path, "W"),
    }  # fmt: skip
    oracle = duckdb_connection()
    for name, table in (("A", a), ("B", b), ("W", whole)):
        oracle.register(name, table)
    for sql in (
        "SELECT a.id AS i, b.id AS j FROM A a, B b WHERE a.k = b.k",
        "SELECT a.id AS i, w.name AS j FROM A a, W w WHERE a.k = w.n AND w.n > 9007199254740992.5",
        "SELECT a.id AS i, w.name AS j FROM A a, W w WHERE a.k - 0.5 = w.n",
    ):
        wanted = Counter(oracle.sql(sql).fetchall())
        assert wanted, sql
        asked = {name: data for name, data in frames.items() if f"{name} {name.lower()}" in sql}
        assert found(qm.run(qm.query(sql), asked)) == wanted, sql


def test_groups_go_by_a_window_of_zoneless_times(spark, tmp_path):
    a = rows(9, (18, 1))
    (tmp_path / "A").mkdir()
    pq.write_table(a, tmp_path / "A" / "0.parquet")
    data = spark.read.parquet(str(tmp_path / "A"))
    query = qm.query(
        "SELECT window.start AS s, count(*) AS n, max(k) AS most FROM A WHERE small > -1.5 "
        "GROUP BY window(ts, '5 seconds')"
    )
    batch = found(qm.run(query, {"A": data}))
    windows = F.window("ts", "5 seconds")
    plain = data.filter("small > -1.5").groupBy(windows).agg(F.count("*"), F.max("k"))
    plain = plain.select("window.start", "count(1)", "max(k)")
    assert batch == found(plain)
    stream = spark.readStream.schema(data.schema).parquet(str(tmp_path / "A"))
    out = qm.run(query, {"A": stream}, watermark="1 second")
    taken: list[tuple[object, ...]] = []
    writer = out.writeStream.outputMode("complete").foreachBatch(
        lambda rows, _: taken.extend(map(tuple, rows.collect()))
    )
    to_end(writer, tmp_path / "state")
    assert Counter(taken) == batch
