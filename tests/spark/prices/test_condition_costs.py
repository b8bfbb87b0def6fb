"""Times that are believed, and times that are Java's compiler's."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from querymesh.cost.catalyst_cost import Estimate
from querymesh.spark.prices import condition_costs
from querymesh.spark.prices.condition_costs import (
    believed_us,
    condition_costs_by_outcome_us,
    condition_costs_us,
    condition_prices,
    mean_bytes,
)

TEXTS = pa.table({"s": ["/index/" + "abc def " * 20] * 400, "n": pa.array(range(400))})


def test_a_price_that_is_sure_stands_in_for_a_time_far_above_it():
    timed = np.array([50.0, 50.0, 0.2, 0.03, np.nan])
    prices = [Estimate(1.0, 0.8), Estimate(1.0, 0.3), Estimate(0.1, 0.8), Estimate(0.0, 0.8),
              Estimate(1.0, 0.8)]  # fmt: skip
    np.testing.assert_allclose(believed_us(timed, prices), [1.0, 50.0, 0.2, 0.03, np.nan])


def test_a_time_of_a_cold_session_does_not_get_through(spark, monkeypatch):
    monkeypatch.setattr(condition_costs, "timed_us", lambda *given: np.array([500.0, 500.0]))
    conditions = ["n > 5", F.col("s").rlike("(zzz|yyy)")]
    us = condition_costs_us(spark, TEXTS, conditions)
    assert us[0] < 1
    assert us[0] < us[1] < 50


def test_prices_follow_the_lengths_of_the_sample(spark):
    short = TEXTS.set_column(0, "s", pa.array(["abc"] * 400))
    (cheap,), (dear,) = (condition_prices(spark, t, ["lower(s) = 'x'"]) for t in (short, TEXTS))
    assert dear.us > 2 * cheap.us


def test_what_cannot_be_timed_is_none(spark):
    assert condition_costs_us(spark, TEXTS.slice(0, 0), ["n > 5"]) is None
    nothing = np.zeros((0, 1), bool)
    assert condition_costs_by_outcome_us(spark, TEXTS.slice(0, 0), ["n > 5"], nothing) is None


def test_lengths_are_in_bytes_and_empty_columns_have_none():
    table = pa.table({"s": ["é", None], "empty": pa.array([None, None], pa.string()), "n": [1, 2],
                      "a": [[1, 2, 3], [1]], "st": [{"t": "abc", "n": 1}, None]})  # fmt: skip
    assert mean_bytes(table) == {"s": 2.0, "a": 16.0, "st.t": pytest.approx(3.0)}
    assert mean_bytes(table.slice(0, 0)) == {}
