"""A proxy on Spark: learned before a batch, or from a stream's first rows; and never silent."""

from pathlib import Path

import pytest
from pyspark.sql import functions as spark_functions

import querymesh as qm

TEXTS = "'broken and late', 'lovely and fine', 'late', 'good', 'fine', 'ok'"
PROXY = qm.Proxy(recall=0.9, precision=0.9, sample_rows=300)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "calls"


def complaint(log, proxy=PROXY):
    def complains(text):
        with Path(log).open("a") as file:
            file.write("x\n")
        return "broken" in text or "late" in text

    return qm.predicate(
        complains, columns=["text"], name="complains", vectorised=False, proxy=proxy
    )


def orders(frame):
    number = "1 + int(id % 6)"
    text = f"concat('order ', id, ' is ', element_at(array({TEXTS}), {number}), ' so far')"
    return frame.selectExpr("id", f"{text} AS text")


def calls(log):
    return len(log.read_text().split()) if log.exists() else 0


def test_of_a_batch_it_is_learned_before_and_explain_says_what_it_decides(spark, log):
    rows = orders(spark.range(0, 6000, 1, 2))
    found = rows.transform(qm.where(complaint(log), "id >= 0"))
    learned_from = calls(log)
    assert 300 <= learned_from < 1000
    assert found.count() == pytest.approx(2000, rel=0.1)
    assert calls(log) - learned_from < 1500
    told = qm.inspect(found).explain()
    assert "proxy (approximate)" in told
    assert "rows decided without a call" in told
    assert qm.inspect(found).counts.asked["complains"].proxied.saved > 4000


def test_a_job_too_small_to_learn_for_is_exact_and_says_so(spark, log):
    found = orders(spark.range(600)).transform(qm.where(complaint(log)))
    assert found.count() == 200
    assert "all rows are asked: the job has about 600 rows" in qm.inspect(found).explain()


def test_a_budget_that_cannot_pay_for_its_sample_leaves_it_off(spark, log):
    dear = complaint(log)
    from dataclasses import replace

    dear = replace(dear, price=qm.Price(per_row=0.01))
    found = orders(spark.range(2000)).transform(qm.where(dear, budget=qm.Budget(21)))
    assert found.count() == pytest.approx(667, abs=1)
    assert "answers would cost 3, and learning may spend 2.1" in qm.inspect(found).explain()


def test_on_a_stream_workers_learn_it_from_their_first_rows(spark, log, tmp_path):
    source = tmp_path / "in"
    for part in range(4):
        orders(spark.range(part * 2000, (part + 1) * 2000, 1, 1)).write.parquet(
            str(source / f"p={part}")
        )
    stream = (
        spark.readStream.schema("id long, text string")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(source / "p=*"))
    )
    found = stream.transform(qm.where(complaint(log)))
    query = found.writeStream.format("memory").queryName("complaints").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "cp")).start().awaitTermination()
    assert spark.table("complaints").count() == pytest.approx(8000 / 3, rel=0.1)
    assert calls(log) < 2500
    assert "each worker learns one from its first rows" in qm.inspect(found).explain()


def test_it_is_learned_from_rows_of_everywhere_where_the_first_of_a_partition_are_of_another_kind(
    spark, log
):
    rows = spark.range(0, 6000, 1, 1).selectExpr(
        "id",
        "concat(if(id < 3000, if(id % 3 = 0, 'broken', 'good'), if(id % 3 = 0, 'late', 'ok')), "
        "' order ', id) AS text",
    )
    found = rows.transform(qm.where(complaint(log), "id >= 0"))
    passed = {row.id for row in found.collect()}
    assert len(passed & set(range(0, 6000, 3))) >= 0.9 * 2000
    assert calls(log) < 4000


def test_it_is_learned_behind_a_look_up(spark, log):
    known = spark.createDataFrame([(number,) for number in range(6)], ["kind"])
    rows = orders(spark.range(0, 3000, 1, 1)).withColumn("kind", spark_functions.expr("id % 12"))
    text = "SELECT o.id FROM orders o JOIN known k ON o.kind = k.kind WHERE complains(o.text)"
    query = qm.query(text, functions={"complains": complaint(log)})
    found = qm.run(query, {"orders": rows, "known": known})
    assert found.count() == pytest.approx(500, rel=0.1)
    assert "proxy (approximate)" in qm.inspect(found).explain()
