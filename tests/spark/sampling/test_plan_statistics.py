"""How much a DataFrame reads, as told before it runs."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from querymesh.spark.sampling.plan_statistics import plan_statistics
from spark_jobs import jobs_within


@pytest.fixture(scope="module")
def parted(spark, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("statistics") / "parted")
    spark.range(0, 10_000, 1, 2).selectExpr(
        "id", "concat('/index/', id, '.php') AS url", "id % 5 AS part"
    ).write.partitionBy("part").parquet(folder)
    return spark.read.parquet(folder)


def test_a_pruned_partition_does_not_count(parted):
    whole, pruned = plan_statistics(parted), plan_statistics(parted.filter("part = 3 AND id > 5"))
    assert (whole.files, pruned.files) == (10, 2)
    assert 0.15 < pruned.bytes / whole.bytes < 0.25
    assert pruned.estimated_rows().rows == pytest.approx(2_000, rel=0.05)
    nothing = plan_statistics(parted.filter("part = 30"))
    assert (nothing.bytes, nothing.rows, nothing.files) == (0, 0, 0)


def test_the_rows_of_compressed_parquet_come_from_its_footers(parted):
    found = plan_statistics(parted)
    assert found.rows is None, "only a footer knows them"
    rows = found.estimated_rows()
    assert rows.rows == pytest.approx(10_000, rel=0.05)
    assert rows.factor == pytest.approx(1.1)


def test_files_that_differ_make_the_estimate_doubtful(spark, tmp_path):
    for number, rows in enumerate((10, 10, 100_000)):
        table = pa.table({"same": ["x" * 50] * rows})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    rows = plan_statistics(spark.read.parquet(str(tmp_path))).estimated_rows()
    assert rows.rows / rows.factor <= 100_020 <= rows.rows * rows.factor
    assert rows.factor > 2


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_the_rows_of_text_files_come_from_their_first_lines(spark, tmp_path, kind, compression):
    source = spark.range(20_000).selectExpr("id", "md5(CAST(id AS STRING)) AS text")
    written = source.coalesce(1).write.options(
        **({"compression": compression} if compression else {})
    )
    getattr(written, kind)(str(tmp_path / "rows"))
    frame = getattr(spark.read.schema("id BIGINT, text STRING"), kind)(str(tmp_path / "rows"))
    rows = plan_statistics(frame).estimated_rows()
    assert rows.rows == pytest.approx(20_000, rel=0.4)


def test_what_lies_in_memory_is_known(spark):
    assert plan_statistics(spark.range(1_000)).rows == 1_000
    assert plan_statistics(spark.range(10).union(spark.range(5))).rows == 15
    assert plan_statistics(spark.range(100).limit(7)).rows == 7
    assert plan_statistics(spark.range(100).filter("false")).rows == 0
    local = spark.createDataFrame(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}))
    assert plan_statistics(local).rows == 3


def test_a_cached_table_is_known_before_and_after_it_is_filled(spark):
    frame = spark.range(0, 500, 1, 2).selectExpr("id", "id * 2 AS double").cache()
    try:
        with jobs_within(spark) as jobs:
            before = plan_statistics(frame)
        assert before.rows == 500
        assert jobs == [], "statistics run nothing"
        assert frame.count() == 500
        after = plan_statistics(frame)
        assert after.rows == 500
        assert after.sources[0].kind == "InMemoryTableScan"
    finally:
        frame.unpersist()


def test_sizes_that_spark_does_not_know_are_unknown(spark):
    numbers = spark.sparkContext.parallelize(range(100)).map(lambda number: (number,))
    found = plan_statistics(numbers.toDF(["number"]))
    assert (found.bytes, found.rows, found.estimated_rows()) == (None, None, None)
    assert plan_statistics(numbers.toDF(["number"]).limit(5)).rows == 5


def test_a_join_has_about_the_rows_of_its_larger_side(spark, parted):
    joined = parted.join(spark.range(5).withColumnRenamed("id", "part"), "part")
    found = plan_statistics(joined)
    assert found.rows is None
    rows = found.estimated_rows()
    assert rows.rows == pytest.approx(10_000, rel=0.05)
    assert rows.factor > 3


def test_a_file_that_is_gone_leaves_the_width_of_its_types(spark, tmp_path):
    pq.write_table(pa.table({"a": list(range(1_000))}), tmp_path / "gone.parquet")
    frame = spark.read.parquet(str(tmp_path))
    found = plan_statistics(frame)
    (tmp_path / "gone.parquet").unlink()
    rows = found.estimated_rows()
    assert rows.factor == 10
    assert rows.rows / 10 < 1_000 < rows.rows * 10


def test_paths_with_spaces_and_signs_are_found(spark, tmp_path):
    folder = tmp_path / "a b%20c+d"
    folder.mkdir()
    (folder / "lines #1.json").write_text("".join(json.dumps({"n": n}) + "\n" for n in range(300)))
    frame = spark.read.schema("n INT").json(str(folder))
    assert plan_statistics(frame).estimated_rows().rows == pytest.approx(300)
