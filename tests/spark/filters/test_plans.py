"""What Spark does for free stays: pruning of partitions and columns, pushdown, later filters."""

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F
from pyspark.sql.functions import udf

import querymesh as qm
from equivalence import as_multiset

WIDE = "named_struct('a', id, 'b', repeat(string(id), 20), 'c', array(id, id + 1)) AS wide"


@pytest.fixture(scope="module")
def logs(spark, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("logs") / "logs")
    frame = spark.range(2000).selectExpr(
        "id", "id % 4 AS shard", "CAST(id % 10 AS INT) AS port", "concat('line ', id) AS text",
        "repeat('x', 100) AS unused", WIDE, "IF(id % 3 = 0, 'none', string(id)) AS number",
    )  # fmt: skip
    frame.write.partitionBy("shard").parquet(folder)
    return spark.read.parquet(folder)


@qm.predicate(columns=["text"])
def has_a_seven(text):
    return pc.match_substring(text, "7")


def scan(frame):
    """The line of the physical plan that reads the files, and the whole plan."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    (line,) = [each for each in plan.splitlines() if "FileScan" in each]
    return line, plan


def between(line, start, end):
    return line.partition(start)[2].partition(end)[0]


def pushed(line):
    return between(line, "PushedFilters: [", "]")


def partitions(line):
    return between(line, "PartitionFilters: [", "]")


def read(line):
    return between(line, "ReadSchema: ", "\n")


CONDITIONS = {
    "sql": ("shard = 1", "port > 3", "text RLIKE '7$'"),
    "python": ("shard = 1", "port > 3", has_a_seven),
    "both": ("shard = 1", "text RLIKE '7$'", has_a_seven, "port > 3"),
    "in one text": ("shard = 1 AND port > 3 AND text RLIKE '7$'",),
}


@pytest.mark.parametrize("engine", ["auto", "native", "fabric"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_partitions_are_pruned_and_comparisons_pushed_down(logs, name, engine):
    if engine == "native" and any(not isinstance(each, str) for each in CONDITIONS[name]):
        pytest.skip("Python functions do not run natively")
    line, plan = scan(logs.transform(qm.where(*CONDITIONS[name], engine=engine)))
    assert "shard" in partitions(line), plan
    assert "GreaterThan(port,3)" in pushed(line), plan


@pytest.mark.parametrize("learning", [False, True])
def test_a_mesh_that_was_learned_prunes_as_well(logs, learning):
    policy = qm.policies.Mesh(sample_rows=500) if learning else "mesh"
    conditions = ("shard = 1", "port > 3", has_a_seven, "text RLIKE '[0-4]$'")
    out = logs.transform(qm.where(*conditions, policy=policy))
    line, plan = scan(out)
    assert "shard" in partitions(line), plan
    assert "GreaterThan(port,3)" in pushed(line), plan
    expected = logs.filter("shard = 1 AND port > 3 AND text LIKE '%7%' AND text RLIKE '[0-4]$'")
    assert out.count() == expected.count()


def test_later_filters_pass_below_and_columns_are_pruned(logs):
    out = logs.transform(qm.where(has_a_seven)).filter("shard = 2 AND port = 5").select("id")
    line, plan = scan(out)
    assert "shard" in partitions(line), plan
    assert "EqualTo(port,5)" in pushed(line), plan
    assert read(line) == "struct<id:bigint,port:int,text:string>", plan


def test_only_what_predicates_read_goes_to_python(logs):
    out = logs.transform(qm.where(has_a_seven, "port > 3"))
    plan = out._jdf.queryExecution().executedPlan().toString()
    (line,) = [each for each in plan.splitlines() if "ArrowEvalPython" in each]
    assert between(line, "querymesh(", ")").count(",") == 0, plan
    assert "text#" in line


def test_of_a_wide_struct_only_the_fields_that_are_read_are_read(logs):
    low = qm.predicate(lambda a: pc.less(a, 50), columns=["wide.a"], name="low")
    out = logs.transform(qm.where(low, "port > 3")).select("id", "port")
    line, plan = scan(out)
    assert "wide:struct<a:bigint>" in read(line), plan
    assert "unused" not in read(line), plan


def test_a_udf_of_the_users_own_keeps_all_of_it(logs):
    odd = udf(lambda n: n % 2 == 1, "boolean")
    out = logs.transform(qm.where(odd("id"), F.col("shard") == 1)).filter("port = 5").select("id")
    line, plan = scan(out)
    assert "shard" in partitions(line), plan
    assert "EqualTo(port,5)" in pushed(line), plan
    assert out.count() == logs.filter("id % 2 = 1 AND shard = 1 AND port = 5").count()


def test_a_guard_that_moved_into_python_is_still_a_guard_for_later_casts(logs):
    out = logs.transform(qm.where("number RLIKE '^[0-9]+$'", has_a_seven, engine="fabric"))
    later = out.filter("CAST(number AS INT) > 100")
    expected = logs.filter("number <> 'none' AND text LIKE '%7%'").filter("int(number) > 100")
    assert later.count() == expected.count()


def test_a_guard_that_comes_after_python_is_still_a_guard_for_later_casts(logs):
    digits = "split(number, ',')[0] RLIKE '^[0-9]+$'"
    expected = logs.filter("number <> 'none' AND text LIKE '%7%'").filter("int(number) > 100")
    for options in ({}, {"policy": qm.policies.Mesh(sample_rows=500)}, {"engine": "fabric"}):
        out = logs.transform(qm.where(has_a_seven, digits, **options))
        assert out.filter("CAST(number AS INT) > 100").count() == expected.count()


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_later_filter_prunes_partitions_whatever_the_conditions_are(logs, name):
    """Where SQL stands in Python it may be a guard, and a later comparison stays above."""
    out = logs.transform(qm.where(*CONDITIONS[name])).filter("shard = 1").select("id")
    line, plan = scan(out)
    assert "shard" in partitions(line), plan
    assert "unused" not in read(line), plan
    assert "wide" not in read(line), plan


def test_two_filters_one_after_the_other_stay_in_that_order(logs):
    reads = qm.predicate(lambda n: int(n) > 5, columns=["number"], vectorised=False, name="reads")
    is_number = qm.predicate(str.isdigit, columns=["number"], vectorised=False, name="is_number")
    out = logs.transform(qm.where(is_number)).select("*").transform(qm.where(reads))
    assert out.count() == logs.filter("number <> 'none' AND try_cast(number AS INT) > 5").count()


@pytest.fixture
def streamed(spark, logs, tmp_path):
    """Runs a stream of the partitioned logs to its end; the line that scans, and what came out."""
    (folder,) = {str(file).rpartition("/shard=")[0] for file in logs.inputFiles()}

    def run(transform):
        stream = spark.readStream.schema(logs.schema).parquet(folder)
        writer = transform(stream).writeStream.format("memory").queryName("later_filters")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        plan = query._jsq.explainInternal(True)
        (line,) = {each.strip() for each in plan.splitlines() if "FileScan" in each}
        return line, spark.table("later_filters")

    return run


LATER = "shard = 2 AND port > 5"


def test_a_filter_above_a_streams_where_prunes_partitions_columns_and_rows(logs, streamed):
    def later(frame):
        return frame.transform(qm.where(has_a_seven, "port < 9")).filter(LATER).select("id", "port")

    line, found = streamed(later)
    assert "shard" in partitions(line)
    assert "2" in partitions(line)
    assert "GreaterThan(port,5)" in pushed(line)
    assert "LessThan(port,9)" in pushed(line)
    assert "text" in read(line), "what the predicate reads"
    assert not any(name in read(line) for name in ("unused", "wide", "number"))
    expected = logs.filter(f"text LIKE '%7%' AND port < 9 AND {LATER}").select("id", "port")
    assert as_multiset(found.toArrow()) == as_multiset(expected.toArrow())


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_streams_sql_condition_in_python_is_a_barrier_under_ansi_only(
    spark, logs, streamed, ansi
):
    def later(frame):
        kept = frame.transform(qm.where(has_a_seven, "text RLIKE '[0-4]'", "port < 9"))
        return kept.filter(LATER).select("id")

    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        line, found = streamed(later)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert ("GreaterThan(port,5)" in pushed(line)) is (ansi == "false")
    assert bool(partitions(line)) is (ansi == "false")
    assert "LessThan(port,9)" in pushed(line), "what where itself was given goes below"
    assert "wide" not in read(line), "others are read while it learns: see test_gates.py"
    expected = logs.filter(f"text LIKE '%7%' AND text RLIKE '[0-4]' AND port < 9 AND {LATER}")
    assert as_multiset(found.toArrow()) == as_multiset(expected.select("id").toArrow())


def test_a_streams_filter_prunes_columns_and_pushes_down(spark, logs, tmp_path):
    logs.select("id", "port", "text", "wide").write.parquet(str(tmp_path / "in"))
    schema = logs.select("id", "port", "text", "wide").schema
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    kept = stream.transform(qm.where(has_a_seven, "text RLIKE '[0-4]'", "port > 3")).select("id")
    writer = kept.writeStream.format("memory").queryName("pruned_stream")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    plan = query._jsq.explainInternal(True)
    (line,) = {each.strip() for each in plan.splitlines() if "FileScan" in each}
    assert "GreaterThan(port,3)" in pushed(line), plan
    assert "wide" not in read(line), plan
    expected = logs.filter("text LIKE '%7%' AND text RLIKE '[0-4]' AND port > 3")
    assert spark.table("pruned_stream").count() == expected.count()
