import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.stats.decay import DecayedMean, share_noise

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


def test_mean_effective_size_and_error_by_hand():
    mean = DecayedMean()
    mean.add(0.2, weight=10, noise=0.01)
    assert (mean.effective, mean.between) == (1.0, 0.0), "one says nothing of how others differ"
    mean.add(0.4, weight=30, noise=0.02, keep=0.5)
    assert mean.weight == 35
    assert mean.mean == pytest.approx(13 / 35)
    effective = 35**2 / (0.25 * 10**2 + 30**2)
    assert mean.effective == pytest.approx(effective)
    spread = (0.5 * 10 * 0.2**2 + 30 * 0.4**2) / 35 - (13 / 35) ** 2
    between = spread / (1 - 1 / effective) - (0.5 * 10 * 0.01 + 30 * 0.02) / 35
    assert between > 0
    assert mean.between == pytest.approx(between)
    noise_of_mean = (0.25 * 10**2 * 0.01 + 30**2 * 0.02) / 35**2
    assert mean.variance(between) == pytest.approx(noise_of_mean + between / effective)
    assert mean.error == pytest.approx(math.sqrt(mean.variance(between)))


def test_two_observations_differ_by_their_variance_and_nothing_is_no_observation():
    mean = DecayedMean()
    assert (mean.effective, mean.between, mean.observations) == (0.0, 0.0, 0)
    mean.add(0.0)
    mean.add(1.0)
    assert (mean.weight, mean.effective) == (2.0, 2.0)
    assert (mean.between, mean.observations) == (0.5, 2)


def test_observations_that_differ_by_less_than_their_noise_do_not_differ():
    mean = DecayedMean()
    mean.add(0.5, noise=1.0)
    mean.add(0.6, noise=1.0)
    assert mean.between == 0.0


@pytest.mark.parametrize(
    ("passed", "rows", "noise"),
    [
        (3, 9, 0.35 * 0.65 / 9),
        (9.5, 9, 1.0 / 9),
        (10, 9, 1.05 / 9),
        (20, 9, 2.05 / 9),
        (1, 1, 0.75 * 0.25),
        (0, 0, 0.25),
    ],
)
def test_the_noise_of_a_share_and_of_a_fan_out_by_hand(passed, rows, noise):
    assert share_noise(passed, rows) == pytest.approx(noise)
