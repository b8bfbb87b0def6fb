import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles import three_classes
from querymesh.stats.costs import RunningCosts, Timing
from querymesh.stats.decay import DecayedMean, share_noise
from querymesh.stats.drift import DriftDetector
from querymesh.stats.recent import RecentProfile

values = st.lists(st.tuples(st.floats(-100, 100), st.floats(0.1, 10)), min_size=1, max_size=30)


@given(values, st.floats(0.1, 1.0))
def test_a_decayed_mean_is_the_mean_under_weights_that_shrink(observed, keep):
    mean = DecayedMean()
    for value, weight in observed:
        mean.add(value, weight, keep=keep)
    age = np.arange(len(observed))[::-1]
    weights = np.array([weight for _, weight in observed]) * keep**age
    assert mean.mean == pytest.approx(
        np.average([value for value, _ in observed], weights=weights), abs=1e-6
    )
    assert mean.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert 1.0 - 1e-9 < mean.effective < len(observed) + 1e-9


def test_without_decay_the_error_is_that_of_the_plain_mean():
    observed = np.random.default_rng(0).normal(size=200)
    mean = DecayedMean()
    for value in observed:
        mean.add(float(value))
    assert mean.error == pytest.approx(observed.std(ddof=1) / math.sqrt(200))
    assert math.isnan(DecayedMean().mean)
    assert math.isinf(DecayedMean().error)


def test_an_error_covers_the_truth_as_often_as_it_should():
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        mean = DecayedMean()
        for _ in range(40):
            passed = rng.binomial(100, 0.3)
            mean.add(passed / 100, 100, share_noise(passed, 100), keep=0.8)
        inside += abs(mean.mean - 0.3) < 2 * mean.error
    assert 0.90 < inside / 300 <= 1.0


def test_none_of_ten_is_not_taken_for_never():
    assert share_noise(0, 10) > 0
    assert share_noise(0, 10_000) < share_noise(0, 10)
    assert share_noise(30, 10) > 0, "a look-up lets more out than came in"


def batch_of(rng, rate, rows=1000):
    return {(0, 1): (rows, int(rng.binomial(rows, rate)))}


def test_a_shift_is_seen_at_once_and_a_stable_rate_never():
    rng = np.random.default_rng(2)
    detector = DriftDetector(half_life_rows=2000)
    for _ in range(200):
        assert detector.observe(1000, batch_of(rng, 0.3)) == []
    seen = [detector.observe(1000, batch_of(rng, 0.7)) for _ in range(3)]
    (shift,) = next(filter(None, seen))
    assert (shift.leaf, shift.operator) == (0, 1)
    assert shift.before == pytest.approx(0.3, abs=0.01)
    assert shift.now > 0.4


def test_batches_that_always_differ_are_no_shift():
    rng = np.random.default_rng(3)
    detector = DriftDetector(half_life_rows=1000)
    shifts = [detector.observe(1000, batch_of(rng, rng.uniform(0.2, 0.6))) for _ in range(200)]
    assert sum(map(len, shifts[4:])) <= 2


def test_a_slow_drift_adds_up_until_it_is_seen():
    rng = np.random.default_rng(4)
    detector = DriftDetector(half_life_rows=2000)
    assert any(detector.observe(1000, batch_of(rng, 0.3 + 0.002 * k)) for k in range(150))


def test_a_recent_profile_is_bounded_and_mostly_new():
    recent = RecentProfile(most_rows=500)
    recent.add(three_classes(rows=800))
    assert recent.rows == 500
    for _ in range(20):
        recent.add(three_classes(rows=100, seed=1))
    assert recent.rows == 500
    assert recent.added == 2800
    profile = recent.with_costs(np.ones(3), np.ones(3))
    new = {tuple(row) for row in three_classes(rows=100, seed=1).outcomes}
    assert profile.sample.num_rows == 500
    assert {tuple(row) for row in profile.outcomes[-100:]} <= new
    recent.forget()
    assert recent.rows == recent.added == 0
    with pytest.raises(ValueError, match="no rows"):
        recent.with_costs(np.ones(3), np.ones(3))


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
