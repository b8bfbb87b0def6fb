import math

import numpy as np
import pytest

from querymesh.optimize.adapt.budget import (
    BURST_ROWS,
    LUMP_ROWS,
    Allowance,
    Ask,
    Budget,
    rows_to_profile,
)

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


def test_time_is_a_currency_of_its_own():
    """A hundred evaluations were earned, but only 100 µs, and a row takes 10."""
    first_only = np.array([10_000.0, 0.0, 0.0, 0.0])
    budget = earned(10_000, cost_us=np.array([1.0, 1.0, 1.0, 7.0]), evaluations=first_only)
    assert budget.rows == 10
    budget.observe(0, np.zeros(4), np.array([0.0, 0.0, 0.0, 5.0]))
    assert budget.rows == 6
    cheap = Budget(0.01, np.array([0.001, 0.001, 0.001, 0.007]))
    cheap.observe(10_000, first_only, np.zeros(4))
    assert cheap.rows == 10


def test_evaluations_are_a_currency_of_their_own():
    """A hundred evaluations were earned, and a row takes 4; time would be there for 70 rows."""
    last_only = np.array([0.0, 0.0, 0.0, 10_000.0])
    costs = np.array([1.0, 1.0, 1.0, 7.0])
    budget = earned(10_000, cost_us=costs, evaluations=last_only)
    assert budget.rows == 25
    assert budget.ask(0, 1, 10_000, 0).share == pytest.approx(0.5 * 0.01 / 4)
    budget.observe(0, np.zeros(4), np.array([20.0, 20.0, 0.0, 0.0]))
    assert budget.rows == 15
    budget.observe(10**6, 100 * last_only, np.zeros(4))
    budget.observe(0, np.zeros(4), np.array([400.0, 0.0, 0.0, 0.0]))
    assert budget.rows == BURST_ROWS - 100


def test_savings_of_time_stop_at_one_burst_too():
    budget = Budget(0.01, np.array([1.0, 1.0, 1.0, 7.0]))
    for _ in range(9):
        budget.observe(100_000, np.array([0.0, 0.0, 0.0, 1e6]), np.zeros(4))
    budget.observe(0, np.zeros(4), np.array([0.0, 0.0, 0.0, 100.0]))
    assert budget.rows == BURST_ROWS - 70


def test_the_steady_share_is_what_a_row_earns_in_the_dearer_currency():
    """A row of the batch earns 0.01 evaluations and 0.01 µs; a profiled one takes 4 and 10."""
    costs = np.array([1.0, 1.0, 1.0, 7.0])
    budget = earned(10_000, 9, cost_us=costs, evaluations=np.array([10_000.0, 0.0, 0.0, 0.0]))
    assert budget.ask(0, 1, 10_000, 1).share == pytest.approx(0.5 * 0.01 / 10)
    budget.observe(0, np.zeros(4), np.zeros(4))
    assert budget.ask(0, 1, 10_000, 1).share == pytest.approx(0.5 * 0.01 / 10), "as before"


def test_nothing_is_asked_after_an_empty_batch():
    assert Budget(0.01, ONES).ask(BURST_ROWS, batch=1, rows=0, tasks=0) == Ask()
    assert earned(rows=100_000).ask(BURST_ROWS, batch=1, rows=0, tasks=1).tasks == 0


@pytest.mark.parametrize(
    ("rows", "tasks", "asks"), [(31, 1, False), (32, 1, True), (499, 20, False), (500, 20, True)]
)
def test_the_steady_share_waits_until_a_lump_for_each_task_is_saved(rows, tasks, asks):
    budget = earned(rows=200 * rows)
    assert budget.rows == rows
    assert (budget.ask(0, 1, 10_000, tasks).share > 0) is asks


@pytest.mark.parametrize(
    ("wanted", "rows", "tasks", "ask"),
    [
        (1000, 20_000, 2, (250 * 2 / 20_000, 250, 2)),
        (100, 20_000, 3, (33 * 3 / 20_000, 33, 3)),
        (1000, 400, 1, (1.0, 500, 1)),
        (32, 20_000, 1, (32 / 20_000, 32, 1)),
        (32, 1, 1, (1.0, 32, 1)),
        (31, 20_000, 1, (0.0, 0, 0)),
        (100, 20_000, 101, (0.0, 0, 0)),
    ],
)
def test_a_burst_is_spread_over_the_tasks_and_is_no_less_than_a_lump(wanted, rows, tasks, ask):
    burst = earned(rows=100_000).ask(wanted, batch=7, rows=rows, tasks=tasks)
    assert (burst.burst_share, burst.most, burst.tasks) == (pytest.approx(ask[0]), *ask[1:])
    assert burst.batch == (7 if burst.tasks else -1)


def test_only_tasks_below_the_number_asked_take_part_in_a_burst():
    ask = Ask(share=0.1, batch=7, burst_share=0.5, most=40, tasks=2)
    assert ask.for_task(7, 1) == (0.5, 40.0)
    assert ask.for_task(7, 2) == ask.for_task(6, 0) == ask.for_task(None, 0) == (0.1, math.inf)
    assert Ask().for_task(-1, 0) == (0.0, math.inf)


def test_savings_are_worth_the_same_rows_when_operators_become_dearer():
    """100 µs were earned and a row takes 10; at 20 a row they are worth 200."""
    first_only = np.array([10_000.0, 0.0, 0.0, 0.0])
    budget = earned(10_000, cost_us=np.array([1.0, 1.0, 1.0, 7.0]), evaluations=first_only)
    budget.recost(np.array([2.0, 2.0, 2.0, 14.0]))
    assert budget.rows == 10
    budget.observe(0, np.zeros(4), np.array([0.0, 0.0, 0.0, 5.0]))
    assert budget.rows == 6


def test_profiling_by_the_clock_pauses_until_it_is_within_its_share():
    allowance = Allowance(0.25)
    assert allowance.now == 0.25
    allowance.observe(profiled_s=1.0, worked_s=3.0)
    assert allowance.now == 0.0
    allowance.observe(profiled_s=0.0, worked_s=1.0)
    assert allowance.now == 0.25
    allowance.observe(profiled_s=1.0, worked_s=1.0)
    assert allowance.now == 0.0
