"""How many rows learning asks about, where functions cost money."""

import math

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import querymesh as qm
from querymesh.fabric.profile.bounded_profile import FIRST_ROWS
from querymesh.spark.filters.learning.priced_sample import (
    most_priced_rows,
    price_a_row,
    rows_worth,
)
from querymesh.stats.profile import Profile

SAMPLE = pa.table({"text": ["a text of 40 letters, which is 10 tokens"] * 1000, "n": range(1000)})


def paid(price, **options):
    return qm.predicate(lambda text: True, columns=["text"], name="f", price=price, **options)


def test_functions_without_a_price_are_asked_about_any_rows():
    assert most_priced_rows([qm.predicate(lambda x: True, name="f")], SAMPLE, 10, None) == 1000


def test_of_a_large_job_a_tenth_is_asked_and_of_a_small_one_the_first_rows():
    assert most_priced_rows([paid(1.0)], SAMPLE, 5_000, None) == 500
    assert most_priced_rows([paid(1.0)], SAMPLE, 30, None) == FIRST_ROWS
    assert most_priced_rows([paid(1.0)], SAMPLE, math.inf, None) == 1000


@pytest.mark.parametrize(
    ("budget", "rows"), [(qm.Budget(1000), 100), (qm.Budget(900, sample_budget=33), 33)]
)
def test_no_more_is_asked_than_the_budget_has_for_learning(budget, rows):
    assert most_priced_rows([paid(1.0)], SAMPLE, 1e6, budget) == rows


def test_a_row_costs_its_share_of_a_call_and_its_tokens():
    few = SAMPLE.slice(0, 64)
    price = qm.Price(per_call=1.0, per_token=0.01)
    by_row = paid(price, vectorised=False)
    assert price_a_row(by_row, few) == pytest.approx(1.1, rel=0.01)
    in_eights = paid(price, batch=8)
    assert price_a_row(in_eights, few) == pytest.approx(1 / 8 + 0.1, rel=0.01)


def profile(pass_rates, costs):
    rng = np.random.default_rng(3)
    outcomes = (rng.random((FIRST_ROWS, len(costs))) < pass_rates).astype(float)
    names = tuple(f"f{at}" for at in range(len(costs)))
    us = np.array(costs, dtype=float)
    rows = SAMPLE.slice(0, FIRST_ROWS)
    return Profile(rows, names, (frozenset(),) * len(costs), outcomes, us, us)


def test_where_the_best_order_asks_little_little_is_learned_from():
    selective, others = profile([0.1, 0.9, 0.9], [1, 2, 4]), profile([0.9, 0.9, 0.8], [1, 2, 4])

    def worth(found):
        best_us = float(found.realized_us((1, 2, 3)).mean())
        return rows_worth(found, best_us, 10_000)

    assert FIRST_ROWS < worth(selective) < 200
    assert worth(others) > 1000
    assert rows_worth(profile([1.0], [1.0]), 1.0, 500) == 500


def test_learning_spends_its_part_of_a_budget_and_says_where_it_may_not(spark):
    asked = []

    def long(text):
        asked.append(text)
        return len(text) > 8

    rows = spark.range(3000).selectExpr("id", "concat('text ', id) AS text")
    dear = qm.predicate(long, columns=["text"], vectorised=False, price=1.0)
    other = qm.predicate(lambda id: id % 2 == 0, columns=["id"], name="even", vectorised=False)
    found = rows.transform(qm.where(dear, other, budget=qm.Budget(5000, sample_budget=40)))
    assert FIRST_ROWS <= len(asked) <= 40
    assert found.count() == 1000
    others = rows.withColumn("text", F.upper("text"))
    too_dear = others.transform(qm.where(dear, other, budget=qm.Budget(5000, sample_budget=5)))
    assert "more of the budget than learning may spend" in qm.inspect(too_dear).explain()
    assert too_dear.count() == 1000


def test_a_budget_without_a_price_is_refused(spark):
    free = qm.predicate(lambda id: id % 2 == 0, columns=["id"], name="even", vectorised=False)
    with pytest.raises(qm.OptionError, match="no function has a price"):
        spark.range(10).transform(qm.where(free, budget=5.0))


def test_a_paid_function_that_is_not_remembered_is_asked_about_no_sampled_row_twice(spark):
    asked = []

    def long(text):
        asked.append(text)
        return len(text) > 8

    rows = spark.range(4000).selectExpr("id", "concat('row ', id) AS text")
    paid_for = qm.predicate(long, columns=["text"], vectorised=False, price=1.0, memo=False)
    other = qm.predicate(lambda id: id % 2 == 0, columns=["id"], name="even", vectorised=False)
    rows.transform(qm.where(paid_for, other, budget=5000))
    assert len(asked) >= FIRST_ROWS
    assert len(set(asked)) == len(asked)
