"""Samples that read little: what Spark itself counts is what holds."""

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from querymesh.errors import TrainingError
from querymesh.spark.sampling.bounded_sample import NoSample, Sample, bounded_sample
from spark_jobs import jobs_within

FILES = 20
ROWS = 400_000
BATCH = 4_096
"""What Spark's Parquet reader decodes at once, at least."""


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("sampled") / "rows")
    spark.range(0, ROWS, 1, FILES).selectExpr(
        "id", "id % 97 AS k", "concat('/index/', id % 1009, '.php') AS url",
        f"CAST(id DIV {ROWS // FILES} AS INT) AS file",
        "named_struct('few', id, 'many', repeat('x', 100)) AS wide",
    ).write.parquet(folder)  # fmt: skip
    return spark.read.parquet(folder)


def test_a_sample_reads_a_few_partitions_and_no_more(spark, table):
    with jobs_within(spark) as scan:
        assert table.agg(F.sum("k")).collect()[0][0] > 0
    assert sum(job.records for job in scan) >= ROWS, "the count that is used here sees a scan"

    with jobs_within(spark) as jobs:
        sample = bounded_sample(table, 800, columns=["k", "url"])
    (job,) = jobs
    assert sample.table.num_rows == 800
    assert sample.table.column_names == ["k", "url"]
    assert job.tasks == sample.partitions_read <= 8 < sample.partitions
    assert 800 <= job.records <= 8 * BATCH
    assert sample.rows_read == job.records
    assert not sample.whole


def test_a_sample_is_spread_over_the_source_and_repeats_by_its_seed(table):
    first, again, other = (
        bounded_sample(table, 800, columns=["file", "id"], seed=seed) for seed in (1, 1, 2)
    )
    files = pc.unique(first.table["file"]).to_pylist()
    assert len(files) >= 5
    assert max(files) - min(files) >= FILES // 2
    assert first.table.equals(again.table)
    assert not first.table.equals(other.table)


def test_conditions_are_evaluated_in_the_same_job(spark, table):
    extra = {"c0": F.expr("url RLIKE '7[.]php$'"), "c1": F.col("k") > 50}
    with jobs_within(spark) as jobs:
        sample = bounded_sample(table, 500, columns=["url"], extra=extra)
    assert len(jobs) == 1
    assert sample.table.column_names == ["url", "c0", "c1"]
    expected = pc.match_substring_regex(sample.table["url"], "7[.]php$")
    assert sample.table["c0"].equals(expected)
    assert 0 < pc.sum(sample.table["c1"]).as_py() < 500


def test_only_the_fields_asked_for_are_read(table):
    from querymesh.spark.sampling.physical_plan import physical_plan

    asked = table.select(F.col("wide.few").alias("few"))
    (scan,) = physical_plan(asked).leaves()
    assert scan.node.requiredSchema().simpleString() == "struct<wide:struct<few:bigint>>"
    sample = bounded_sample(table, 100, columns=[], extra={"few": F.col("wide.few")})
    assert sample.table.column_names == ["few"]
    assert sample.table.num_rows == 100


def test_a_filter_that_keeps_nothing_is_not_searched_further(spark, table):
    with jobs_within(spark) as jobs:
        sample = bounded_sample(table.filter("reverse(url) LIKE '%nowhere%'"), 400, columns=["k"])
    assert sample.table.num_rows == 0
    assert sample.table.column_names == ["k"]
    assert 0 < sum(job.records for job in jobs) < ROWS / 4
    assert not sample.whole
    assert sample.kept == 0


def test_pushed_filters_and_pruned_partitions_hold_in_the_sample(spark, tmp_path):
    spark.range(0, 100_000, 1, 4).selectExpr("id", "id % 4 AS part").write.partitionBy(
        "part"
    ).parquet(str(tmp_path / "parted"))
    frame = spark.read.parquet(str(tmp_path / "parted")).filter("part = 2 AND id > 1000")
    sample = bounded_sample(frame, 300, columns=["id", "part"])
    assert pc.unique(sample.table["part"]).to_pylist() == [2]
    assert pc.min(sample.table["id"]).as_py() > 1000
    assert sample.table.num_rows == 300


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("aggregate", lambda t: t.groupBy("k").count()),
        ("aggregate", lambda t: t.select("k").distinct()),
        ("join", lambda t: t.hint("merge").join(t.withColumnRenamed("url", "u"), "k")),
        ("window", lambda t: t.selectExpr("row_number() OVER (ORDER BY id) AS n")),
        ("sort with a limit", lambda t: t.orderBy("url").limit(100_000)),
        ("subquery", lambda t: t.filter("k < (SELECT max(id) FROM range(10))")),
    ],
)
def test_what_needs_all_of_its_input_is_refused_without_a_job(spark, table, name, made):
    frame = made(table)
    with jobs_within(spark) as jobs:
        sample = bounded_sample(frame, 100, columns=frame.columns[:1])
    assert isinstance(sample, NoSample)
    assert name in sample.reason
    assert jobs == []


@pytest.mark.parametrize(
    "made",
    [
        lambda t: t.orderBy("url"),
        lambda t: t.repartition(7),
        lambda t: t.repartition(3, "k").sortWithinPartitions("url"),
        lambda t: t.coalesce(1),
        lambda t: t.limit(100_000),
        lambda t: t.sample(0.5, seed=1),
        lambda t: t.union(t),
        lambda t: t.selectExpr("explode(array(1, 2)) AS e", "k", "url"),
        lambda t: t.join(F.broadcast(t.sparkSession.range(90).withColumnRenamed("id", "k")), "k"),
        lambda t: t.filter(F.udf(lambda k: k % 2 == 0, "boolean")("k")),
    ],
    ids=[
        "sort",
        "repartition",
        "by-key",
        "coalesce",
        "limit",
        "sample",
        "union",
        "explode",
        "broadcast",
        "udf",
    ],
)
def test_a_plan_that_gives_rows_as_they_come_is_sampled_below_the_whole(spark, table, made):
    with jobs_within(spark) as jobs:
        sample = bounded_sample(made(table), 400, columns=["k", "url"])
    assert isinstance(sample, Sample)
    assert sample.table.num_rows == 400
    assert sum(job.records for job in jobs) < ROWS / 4


def test_a_cached_table_that_is_not_filled_is_not_filled_by_a_sample(spark, table):
    cached = table.select("k", "url").filter("k < 90").cache()
    try:
        with jobs_within(spark) as jobs:
            sample = bounded_sample(cached, 400, columns=["url"])
        assert sample.table.num_rows == 400
        assert sum(job.records for job in jobs) < ROWS / 4
        storage = cached.select("k")._jdf.queryExecution().sparkPlan().collectLeaves().apply(0)
        assert not storage.relation().cacheBuilder().isCachedColumnBuffersLoaded()
        rows = cached.count()
        sample = bounded_sample(cached, 400, columns=["url"])
        assert sample.table.num_rows == 400
        assert sample.rows_read < rows / 2
    finally:
        cached.unpersist()


def test_a_small_source_is_taken_whole(spark):
    ten = spark.range(0, 3_000, 1, 12)
    sample = bounded_sample(ten, 4_000, columns=["id"])
    assert sample.whole
    assert sorted(sample.table["id"].to_pylist()) == list(range(3_000))
    few = bounded_sample(spark.range(0, 50, 1, 2).filter("id >= 10"), 4_000, columns=["id"])
    assert few.whole
    assert few.table.num_rows == 40
    assert not bounded_sample(spark.range(0, 4_000, 1, 1), 4_000, columns=["id"]).whole


@pytest.mark.parametrize("made", [lambda s: s.range(0), lambda s: s.range(10).filter("false")])
def test_an_empty_dataframe_has_an_empty_sample(spark, made):
    sample = bounded_sample(made(spark), 100, columns=["id"], extra={"c": F.col("id") > 3})
    assert sample.whole
    assert sample.table.num_rows == 0
    assert sample.table.column_names == ["id", "c"]


def test_thousands_of_partitions_cost_a_few_tasks(spark):
    with jobs_within(spark) as jobs:
        sample = bounded_sample(spark.range(0, 10**9, 1, 5_000), 800, columns=["id"])
    assert sample.table.num_rows == 800
    assert sum(job.tasks for job in jobs) <= 8
    assert pc.max(sample.table["id"]).as_py() > 7 * 10**8


def test_partitions_without_rows_send_it_on_to_others(spark):
    mostly_empty = spark.range(0, 40, 1, 40).selectExpr(
        "explode(CASE WHEN id < 30 THEN array() ELSE sequence(1, 50) END) AS n"
    )
    sample = bounded_sample(mostly_empty, 400, columns=["n"])
    assert sample.partitions_read > 8
    assert sample.table.num_rows > 0


def test_a_job_has_a_description_and_what_was_there_comes_back(spark, table):
    spark.sparkContext.setJobDescription("mine")
    try:
        with jobs_within(spark) as jobs:
            bounded_sample(table, 100, columns=["k"])
        assert [job.description for job in jobs] == ["QueryMesh: a sample of 100 rows"]
        assert spark.sparkContext.getLocalProperty("spark.job.description") == "mine"
    finally:
        spark.sparkContext.setLocalProperty("spark.job.description", None)


def test_names_that_need_quotes_and_times_keep_their_meaning(spark):
    frame = spark.range(5).selectExpr(
        "id AS `a.b c`", "timestamp_seconds(id) AS at", "CAST(id AS DECIMAL(30, 4)) AS d"
    )
    sample = bounded_sample(frame, 100, columns=["a.b c", "at", "d"])
    assert sample.table.sort_by("a.b c").equals(
        frame.toArrow().cast(sample.table.schema).sort_by("a.b c")
    )


def test_a_stream_is_refused(spark):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(TrainingError, match="a stream has no sample"):
        bounded_sample(stream, 10, columns=["value"])
