import math

import numpy as np
import pytest

from querymesh.optimize.adapt.budget import BURST_ROWS, LUMP_ROWS, Ask, Budget, rows_to_profile

ONES = np.ones(4)


def earned(rows, batches=1, cost_us=ONES, evaluations=None):
    budget = Budget(0.01, cost_us)
    for _ in range(batches):
        done = np.full(4, rows / 2) if evaluations is None else evaluations
        budget.observe(rows, done, np.zeros(4))
    return budget


def test_a_hundredth_of_the_evaluations_buys_rows_on_all_operators():
    assert earned(rows=10_000).rows == 50
    assert earned(rows=10_000, batches=3).rows == 150


def test_savings_stop_at_one_burst():
    assert earned(rows=1_000_000, batches=9).rows == BURST_ROWS


def test_an_operator_that_is_dear_and_seldom_met_is_not_run_for_profiling_at_any_price():
    seldom = np.array([10_000.0, 5_000.0, 1_000.0, 10.0])
    dear = np.array([1.0, 1.0, 1.0, 1000.0])
    rows = earned(10_000, cost_us=dear, evaluations=seldom).rows
    assert rows == math.floor(0.01 * float(seldom @ dear) / dear.sum()) == 0
    assert earned(10_000, evaluations=seldom).rows == 40


def test_what_was_overspent_is_repaid_first():
    budget = earned(rows=10_000)
    budget.observe(0, np.zeros(4), np.full(4, 70.0))
    assert budget.rows == 0
    budget.observe(10_000, np.full(4, 5000.0), np.zeros(4))
    assert budget.rows == 30


def test_a_burst_costs_no_more_than_was_saved_whatever_the_batch():
    budget = earned(rows=100_000)
    ask = budget.ask(wanted=BURST_ROWS, batch=7, rows=20_000, tasks=3)
    shares = [ask.for_task(7, partition) for partition in range(100)]
    capped = [most for _, most in shares if most < math.inf]
    assert sum(capped) <= budget.rows
    assert len(capped) == 3
    assert ask.for_task(8, 0) == ask.for_task(7, 50) == (ask.share, math.inf)


def test_without_a_wish_only_half_the_income_is_spent():
    ask = earned(rows=10_000, batches=4).ask(wanted=0, batch=1, rows=10_000, tasks=1)
    assert ask == Ask(share=pytest.approx(0.0025))
    assert earned(rows=100).ask(0, 1, 100, 1).share == 0.0, "nothing is saved yet"


def test_rows_are_taken_in_lumps_and_still_by_the_share():
    rng = np.random.default_rng(0)
    taken = [rows_to_profile(0.002, math.inf, 1000, rng) for _ in range(4000)]
    assert set(taken) == {0, LUMP_ROWS}
    assert np.mean(taken) == pytest.approx(2.0, rel=0.15)
    assert rows_to_profile(0.5, math.inf, 1000, rng) == 500
    assert rows_to_profile(1.0, 20.0, 1000, rng) == 20
    assert rows_to_profile(1.0, math.inf, 5, rng) == 5
    assert rows_to_profile(1.0, math.inf, 0, rng) == 0
