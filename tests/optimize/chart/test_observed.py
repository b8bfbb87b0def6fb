"""What rounds show of joins, by hand; how charts use it is in `test_chart_planner`."""

import math

import numpy as np
import pytest

from querymesh.optimize.chart.observed import ASSUMED_SELECTIVITY, Observed, PairSelectivity
from querymesh.optimize.chart.plan_shape import Condition
from querymesh.optimize.planning.planner import PairStats, Round

DECAY = math.log(2)
"""What is a round older counts half."""

AB = Condition("a.k = b.k", ("a", "b"), 0)
BC = (Condition("b.x < c.x", ("b", "c"), None), Condition("b.y < c.y", ("b", "c"), None))


def pair_of(*conditions):
    return PairSelectivity(conditions or (AB,), threshold=0.25, decay=DECAY)


def shown(met=None, own_seconds=None, arrived=None):
    return Round(1, 1.0, 0.1, arrived or {}, {}, own_seconds or {}, met or {}, {})


def test_what_a_round_shows_counts_half_in_the_next():
    pair = pair_of()
    pair.see(found=8, pairs=100, asked=10, seconds=0.2)
    pair.see(found=2, pairs=50, asked=1, seconds=0.1)
    assert (pair.found, pair.pairs, pair.asked) == pytest.approx((6, 100, 6))
    assert pair.observed == pytest.approx(0.06)
    assert pair.tpr == pytest.approx(6 / 0.2)


def test_a_round_in_which_nobody_asked_tells_nothing():
    pair = pair_of()
    pair.see(found=8, pairs=100, asked=10, seconds=0.2)
    pair.see(found=0, pairs=0, asked=0, seconds=0.0)
    assert (pair.found, pair.pairs, pair.asked, pair.seconds) == (8, 100, 10, 0.2)


def test_probes_that_took_no_time_say_nothing_of_how_fast_they_are():
    pair = pair_of()
    pair.see(found=8, pairs=100, asked=10, seconds=0.0)
    assert pair.tpr is None


def test_values_of_join_attributes_are_those_that_were_shown():
    observed = Observed([AB], 0.25, DECAY)
    keys = {("a", 0): np.arange(10), ("b", 0): np.arange(100, 120)}
    observed.see(Round(1, 1.0, 0.1, {}, {}, {}, {}, {}, keys=keys))
    assert observed.estimate_anew() == [("a", "b")]
    assert observed.pairs["a", "b"].estimate == pytest.approx(1 / (10 * 20))


def test_of_a_pair_that_was_not_seen_there_is_no_estimate():
    pair = pair_of()
    assert not pair.estimate_anew({})
    assert (pair.observed, pair.tpr, pair.estimate) == (None, None, None)


def test_where_nothing_was_found_the_next_pair_may_be_the_first():
    pair = pair_of()
    pair.see(found=0, pairs=98, asked=10, seconds=0.2)
    assert pair.estimate_anew({})
    assert (pair.estimate, pair.by) == (pytest.approx(1 / 100), "counted")


def test_histograms_that_share_no_value_still_leave_something():
    pair = pair_of()
    assert pair.estimate_anew({("a", 0): np.arange(10), ("b", 0): np.arange(100, 120)})
    assert (pair.estimate, pair.by) == (pytest.approx(1 / (10 * 20)), "histograms")


def test_an_estimate_is_kept_until_the_count_is_off_by_more_than_threshold_and_chance():
    pair = pair_of()
    pair.see(found=400, pairs=40_000, asked=100, seconds=0.1)
    assert pair.estimate_anew({})
    assert pair.estimate == pytest.approx(0.01)
    pair.see(found=260, pairs=20_000, asked=100, seconds=0.1)
    assert pair.observed == pytest.approx(460 / 40_000)
    assert not pair.estimate_anew({}), "15 % is within the threshold"
    pair.see(found=400, pairs=20_000, asked=100, seconds=0.1)
    assert pair.estimate_anew({}), "57 % is not"
    assert pair.estimate == pytest.approx(630 / 40_000)
    few = pair_of()
    few.see(found=2, pairs=100, asked=100, seconds=0.1)
    few.estimate_anew({})
    few.see(found=3, pairs=50, asked=100, seconds=0.1)
    assert few.observed == pytest.approx(0.04)
    assert not few.estimate_anew({}), "twice as many, of so few, may be chance"


def test_the_rows_that_a_tuple_finds_are_a_decayed_quotient():
    observed = Observed([AB], 0.25, DECAY)
    observed.see(shown({("a", "b"): PairStats(10, 40, 5.0, 0.1)}))
    assert observed.fan_out == {("a", "b"): 4}
    observed.see(shown({("a", "b"): PairStats(5, 5, 5.0, 0.1)}))
    assert observed.fan_out == {("a", "b"): pytest.approx((20 + 5) / (5 + 5))}


def test_both_directions_of_a_pair_are_counted_together():
    observed = Observed([AB], 0.25, DECAY)
    met = {("a", "b"): PairStats(10, 4, 5.0, 0.1), ("b", "a"): PairStats(20, 6, 2.5, 0.2)}
    observed.see(shown(met))
    assert observed.pairs["a", "b"].observed == pytest.approx(10 / (10 * 5 + 20 * 2.5))
    assert observed.pair_tpr == {("a", "b"): pytest.approx(30 / 0.3)}


def test_how_fast_own_conditions_are_is_a_decayed_quotient():
    observed = Observed([AB], 0.25, DECAY)
    observed.see(shown(own_seconds={"a": 0.2, "b": 0.0, "c": 0.1}, arrived={"a": 1, "b": 5}))
    assert observed.selection_tpr == {"a": pytest.approx(5)}, "b took no time, of c none came"
    observed.see(shown(own_seconds={"a": 0.3}, arrived={"a": 100}))
    assert observed.selection_tpr["a"] == pytest.approx((0.5 + 100) / (0.1 + 0.3))


def test_what_was_not_seen_is_as_the_others_and_divided_among_its_conditions():
    observed = Observed([AB, *BC], 0.25, DECAY)
    spans = {("a", "b"): 1.0, ("b", "c"): 0.25}
    share = ASSUMED_SELECTIVITY**0.5 * 0.25**0.5
    assert observed.selectivities(spans) == pytest.approx(
        {"a.k = b.k": ASSUMED_SELECTIVITY, "b.x < c.x": share, "b.y < c.y": share}
    )
    observed.see(shown({("a", "b"): PairStats(100, 400, 100.0, 0.1)}))
    assert observed.estimate_anew() == [("a", "b")]
    assert observed.assumed == pytest.approx(0.04)
    found = observed.selectivities(spans)
    assert found == pytest.approx({"a.k = b.k": 0.04, "b.x < c.x": 0.1, "b.y < c.y": 0.1})
    assert observed.assumptions == [
        "selectivity between b and c: no tuple has probed for it yet, assumed to be 0.04",
        "processing rate between b and c: not measured yet, assumed to be the paper's",
    ]


def test_only_the_newest_values_of_a_join_attribute_are_kept():
    observed = Observed([AB], 0.25, DECAY)
    for first in (0, 5000):
        keys = {(alias, 0): np.arange(first, first + 5000) for alias in "ab"}
        observed.see(Round(1, 1.0, 0.1, {}, {}, {}, {}, {}, keys=keys))
    assert observed.estimate_anew() == [("a", "b")]
    assert observed.pairs["a", "b"].estimate == pytest.approx(1 / 4096, rel=0.2)
