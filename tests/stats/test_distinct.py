"""How many inputs of a whole job differ."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.stats.distinct import distinct_of


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.floats(0, 1e9))
def test_it_lies_between_what_was_seen_and_all_rows(values, rows):
    kinds = np.unique(values, return_inverse=True)[1]
    seen = len(set(values))
    assert seen <= distinct_of(kinds, rows) <= max(rows, len(values), seen)


@pytest.mark.parametrize("exponent", [1.2, 1.6, 2.5])
def test_of_values_as_texts_have_them_it_is_right_within_a_small_factor(exponent):
    rng = np.random.default_rng(7)
    job = rng.zipf(exponent, size=200_000)
    sample = rng.choice(job, 2000, replace=False)
    told = distinct_of(np.unique(sample, return_inverse=True)[1], len(job))
    assert len(np.unique(job)) / 2.5 <= told <= len(np.unique(job)) * 2.5


@pytest.mark.parametrize(("kinds", "least", "most"), [(10, 10, 11), (100_000, 80_000, 200_000)])
def test_values_that_are_exhausted_stay_and_values_that_hardly_repeat_go_on(kinds, least, most):
    sample = np.random.default_rng(7).integers(kinds, size=2000)
    told = distinct_of(np.unique(sample, return_inverse=True)[1], 200_000)
    assert least <= told <= most


def test_of_nothing_nothing_is_known():
    assert distinct_of(np.empty(0, dtype=np.int64), 100) == 0.0
