"""Conditions timed in Catalyst, on the driver and without a job."""

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from querymesh.spark.prices.catalyst_costs import timed_by_outcome_us, timed_us
from spark_jobs import jobs_within

TEXTS = pa.table(
    {
        "s": [f"/index/{n}/" + "abc def " * 30 for n in range(600)],
        "n": pa.array(range(600)),
        "deep": pa.array([{"a": n, "b": str(n)} for n in range(600)]),
    }
)


def test_a_dear_condition_is_told_from_cheap_ones_without_a_job(spark):
    conditions = ["n > 5", "s RLIKE '(zzz|yyy|xxx|www)q'", F.col("deep.b") == "7", "s LIKE '%q%'"]
    with jobs_within(spark) as jobs:
        us = timed_us(spark, TEXTS, conditions)
    assert jobs == []
    assert us.argmax() == 1
    assert us[1] > 5 * max(us[0], us[2])
    assert (us > 0).all()


def test_what_a_condition_costs_hangs_on_its_outcome(spark):
    # Half of the texts have their match at the beginning, and the others must be read to the end.
    early = np.arange(600) % 2 == 0
    texts = [("zzz" if first else "") + "abc def " * 60 for first in early]
    found = timed_by_outcome_us(
        spark, pa.table({"s": texts}), ["s RLIKE '(zzz|yyy)'"], early[:, None]
    )
    (drop_us,), (pass_us,) = found
    assert drop_us > 2 * pass_us


def test_a_condition_that_raises_has_no_time_and_the_others_have(spark):
    us = timed_us(spark, TEXTS, ["CAST(s AS INT) > 3", "n > 5"])
    assert np.isnan(us[0])
    assert us[1] > 0


def test_what_cannot_be_timed_is_none(spark):
    assert timed_us(spark, TEXTS.slice(0, 0), ["n > 5"]) is None
    assert timed_us(spark, TEXTS, []) is None
    assert timed_us(spark, TEXTS, ["nowhere > 5"]) is None
    python = F.udf(lambda n: n > 5, "boolean")(F.col("n"))
    assert timed_us(spark, TEXTS, [python, "n > 5"]) is None
    assert timed_by_outcome_us(spark, TEXTS.slice(0, 0), ["n > 5"], np.zeros((0, 1), bool)) is None


def test_one_row_and_one_outcome_are_enough(spark):
    assert timed_us(spark, TEXTS.slice(0, 1), ["n > 5"]).shape == (1,)
    found = timed_by_outcome_us(spark, TEXTS, ["n >= 0"], np.ones((600, 1), bool))
    assert [us.shape for us in found] == [(1,), (1,)]
