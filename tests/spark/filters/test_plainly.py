"""Functions over Arrow arrays that are too cheap to order: Spark's own filter calls them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.functions import arrow_udf, udf
from pyspark.sql.types import BooleanType

import querymesh as qm
from querymesh.spark.filters.learning import learning


@arrow_udf(BooleanType())
def even(number: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(number, 1), 0)


@arrow_udf(BooleanType())
def large(number: pa.Array, thrice: pa.Array) -> pa.Array:
    return pc.greater(pc.add(number, thrice), 1000)


@udf(BooleanType())
def odd(number):
    return number % 2 == 1


@pytest.fixture
def numbers(spark):
    """More rows than the tasks' own start costs, so that what functions cost a row is looked at."""
    return spark.range(4_000_000).selectExpr("id", "id * 3 AS b")


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch):
    """A busy moment makes a cheap function look dear: here each costs what it does without one."""
    profiled = learning.profile_within

    def with_usual_costs(*args):
        profile = profiled(*args)
        us = np.full(profile.operators, 0.1)
        return replace(profile, drop_us=us, pass_us=us)

    monkeypatch.setattr(learning, "profile_within", with_usual_costs)


def physical_plan(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def test_cheap_functions_over_arrays_are_called_by_sparks_own_filter(numbers):
    conditions = (even("id"), large("id", "b"), "b % 7 = 3")
    out = numbers.transform(qm.where(*conditions))
    run = qm.inspect(out)
    assert run.preparation.plainly
    assert run.engine == "native"
    assert "Spark's own filter runs it and calls the Python functions" in run.explain()
    plan = physical_plan(out)
    assert "ArrowEvalPython [even(" in plan
    assert "large(" in plan
    assert "querymesh" not in plan
    plain = numbers.filter(even("id") & large("id", "b")).filter("b % 7 = 3")
    assert out.count() == plain.count() > 0


def test_a_condition_with_two_such_functions_is_one_condition(numbers):
    out = numbers.transform(qm.where(even("id") | large("id", "b"), "b % 7 = 3"))
    assert qm.inspect(out).preparation.plainly
    plain = numbers.filter(even("id") | large("id", "b")).filter("b % 7 = 3")
    assert out.count() == plain.count() > 0


def test_errors_that_drop_a_row_are_ours_to_catch(numbers):
    run = qm.inspect(numbers.transform(qm.where(even("id"), large("id", "b"), on_error="drop")))
    assert not run.preparation.plainly
    assert run.engine == "fabric"


def test_a_function_over_values_is_called_by_the_fabric(numbers):
    run = qm.inspect(numbers.transform(qm.where(even("id"), odd("b"))))
    assert not run.preparation.plainly
    assert run.engine == "fabric"


def test_a_stream_of_cheap_functions_keeps_learning(spark, tmp_path):
    spark.range(10).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id LONG").parquet(str(tmp_path / "in"))
    run = qm.inspect(stream.transform(qm.where(even("id"), large("id", "id"))))
    assert run.preparation is None or not run.preparation.plainly
    assert run.engine == "fabric"
