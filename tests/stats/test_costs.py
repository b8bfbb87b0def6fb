import numpy as np
import pytest

from querymesh.stats.costs import CostShift, RunningCosts, Timing


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
    for batch in range(1, 32):
        dear_again = [3.0 * costs.drop_us[0], costs.drop_us[1], costs.drop_us[2]]
        if costs.observe(timings(dear_again)):
            corrected.append(batch)
    assert corrected == [4, 12, 28]


def three(**costs):
    """Three measured operators of a microsecond each, of which two do not change."""
    each = {"drop_us": np.ones(3), "pass_us": np.ones(3), "measured": [True] * 3, "call_us": 0.0}
    return RunningCosts(**(each | costs))


def corrected(costs, factors):
    """The corrections after batches in which the first operator takes so many times its cost."""
    shifts = []
    for factor in factors:
        shifts += costs.observe(timings([factor, 1.0, 1.0]))
    return shifts


@pytest.mark.parametrize(("factor", "shifts"), [(1.45, 0), (1.55, 1), (0.7, 0), (0.6, 1)])
def test_a_cost_that_is_off_by_less_than_half_is_left_alone_however_sure(factor, shifts):
    assert len(corrected(three(), [factor] * 4)) == shifts


@pytest.mark.parametrize(("factors", "shifts"), [((1.4, 3.0), 1), ((1.3, 3.5), 0)])
def test_a_cost_is_corrected_only_beyond_three_standard_errors(factors, shifts):
    assert len(corrected(three(), factors * 2)) == shifts


def test_a_correction_says_what_the_operator_cost_and_costs_now():
    costs = three(drop_us=np.array([1.0, 1.0, 1.0]), pass_us=np.array([0.5, 1.0, 1.0]))
    (shift,) = corrected(costs, [2.25] * 4)  # 3 times the mean of 1 and 0.5
    assert shift == CostShift(1, pytest.approx(0.75), pytest.approx(2.25))
    assert costs.drop_us.tolist() == pytest.approx([3.0, 1.0, 1.0])
    assert costs.pass_us.tolist() == pytest.approx([1.5, 1.0, 1.0])


def test_one_that_was_seen_too_seldom_is_not_corrected():
    costs = three()
    for batch in range(6):
        seen = timings([3.0, 1.0, 1.0])
        assert costs.observe(seen[1:] if batch % 2 else seen) == []


def test_what_calls_take_by_themselves_is_no_cost_of_rows():
    costs = three(call_us=10_000.0)
    for _ in range(8):
        # 100,000 us of rows each, and ten calls of the first on top
        rows = [*timings([2.0], calls=10), (2, Timing(0, 100_000, 50_000, 0.1))]
        assert costs.observe([*rows, (3, Timing(0, 100_000, 50_000, 0.1))]) == []


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.005])
def test_a_visit_that_took_no_longer_than_its_call_says_nothing(seconds):
    costs = three(call_us=10_000.0)
    for _ in range(8):
        few = [(1, Timing(1, 100_000, 50_000, seconds))]
        assert costs.observe(few + timings([1.0, 1.0, 1.0])[1:]) == []


@pytest.mark.parametrize(("rows", "shifts"), [(4999, 0), (5000, 1)])
def test_visits_too_short_to_be_seen_on_a_busy_machine_are_not_looked_at(rows, shifts):
    costs = three()
    found = []
    for _ in range(4):
        short = (1, Timing(1, rows, 0, 3e-6 * rows))
        found += costs.observe([short, *timings([1.0, 1.0, 1.0])[1:]])
    assert len(found) == shifts


def test_older_batches_count_less():
    costs = three()
    corrected(costs, [1.0] * 3)
    (shift,) = corrected(costs, [6.0, 6.0, 6.0, 6.0])
    weights = 0.9 ** np.arange(7)[::-1]
    assert shift.now_us == pytest.approx(np.exp(np.log(6) * weights[3:].sum() / weights.sum()))


def test_the_cost_of_a_fan_out_is_that_of_a_row_that_passes():
    costs = RunningCosts(np.array([1.0]), np.array([3.0]), [True], 0.0)
    assert [costs.cost_us(np.array([rate]))[0] for rate in (0.0, 0.25, 1.0, 4.0)] == [1, 1.5, 3, 3]
