import datetime as dt
import itertools
import os
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import querymesh as qm
from querymesh.query.aggregate import split_aggregate
from querymesh.spark.aggregate import aggregated
from soak import SOAK

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def stock(seed, rows):
    """Trades of few sectors; quarters are exact in floating point, whatever the order of a sum."""
    rng = np.random.default_rng(seed)
    sectors = np.array(["tech", "Tech", "oil", "food", None], dtype=object)
    return pa.table(
        {
            "id": np.arange(rows),
            "sector": pa.array(rng.choice(sectors, rows), pa.string()),
            "price": pa.array(rng.integers(0, 400, rows) / 4, mask=rng.random(rows) < 0.1),
            "volume": pa.array(rng.integers(0, 9, rows), pa.int32()),
            "ts": pa.array(
                [START + dt.timedelta(seconds=int(s)) for s in np.sort(rng.integers(0, 600, rows))],
                pa.timestamp("us", "UTC"),
            ),
        }
    )


STOCK = stock(0, 2000)
NEWS = pa.table({"sector": ["tech", "tech", "oil", "gold"], "mood": [1, 2, 3, 4]})


@qm.function(returns=pa.float64())
def taxed(price):
    return pc.multiply(price, 1.25)


FUNCTIONS = {"taxed": taxed}


@pytest.fixture(scope="module")
def inputs(spark):
    return {"Stock": spark.createDataFrame(STOCK).cache(), "News": NEWS}


def asked(sql, inputs, **options):
    query = qm.query(sql, functions=FUNCTIONS)
    given = {relation.name: inputs[relation.name] for relation in query.relations}
    return qm.run(query, given, **options)


def as_set(rows):
    """Rows without their order, numbers to nine digits."""

    def shown(value):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return f"{value:.9g}" if number else value

    return sorted(repr(tuple(shown(value) for value in row)) for row in rows)


def by_duckdb(sql):
    with duckdb.connect() as db:
        db.sql("CREATE MACRO taxed(x) AS x * 1.25")
        db.register("Stock", STOCK)
        db.register("News", NEWS)
        return db.sql(sql).fetchall()


JOINED = "FROM Stock s, News n WHERE s.sector = n.sector AND s.volume > 1"

QUERIES = [
    f"SELECT s.sector, count(*) AS n, avg(s.price) {JOINED} GROUP BY s.sector HAVING count(*) > 3",
    f"SELECT mood % 2 AS odd, sum(price) / count(*) AS m {JOINED} GROUP BY odd HAVING m > 1",
    f"SELECT sum(taxed(s.price)), max(n.mood), count(DISTINCT n.sector) {JOINED}",
    f"SELECT taxed(s.price) > 50 AS dear, count(*) {JOINED} GROUP BY taxed(s.price) > 50",
    "SELECT count(*), count(price), count(DISTINCT sector), sum(volume), min(price) FROM Stock",
    "SELECT count(*), sum(price), max(sector) FROM Stock WHERE volume > 100",
    "SELECT stddev(price), stddev_pop(volume), variance(price), var_pop(price) FROM Stock",
    "SELECT lower(sector), volume, count(*) FROM Stock GROUP BY 2, 1 HAVING volume < 4",
    "SELECT sector FROM Stock GROUP BY sector, volume",
    "SELECT upper(sector) || '!' AS shout, max(id) FROM Stock GROUP BY upper(sector)",
    "SELECT count(*) FILTER (WHERE taxed(price) > 90) AS dear, bool_or(volume = 3) FROM Stock",
    "SELECT CASE WHEN count(*) > 300 THEN sector ELSE 'few' END AS s, min(id) FROM Stock "
    "GROUP BY sector",
    "SELECT 1 AS one FROM Stock HAVING count(*) > 5000",
]


@pytest.mark.parametrize("sql", QUERIES if SOAK else QUERIES[::2])
def test_groups_are_those_of_another_database(inputs, sql):
    assert as_set(asked(sql, inputs).collect()) == as_set(by_duckdb(sql))


def test_random_groupings_are_those_of_another_database(inputs):
    rng = np.random.default_rng(5)
    keys = ["sector", "volume % 3", "price > 50", "lower(sector)", "volume"]
    aggregates = ["sum(price)", "count(price)", "min(volume)", "max(id)", "avg(volume)"]
    pairs = list(itertools.combinations(keys, 2))
    for number in rng.permutation(len(pairs))[:4]:
        group = ", ".join(pairs[number])
        first, second = rng.choice(aggregates, 2, replace=False)
        sql = f"SELECT {group}, {first}, {first} + {second} AS both FROM Stock WHERE volume < 8 "
        sql += f"GROUP BY {group} HAVING {second} > {rng.integers(0, 40)}"
        assert as_set(asked(sql, inputs).collect()) == as_set(by_duckdb(sql)), sql


def test_names_are_as_written_and_types_are_sparks(inputs):
    sql = "SELECT s.sector, COUNT(*), sum(s.volume), avg(s.price) AS p, collect_set(s.volume) AS vs"
    out = asked(f"{sql} FROM Stock s GROUP BY s.sector", inputs)
    assert out.dtypes == [
        ("sector", "string"),
        ("count(*)", "bigint"),
        ("sum(volume)", "bigint"),
        ("p", "double"),
        ("vs", "array<int>"),
    ]


def test_any_aggregate_of_spark_passes_through(inputs):
    sql = "SELECT percentile_approx(price, 0.5, 100) AS p, max_by(id, price) AS m, "
    sql += "approx_count_distinct(sector, 0.1) AS d, first(volume, true) AS f FROM Stock"
    (row,) = asked(sql, inputs).collect()
    plain = inputs["Stock"].selectExpr(
        "percentile_approx(price, 0.5D, 100)", "max(price)", "approx_count_distinct(sector, 0.1)"
    )
    (expected,) = plain.collect()
    assert (row.p, row.d) == (expected[0], expected[2])
    assert STOCK["price"][row.m].as_py() == expected[1]


def test_what_is_computed_of_aggregates_never_fails(inputs):
    sql = "SELECT sum(price) / count(price) AS mean FROM Stock WHERE volume > 100"
    assert [row.mean for row in asked(sql, inputs).collect()] == [None]
    sql = "SELECT sum(volume) * 4611686018427387904 AS huge FROM Stock"
    assert [row.huge for row in asked(sql, inputs).collect()] == [None]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT count(*), avg(ts > '2024-01-01') FROM Stock", r"^avg\(ts > .*Spark cannot"),
        ("SELECT avg(ts > '2024-01-01') FROM Stock", r'Cannot resolve "avg\(ts > '),
        ("SELECT max(sector) + 1 AS x FROM Stock", r"^x: .*\+ takes"),
        ("SELECT count(*) FROM Stock HAVING count(*)", "not a condition"),
        ("SELECT count(*) FROM Stock HAVING max(sector) > 1", "^HAVING max"),
        ("SELECT count(*) FROM Stock GROUP BY window(sector, 'soon')", "^window.*Spark cannot"),
    ],
)
def test_what_spark_cannot_compute_is_named(inputs, sql, said):
    with pytest.raises(qm.SchemaError, match=said):
        asked(sql, inputs)


def test_time_windows_group_a_batch(inputs):
    sql = "SELECT window.start, count(*) AS n, hour(window.end) AS h FROM Stock "
    out = asked(sql + "GROUP BY window(ts, '1 minute') HAVING window.start > '2024-01-01'", inputs)
    plain = inputs["Stock"].groupBy(F.window("ts", "1 minute")).count()
    expected = plain.filter("window.start > '2024-01-01'").selectExpr("window.start", "count", "0")
    assert out.columns == ["start", "n", "h"]
    assert as_set(out.collect()) == as_set(expected.collect())


@pytest.fixture
def files(tmp_path):
    """Four files of 500 rows in the order of time, one a batch."""
    folder = tmp_path / "in"
    folder.mkdir()
    for k in range(4):
        path = folder / f"part-{k}.parquet"
        pq.write_table(STOCK.slice(500 * k, 500), path)
        os.utime(path, (1_700_000_000 + k,) * 2)  # by which Spark takes them
    return folder


def stream_of(spark, folder):
    schema = spark.createDataFrame(STOCK.slice(0, 1)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def drained(out, mode, tmp_path):
    """The last result of every batch, by batch."""
    batches = []
    running = (
        out.writeStream.outputMode(mode)
        .foreachBatch(lambda batch, _: batches.append([tuple(row) for row in batch.collect()]))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(120)
    return batches


def test_a_stream_is_aggregated_over_all_its_batches(spark, files, tmp_path):
    sql = "SELECT sector, count(*) AS n, sum(taxed(price)) FROM Stock "
    sql += "WHERE taxed(price) > 20 AND volume > 1 GROUP BY sector HAVING n > 30"
    out = asked(sql, {"Stock": stream_of(spark, files)}, checkpoint=str(tmp_path / "checkpoint"))
    assert out.isStreaming
    batches = drained(out, "complete", tmp_path)
    assert len(batches) == 4
    assert as_set(batches[-1]) == as_set(by_duckdb(sql))
    assert batches[0] != batches[-1]


@pytest.mark.parametrize("declared", ["by the source", "by watermark"])
def test_time_windows_of_a_stream_are_finished_by_a_watermark(spark, files, tmp_path, declared):
    sql = "SELECT window.start AS start, count(*) AS n FROM Stock WHERE taxed(price) > 20 "
    query = qm.query(sql + "GROUP BY window(ts, '1 minute')", functions=FUNCTIONS)
    below, aggregation = split_aggregate(query)
    stream = stream_of(spark, files)
    if declared == "by the source":
        stream = stream.withWatermark("ts", "10 seconds")
    rows = qm.run(below, {"Stock": stream}, engine="fabric")
    out = aggregated(rows, aggregation, watermark="10 seconds")
    found = [row for batch in drained(out, "append", tmp_path) for row in batch]
    minutes = sql.replace("window.start", "epoch(ts)::BIGINT // 60")
    expected = by_duckdb(minutes + "GROUP BY 1 ORDER BY 1")
    assert len(found) == len(set(found))
    assert 5 <= len(found) < len(expected), "the last windows are not finished yet"
    counts = [n for _, n in expected]
    assert [n for _, n in sorted(found)] == counts[: len(found)]


def test_a_mesh_of_a_query_with_aggregates_fits_it(inputs, tmp_path):
    sql = "SELECT sector, count(*) AS n FROM Stock WHERE taxed(price) > 20 AND volume > 1 "
    query = qm.query(sql + "GROUP BY sector", functions=FUNCTIONS)
    stocks = inputs["Stock"]
    qm.train(query, stocks).save(tmp_path / "mesh.json")
    mesh = qm.load(tmp_path / "mesh.json", functions=FUNCTIONS)
    assert mesh.query.aggregate == query.aggregate
    below, aggregation = split_aggregate(mesh.query)
    out = aggregated(qm.run(replace(mesh, query=below), stocks), aggregation)
    assert as_set(out.collect()) == as_set(by_duckdb(sql + "GROUP BY sector"))
