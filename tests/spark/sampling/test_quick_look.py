"""A quick look into Parquet files: the rows that Spark would read, or nothing at all."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from querymesh.spark.sampling.plan_statistics import plan_statistics
from querymesh.spark.sampling.quick_look import quick_look
from querymesh.spark.schema import arrow_schema
from spark_jobs import jobs_within


def look_of(frame):
    statistics = plan_statistics(frame)
    (source,) = statistics.sources
    return quick_look(statistics.plan, source)


def looked_at(frame, rows=100, names=None):
    look = look_of(frame)
    found = look and look.rows(rows, arrow_schema(frame), names or frame.columns)
    return found and found.table


@pytest.fixture(scope="module")
def stored(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("looked_at")
    source = spark.range(0, 9_000, 1, 3).selectExpr(
        "id",
        "IF(id % 7 = 0, NULL, concat('line ', id)) AS text",
        "timestamp_micros(1700000000000000 + id) AS at",
        "CAST(id AS DECIMAL(20, 2)) / 3 AS amount",
        "date_add(DATE'2024-01-01', CAST(id % 300 AS INT)) AS day",
    )
    source.write.option("parquet.block.size", 16_384).parquet(str(folder / "rows"))
    return str(folder / "rows")


def test_the_rows_are_those_that_spark_reads(spark, stored):
    frame = spark.read.parquet(stored)
    table = looked_at(frame, 600)
    assert table.num_rows == 600
    assert table.schema == arrow_schema(frame)
    ids = table["id"].to_pylist()
    expected = {row.id: row for row in frame.collect()}
    assert min(ids) < 3_000, "from the first file"
    assert max(ids) > 6_000, "and from the last"
    for row in table.to_pylist()[::37]:
        theirs = expected[row["id"]]
        assert (row["text"], row["amount"], row["day"]) == (
            theirs.text, theirs.amount, theirs.day
        )  # fmt: skip


def test_no_job_runs(spark, stored):
    frame = spark.read.parquet(stored).filter("id % 3 = 1")
    with jobs_within(spark) as jobs:
        assert looked_at(frame).num_rows == 100
    assert not jobs


def test_filters_and_chosen_columns_below_are_kept_to(spark, stored):
    frame = (
        spark.read.parquet(stored).filter("id % 3 = 1 AND text IS NOT NULL").select("text", "id")
    )
    table = looked_at(frame)
    assert table.column_names == ["text", "id"]
    assert table.num_rows == 100
    assert all(number % 3 == 1 for number in table["id"].to_pylist())
    assert table["text"].null_count == 0


@pytest.mark.parametrize(
    "made",
    [
        lambda frame: frame.withColumn("id", frame.id + 1),
        lambda frame: frame.filter("md5(text) < 'a'"),
        lambda frame: frame.withColumnRenamed("id", "number"),
        lambda frame: frame.limit(5),
        lambda frame: frame.groupBy("day").count(),
    ],
    ids=["computed", "filtered by what we cannot read", "renamed", "limited", "aggregated"],
)
def test_where_rows_are_not_as_they_are_stored_nothing_is_looked_at(spark, stored, made):
    assert looked_at(made(spark.read.parquet(stored))) is None


def test_files_that_are_not_parquet_are_not_looked_at(spark, tmp_path):
    spark.range(10).write.json(str(tmp_path / "rows"))
    assert look_of(spark.read.schema("id BIGINT").json(str(tmp_path / "rows"))) is None


def test_a_column_that_is_not_in_the_files_is_not_guessed(spark, tmp_path):
    spark.range(100).selectExpr("id", "id % 2 AS part").write.partitionBy("part").parquet(
        str(tmp_path / "rows")
    )
    frame = spark.read.parquet(str(tmp_path / "rows"))
    assert looked_at(frame) is None
    assert set(looked_at(frame, names=["id"])["id"].to_pylist()) < set(range(100))
    told = look_of(frame).rows(10, arrow_schema(frame), ["id"], telling=["part"])
    assert told.table.column_names == ["id"], "part stands in the names of folders"


def test_a_file_that_was_damaged_or_deleted_is_left_to_spark(spark, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": list(range(100))}), path)
    look, schema = look_of(spark.read.parquet(str(path))), pa.schema([("id", pa.int64())])
    assert look.rows(10, schema, ["id"]).table.num_rows == 10
    path.write_bytes(b"PAR1 no longer")
    assert look.rows(10, schema, ["id"]) is None
    path.unlink()
    assert look.rows(10, schema, ["id"]) is None


def test_an_empty_file_has_no_rows(spark, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), path)
    table = looked_at(spark.read.parquet(str(path)))
    assert table is None or table.num_rows == 0
