import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.errors import OptionError
from querymesh.optimize.placement.worth import (
    LEARNING_SHARE,
    MARGIN,
    MOST_SAMPLE_ROWS,
    Job,
    next_sample_rows,
    saving_of,
    worth_learning,
)

COSTS = st.floats(0, 1000)


@given(COSTS, COSTS, st.integers(0, 10**9), st.integers(1, 64), COSTS)
def test_learning_never_costs_more_than_its_share_of_plain_sparks_time(
    one, other, rows, tasks, spent_s
):
    low, high = sorted((one, other))
    budget_s = worth_learning((low, high), rows, tasks, spent_s=spent_s)
    assert 0 <= budget_s <= max(0.0, LEARNING_SHARE * Job(rows, tasks).seconds(high) - spent_s)


def test_a_small_job_and_a_cheap_one_learn_nothing():
    assert worth_learning((1.0, 5.0), 0) == 0
    assert worth_learning((0.0, 0.01), 10**9) == 0
    assert worth_learning((1.0, 5.0), 10**6, spent_s=1.0) == 0


def test_a_range_the_wrong_way_round_is_refused():
    with pytest.raises(OptionError, match="a range from low to high"):
        worth_learning((5.0, 1.0), 100)


@given(st.integers(1, 10**6), st.booleans(), st.floats(0, 1), st.floats(0, 100))
def test_a_sample_doubles_in_doubt_and_within_the_budget_or_not_at_all(
    rows, in_doubt, row_s, budget_s
):
    more = next_sample_rows(rows, in_doubt=in_doubt, row_s=row_s, budget_s=budget_s)
    if more:
        assert in_doubt
        assert rows < more <= min(2 * rows, MOST_SAMPLE_ROWS)
        assert (more - rows) * row_s <= budget_s
    elif in_doubt and rows * row_s <= budget_s:
        assert rows >= MOST_SAMPLE_ROWS


def test_a_saving_is_judged_by_what_it_is_at_the_least():
    rng = np.random.default_rng(0)
    plain = rng.normal(10.0, 1.0, 1000)
    small = saving_of(plain, plain - 0.4, 0.0, Job(), False)
    assert (small.is_certain, small.in_doubt) == (False, False)
    large = saving_of(plain, plain - 1.0, 0.0, Job(), False)
    assert large.is_certain
    noisy = saving_of(plain, plain - rng.normal(1.0, 30.0, 1000), 0.0, Job(), False)
    assert noisy.least_us < noisy.mean_us
    assert not noisy.is_certain
    assert large.needed_us == pytest.approx(MARGIN * plain.mean())


def test_one_unlucky_tuple_is_counted_in_and_weighs_more_in_a_small_sample():
    ten = saving_of(np.full(10, 10.0), np.full(10, 8.0), 20.0, Job(), False)
    thousand = saving_of(np.full(1000, 10.0), np.full(1000, 8.0), 20.0, Job(), False)
    assert (ten.mean_us, thousand.mean_us) == (2.0, 2.0)
    assert ten.least_us == 0.0
    assert thousand.least_us == pytest.approx(1.978, abs=0.001)
    assert ten.in_doubt
    assert thousand.is_certain


def test_a_start_of_workers_is_spread_over_the_rows_of_the_job():
    job = Job(rows=1_000_000, parallelism=2, python_start_s=0.5)
    plain, ours = np.full(100, 10.0), np.full(100, 5.0)
    assert saving_of(plain, ours, 0.0, job, True).mean_us == pytest.approx(4.0)
    assert saving_of(plain, ours, 0.0, job, False).mean_us == pytest.approx(5.0)
    assert saving_of(plain, ours, 0.0, Job(python_start_s=0.5), True).mean_us == 5.0


def test_the_time_of_a_job_of_unknown_size_is_unknown():
    assert math.isnan(Job().seconds(1.0))
    assert Job(rows=2_000_000, parallelism=4).seconds(10.0) == pytest.approx(5.0)
    with pytest.raises(OptionError, match="0 rows or more, or None"):
        Job(rows=-1)
