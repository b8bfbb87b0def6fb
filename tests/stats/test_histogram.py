import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.errors import QueryMeshError, TrainingError
from querymesh.stats.histogram import Histogram, JoinSelectivity, join_selectivity


def true_selectivity(left, right):
    one, other = Counter(left), Counter(right)
    return sum(one[value] * other[value] for value in one) / (len(left) * len(right))


VALUES = st.lists(st.integers(0, 12), min_size=1, max_size=60)


@given(VALUES, VALUES)
def test_with_every_value_alone_the_selectivity_is_exact(left, right):
    # Twice each, since a value seen once is never alone.
    one, other = (Histogram.of([*each, *each], singles=13) for each in (left, right))
    assert join_selectivity(one, other) == pytest.approx(true_selectivity(left, right))


@given(VALUES, VALUES, st.integers(0, 5), st.integers(1, 5))
def test_a_selectivity_is_a_share_and_the_same_from_both_sides(left, right, singles, ranges):
    one, other = (Histogram.of(each, singles, ranges) for each in (left, right))
    assert one.counts.sum() + one.rows.sum() == one.total == len(left)
    assert 0 <= join_selectivity(one, other) <= 1
    assert join_selectivity(one, other) == pytest.approx(join_selectivity(other, one))


def test_skewed_keys_are_estimated_to_a_tenth():
    rng = np.random.default_rng(0)
    left, right = rng.zipf(1.6, 20_000) % 5000, rng.zipf(1.4, 20_000) % 5000
    estimate = join_selectivity(Histogram.of(left), Histogram.of(right))
    assert estimate == pytest.approx(true_selectivity(left, right), rel=0.1)


def test_even_keys_and_ranges_that_overlap_in_part_are_estimated_to_a_tenth():
    rng = np.random.default_rng(1)
    left, right = rng.integers(0, 1000, 20_000), rng.integers(600, 1600, 20_000)
    few = {"singles": 4, "ranges": 16}
    estimate = join_selectivity(Histogram.of(left, **few), Histogram.of(right, **few))
    assert estimate == pytest.approx(true_selectivity(left, right), rel=0.1)


def test_ranges_apart_join_nothing():
    assert join_selectivity(Histogram.of([1, 2, 3]), Histogram.of([10, 20, 30])) == 0.0


def test_texts_join_by_equality_and_nulls_join_nothing():
    left, right = ["a", "a", "b", "b", None], ["a", "a", "c", "c"]
    one, other = Histogram.of(left), Histogram.of(right)
    assert (one.total, other.total) == (4, 4)
    assert join_selectivity(one, other) == pytest.approx(2 * 2 / 16)
    assert Histogram.of([1.0, math.nan, 1.0]).total == 2
    assert join_selectivity(Histogram.of([]), other) == 0.0


def test_memory_is_bounded_by_singles_and_ranges():
    many = Histogram.of(np.random.default_rng(2).integers(0, 100_000, 50_000), 10, 20)
    assert len(many.singles) <= 10
    assert len(many.rows) <= 20


KEYS = np.repeat(np.arange(10), 5)


def test_a_selectivity_is_estimated_anew_only_past_the_threshold():
    join = JoinSelectivity(threshold=0.2)
    assert join.observe(0.1, KEYS, KEYS)
    assert join.estimate == pytest.approx(0.1)
    assert not join.observe(0.11, KEYS % 5, KEYS % 5)
    assert not join.observe(None, KEYS % 5, KEYS % 5)
    assert join.estimate == pytest.approx(0.1)
    assert join.observe(0.2, KEYS % 5, KEYS % 5)
    assert join.estimate == pytest.approx(0.2)
    assert join.estimated == 2


def test_a_histogram_that_is_itself_off_is_not_made_in_every_round():
    join = JoinSelectivity(threshold=0.1)
    for _ in range(20):
        join.observe(0.5, KEYS, KEYS)
    assert join.estimated == 1
    join.observe(0.8, KEYS, KEYS)
    assert join.estimated == 2


def test_what_is_assumed_holds_until_there_are_windows():
    with pytest.raises(TrainingError, match="pass assumed"):
        _ = JoinSelectivity().estimate
    join = JoinSelectivity(assumed=0.3)
    assert not join.observe(None, [], [])
    assert join.estimate == 0.3
    assert join.observe(None, KEYS, KEYS)
    assert join.estimate == pytest.approx(0.1)


def test_wrong_settings_are_refused():
    with pytest.raises(QueryMeshError, match="threshold"):
        JoinSelectivity(threshold=-1)
    with pytest.raises(TrainingError, match="from 0 to 1"):
        JoinSelectivity(assumed=2)
    with pytest.raises(QueryMeshError, match="1 or more ranges"):
        Histogram.of([1], ranges=0)


def test_a_histogram_by_hand():
    found = Histogram.of([1, 1, 1, 2, 2, 5, 7, 9], singles=1, ranges=2)
    assert (found.singles.tolist(), found.counts.tolist()) == ([1], [3])
    assert found.edges.tolist() == pytest.approx([2, 7, 9 + 7 / 3])
    assert (found.rows.tolist(), found.distinct.tolist()) == ([3, 2], [2, 2])
    assert found.total == 8
    assert found.expected(np.array([1.9, 2.0, 6.9, 7.0, 11.3, 11.4])).tolist() == [
        0,
        1.5,
        1.5,
        1,
        1,
        0,
    ]
    assert Histogram.of([3, 4, 5]).singles.tolist() == [], "a value seen once is never alone"


def test_one_value_is_a_range_of_its_own():
    found = Histogram.of([7])
    assert found.edges.tolist() == [7, 8]
    large = Histogram.of([2.0**60])
    assert large.edges[1] > large.edges[0]


def test_by_default_64_values_are_alone_and_others_in_32_ranges():
    found = Histogram.of(np.repeat(np.arange(1000), 2))
    assert (len(found.singles), len(found.rows)) == (64, 32)


def ranged(edges, rows, distinct, singles=(), counts=()):
    arrays = (np.array(each, float) for each in (singles, counts, edges, rows, distinct))
    return Histogram(*arrays, int(sum(rows) + sum(counts)))


def test_pairs_of_values_alone_and_ranges_by_hand():
    even = ranged([0, 10], [20], [10])
    alone = ranged([], [], [], singles=[4, 50], counts=[6, 9])
    assert join_selectivity(alone, even) == pytest.approx(6 * 2 / (15 * 20))
    assert join_selectivity(even, alone) == pytest.approx(6 * 2 / (15 * 20))
    both = ranged([0, 10], [20], [10], singles=[4], counts=[3])
    assert join_selectivity(alone, both) == pytest.approx(6 * 3 / (15 * 23)), "alone in both"


def test_values_alone_meet_no_more_than_a_range_has():
    few = ranged([0, 10, 20], [2, 8], [1, 8])
    alone = ranged([], [], [], singles=[1, 2, 3, 15], counts=[2, 2, 2, 5])
    # Three values claim the two tuples of the first range, each a third of them.
    assert join_selectivity(alone, few) == pytest.approx((3 * 2 * 2 / 3 + 5) / (11 * 10))


def test_pairs_of_ranges_that_overlap_by_hand():
    left, right = ranged([0, 10], [20], [10]), ranged([5, 15], [30], [10])
    # From 5 to 10 there are 10 tuples of 5 values, and 15 of 5.
    assert join_selectivity(left, right) == pytest.approx(10 * 15 / 5 / (20 * 30))
    narrow = ranged([5, 6], [30], [1])
    assert join_selectivity(left, narrow) == pytest.approx(2 * 30 / 1 / (20 * 30))


def test_where_all_pairs_agree_the_selectivity_is_one():
    left = ranged([0, 1], [10], [1], singles=[0.5], counts=[10])
    assert join_selectivity(left, ranged([0, 1], [10], [1])) == 1.0


@pytest.mark.parametrize(("observed", "again"), [(0.124, False), (0.126, True), (0.076, False)])
def test_by_default_a_quarter_of_the_estimate_is_the_threshold(observed, again):
    join = JoinSelectivity()
    join.observe(0.1, KEYS, KEYS)
    assert join.observe(observed, KEYS, KEYS) == again


def test_settings_at_their_bounds_are_taken():
    assert JoinSelectivity(threshold=0, assumed=0).estimate == 0
    assert JoinSelectivity(assumed=1).estimate == 1
    assert Histogram.of([1, 1, 2], singles=0, ranges=1).rows.tolist() == [3]
    for wrong in ({"singles": -1}, {"ranges": 0}):
        with pytest.raises(QueryMeshError, match="a histogram has"):
            Histogram.of([1], **wrong)
    with pytest.raises(QueryMeshError, match="threshold"):
        JoinSelectivity(threshold=math.inf)


def test_a_thin_overlap_of_two_ranges_has_less_than_a_pair():
    left, right = ranged([0, 10], [2], [2]), ranged([9, 19], [2], [2])
    # From 9 to 10 there is a fifth of a tuple of either, of one value.
    assert join_selectivity(left, right) == pytest.approx(0.2 * 0.2 / (2 * 2))


def test_the_last_of_values_a_hair_apart_lies_in_its_range():
    found = Histogram.of([2.0**53 - 1, 2.0**53])
    assert found.expected(np.array([2.0**53])).tolist() == [1]


def test_numbers_beside_null_are_numbers():
    found = Histogram.of([1, 1, None, 2, 7], ranges=1)
    assert (found.singles.tolist(), found.edges[0], found.total) == ([1], 2, 4)


def test_numbers_beside_texts_join_as_texts():
    mixed = Histogram.of(np.array([1, 1, "a", "a"], dtype=object))
    assert join_selectivity(mixed, mixed) == 0.5
    assert join_selectivity(mixed, Histogram.of(["1", "1"])) == 0.5


def test_where_every_value_is_alone_there_are_no_ranges():
    found = Histogram.of([1, 1, 2, 2])
    assert [len(each) for each in (found.edges, found.rows, found.distinct)] == [0, 0, 0]
    assert found.expected(np.array([1.0, 9.0])).tolist() == [0, 0]


@pytest.mark.parametrize(("left", "right"), [(KEYS, []), ([], KEYS)])
def test_a_window_without_tuples_joins_nothing_and_estimates_nothing(left, right):
    assert join_selectivity(Histogram.of(left), Histogram.of(right)) == 0.0
    join = JoinSelectivity(assumed=0.3)
    assert not join.observe(None, left, right)
    assert (join.estimate, join.estimated) == (0.3, 0)


def test_an_estimate_made_before_any_pair_was_joined_is_off_once_a_round_shows_it():
    join = JoinSelectivity()
    join.observe(None, KEYS, KEYS)
    assert not join.observe(0.11, KEYS % 5, KEYS % 5)
    assert join.observe(0.2, KEYS % 5, KEYS % 5)
    assert join.estimate == pytest.approx(0.2)


def test_without_a_threshold_a_round_that_shows_the_same_changes_nothing():
    join = JoinSelectivity(threshold=0)
    join.observe(0.25, KEYS % 4, [0])
    assert not join.observe(join.estimate, KEYS % 5, [0])
    assert join.observe(0.75, KEYS % 5, [0])
    assert not join.observe(0.75, KEYS % 4, [0])


def test_a_selectivity_below_0_is_not_assumed():
    with pytest.raises(TrainingError, match="from 0 to 1"):
        JoinSelectivity(assumed=-0.5)
