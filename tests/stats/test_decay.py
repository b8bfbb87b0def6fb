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
