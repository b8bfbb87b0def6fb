import numpy as np
import pytest

from querymesh.stats.costs import LEAST_BATCHES, RunningCosts, Timing


def timings(us, calls=1, rows=100_000):
    return [(k, Timing(calls, rows, rows // 2, 1e-6 * rows * u)) for k, u in enumerate(us, 1)]


def test_a_machine_that_is_slow_for_all_changes_no_cost():
    costs = RunningCosts(np.array([1.0, 2.0]), np.array([1.0, 2.0]), [True, True], 0.0)
    for factor in (1, 1, 1, 5, 5, 5, 5, 5, 5, 5):
        assert costs.observe(timings([factor * 1.0, factor * 2.0])) == []


def test_an_operator_that_became_dearer_than_the_others_is_corrected():
    costs = RunningCosts(np.array([1.0, 1.0]), np.array([0.5, 1.0]), [True, True], 0.0)
    shifts = []
    for _ in range(12):
        shifts += costs.observe(timings([8 * 0.75, 1.0]))
    ratio = costs.cost_us(np.array([0.5, 0.5]))
    assert ratio[0] / ratio[1] == pytest.approx(6.0, rel=0.01)
    assert costs.pass_us[0] / costs.drop_us[0] == pytest.approx(0.5)
    assert {shift.operator for shift in shifts} == {1, 2}


def test_a_cost_that_follows_every_correction_is_corrected_ever_more_rarely():
    costs = RunningCosts(np.ones(2), np.ones(2), [True, True], 0.0)
    corrections = 0
    for _ in range(500):
        dear_again = [3.0 * costs.drop_us[0], 1.0 * costs.drop_us[1]]
        corrections += bool(costs.observe(timings(dear_again)))
    assert 1 <= corrections <= 7


def test_declared_costs_and_calls_on_a_few_rows_say_nothing():
    costs = RunningCosts(np.ones(3), np.ones(3), [True, True, False], 0.0)
    for _ in range(20):
        assert costs.observe(timings([1.0, 1.0, 50.0])) == []
        few = [(2, Timing(100, 10_000, 50, 1.0))]
        assert costs.observe(timings([1.0, 1.0, 50.0]) + few) == []


def test_the_second_correction_waits_for_twice_the_batches_of_the_first():
    costs = RunningCosts(np.ones(3), np.ones(3), [True] * 3, 0.0)
    corrected = []
    for batch in range(1, 8 * LEAST_BATCHES):
        dear_again = [3.0 * costs.drop_us[0], costs.drop_us[1], costs.drop_us[2]]
        if costs.observe(timings(dear_again)):
            corrected.append(batch)
    assert corrected == [LEAST_BATCHES, 3 * LEAST_BATCHES, 7 * LEAST_BATCHES]
