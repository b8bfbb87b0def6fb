import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.errors import QueryMeshError, TrainingError
from querymesh.stats.decay import DecayedMean
from querymesh.stats.round_estimates import RoundEstimates, RoundMean, round_numbers

OBSERVED = st.lists(st.floats(0, 1e6), min_size=1, max_size=30)


@given(OBSERVED, st.integers(1, 12), st.floats(0, 3))
def test_the_mean_is_section_4_3s_over_the_last_d_rounds(observed, rounds, decay):
    mean = RoundMean(rounds, decay)
    for value in observed:
        mean.observe(value)
    last = observed[-rounds:]
    weights = [math.exp(-decay * age) for age in range(len(last))]
    assert mean.mean == pytest.approx(np.average(last[::-1], weights=weights))
    assert mean.observations == len(last)


@given(OBSERVED, st.floats(0.01, 3))
def test_over_all_rounds_it_is_the_decayed_mean_of_stats(observed, decay):
    mean, other = RoundMean(len(observed), decay), DecayedMean()
    for value in observed:
        mean.observe(value)
        other.add(value, keep=math.exp(-decay))
    assert mean.mean == pytest.approx(other.mean)


def test_what_is_older_than_d_rounds_is_forgotten():
    mean = RoundMean(rounds=3, decay=0.0)
    for value in (1e9, 1.0, 2.0, 3.0):
        mean.observe(value)
    assert mean.mean == 2.0
    assert math.isnan(RoundMean().mean)


def test_an_assumption_holds_until_a_round_shows_more():
    rates = RoundEstimates("arrival rate", assumed={"TCP": 500.0})
    assert rates["TCP"] == 500.0
    assert rates.assumptions == ["arrival rate of TCP: not observed yet, assumed to be 500"]
    rates.observe("TCP", None)
    assert rates["TCP"] == 500.0
    rates.observe("TCP", 200.0)
    assert rates["TCP"] == 200.0
    assert rates.assumptions == []


def test_a_rate_neither_observed_nor_assumed_is_an_error_that_says_what_to_do():
    with pytest.raises(TrainingError, match=r"arrival rate of UDP.*Pass assumed=\{'UDP': \.\.\.\}"):
        RoundEstimates("arrival rate")["UDP"]


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(TrainingError, match="from 0 on"):
        RoundMean().observe(wrong)
    with pytest.raises(TrainingError, match="assumed for TCP"):
        RoundEstimates("arrival rate", {"TCP": wrong})
    with pytest.raises(QueryMeshError, match="decay"):
        RoundMean(decay=wrong)
    with pytest.raises(QueryMeshError, match="longer than 0"):
        round_numbers([1.0], wrong)


def test_a_mean_of_no_rounds_is_refused_at_once():
    with pytest.raises(QueryMeshError, match="1 round at least"):
        RoundEstimates("arrival rate", rounds=0)


def test_section_3_1_rounds_of_bags():
    tuples = [(10, 1), (7, 5), (8, 10), (25, 15), (10, 20), (8, 25), (9, 30), (26, 35)]
    tuples += [(11, 40), (7, 45), (20, 50)]
    values, times = np.array(tuples).T
    rounds = round_numbers(times, window_s=20)
    shown = {}
    selectivity = RoundEstimates("selectivity", rounds=1)
    for number in range(1, 4):
        read = values[rounds == number]
        produced = read[read >= 10]
        selectivity.observe("s", len(produced) / len(read))
        shown[number] = sorted(produced.tolist())
    # The paper prints {10, 25} for the first: as bags they are three.
    assert shown == {1: [10, 10, 25], 2: [11, 26], 3: [20]}
    assert selectivity["s"] == 0.5


def test_a_window_of_5_minutes_makes_288_rounds_a_day():
    assert round_numbers(24 * 3600, 300) == 288


def test_by_default_ten_rounds_count_and_each_before_six_tenths_of_the_next():
    mean = RoundMean()
    for value in range(12):
        mean.observe(float(value))
    weights = np.exp(-0.5 * np.arange(10))
    assert mean.observations == 10
    assert mean.mean == pytest.approx(weights @ np.arange(11, 1, -1) / weights.sum())


def test_what_is_got_is_observed_or_else_what_is_given():
    rates = RoundEstimates("arrival rate", assumed={"TCP": 500.0})
    assert rates.get("TCP") is None, "an assumption is no observation"
    assert rates.get("TCP", 7.0) == 7.0
    rates.observe("TCP", 200.0)
    assert rates.get("TCP") == rates.get("TCP", 7.0) == 200.0


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_a_rate_may_be_assumed_to_be_nothing_or_less_than_one(rate):
    assert RoundEstimates("arrival rate", {"TCP": rate})["TCP"] == rate


@pytest.mark.parametrize("window_s", [0.0, -0.5])
def test_a_window_without_length_is_refused(window_s):
    with pytest.raises(QueryMeshError, match="longer than 0"):
        round_numbers([1.0], window_s)


def test_a_window_may_be_shorter_than_a_second_and_time_0_is_read_by_the_first_round():
    assert round_numbers([0.0, 0.5, 0.6], window_s=0.5).tolist() == [1, 1, 2]


def test_a_mean_shows_its_settings_and_not_all_it_has_seen():
    mean = RoundMean(rounds=2, decay=0.5)
    mean.observe(3.0)
    assert repr(mean) == "RoundMean(rounds=2, decay=0.5)"
