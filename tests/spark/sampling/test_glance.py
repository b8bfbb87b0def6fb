"""What a glance tells: never fewer rows than there are, and nothing of what makes rows."""

from pyspark.sql import functions as F

from querymesh.spark.sampling.glance import MOST_FILES, Glance, glance_at


def stored(spark, folder, files=2):
    frame = spark.range(1000).selectExpr("id", "string(id) AS s", "id % 3 AS part")
    frame.repartition(files).write.parquet(folder)
    return spark.read.parquet(folder)


def test_the_footers_of_a_few_files_tell_the_rows_and_their_sizes_the_bytes(spark, tmp_path):
    frame = stored(spark, str(tmp_path / "a b;c"))
    size = sum(path.stat().st_size for path in (tmp_path / "a b;c").glob("*.parquet"))
    assert glance_at(frame) == Glance(1000.0, float(size))
    above = frame.filter("id > 500").withColumn("n", F.lit(1)).select("n", "s").alias("x")
    assert glance_at(above) == Glance(1000.0, float(size)), "at most"
    assert glance_at(frame.cache()).rows == 1000
    frame.unpersist()


def test_folders_of_partitions_count_with_all_their_files(spark, tmp_path):
    folder = str(tmp_path / "t")
    spark.range(90).selectExpr("id", "id % 3 AS p").coalesce(1).write.partitionBy("p").parquet(
        folder
    )
    assert glance_at(spark.read.parquet(folder).filter("p = 1")).rows == 90


def test_what_spark_knows_it_tells(spark, tmp_path):
    assert glance_at(spark.range(7).filter("id > 3")) == Glance(7.0)
    assert glance_at(stored(spark, str(tmp_path / "t")).limit(5)) == Glance(5.0)


def test_what_may_have_any_number_of_rows_is_not_known_at_a_glance(spark, tmp_path):
    frame = stored(spark, str(tmp_path / "t"))
    many = stored(spark, str(tmp_path / "many"), files=MOST_FILES + 1)
    frame.write.json(str(tmp_path / "json"))
    for unknown in (
        frame.select(F.explode(F.sequence(F.lit(1), F.lit(50)))),
        frame.join(frame.select("part"), "part"),
        frame.union(frame),
        many,
        spark.read.json(str(tmp_path / "json")),
    ):
        assert glance_at(unknown) is None


def test_a_file_that_went_away_is_no_trouble(spark, tmp_path):
    frame = stored(spark, str(tmp_path / "t"))
    next((tmp_path / "t").glob("*.parquet")).unlink()
    assert glance_at(frame) is None
