from itertools import pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.optimize.search.lattice import (
    bell_number,
    every_partition,
    merges,
    moves,
    neighbour_count,
    neighbours,
    partition,
    partition_text,
    random_neighbour,
    splits,
    stirling_number,
)

EXAMPLE_2 = (
    "1234, 1/234, 2/134, 3/124, 4/123, 12/34, 13/24, 14/23, 12/3/4, 1/23/4, 1/2/34, 13/2/4, "
    "14/2/3, 24/1/3, 1/2/3/4"
)


def read(text):
    """A partition in the paper's notation, whatever the order of its subsets."""
    return partition([[int(digit) - 1 for digit in group] for group in text.split("/")])


def texts(partitions):
    return {partition_text(groups) for groups in partitions}


@st.composite
def partitions(draw, most=7):
    labels = draw(st.lists(st.integers(0, 3), min_size=1, max_size=most))
    return partition([[i for i, x in enumerate(labels) if x == k] for k in range(4)])


@given(partitions(8), st.integers(0, 1000))
def test_a_random_neighbour_is_one_of_the_neighbours(groups, seed):
    near = random_neighbour(groups, np.random.default_rng(seed))
    assert near in set(neighbours(groups)) or (near == groups and len(groups[0]) == 1)


@given(partitions())
def test_neighbours_are_partitions_of_the_same_tuples_each_once(groups):
    near = list(neighbours(groups))
    assert len(set(near)) == len(near)
    assert groups not in near
    for other in near:
        assert other == partition(other)
        assert sorted(sum(other, ())) == sorted(sum(groups, ()))
        assert groups in set(neighbours(other))


@given(partitions())
def test_neighbours_are_as_many_as_they_are_counted(groups):
    assert neighbour_count(groups) == len(list(neighbours(groups)))


def test_a_group_may_be_a_numpy_array():
    assert partition([np.array([2, 0]), np.array([], dtype=int), np.array([1])]) == ((0, 2), (1,))


def test_partitions_are_written_as_in_example_2():
    assert partition_text(partition([[0, 1, 2], [3]])) == "123/4"
    assert partition_text(partition([[1, 3], [0], [2]])) == "1/24/3"
    assert partition_text(partition([range(9), [9]])) == "1,2,3,4,5,6,7,8,9/10"


def test_example_2_the_fifteen_partitions_of_four_tuples():
    printed = [read(text) for text in EXAMPLE_2.split(", ")]
    assert len(set(printed)) == 15
    assert set(every_partition(4)) == set(printed)


def test_equation_1_counts_the_partitions():
    assert [bell_number(n) for n in range(1, 11)] == [
        1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975,
    ]  # fmt: skip
    assert stirling_number(4, 2) == 7
    for n in range(2, 20):
        assert bell_number(n) == sum(comb(n - 1, k) * bell_number(k) for k in range(n))


@pytest.mark.parametrize("n", range(1, 8))
def test_every_partition_comes_once_and_there_are_bell_many(n):
    found = list(every_partition(n))
    assert len(set(found)) == len(found) == bell_number(n)
    assert all(groups == partition(groups) for groups in found)


def test_example_1_merges_two_subsets():
    before = partition([[0, 1], [2, 3], [4, 5, 6]])
    assert partition([[0, 1], [2, 3, 4, 5, 6]]) in set(merges(before))


def test_examples_2_and_3_the_splits_of_a_node():
    assert texts(splits(read("1/234"))) == {"1/23/4", "1/24/3", "1/2/34"}
    assert read("24/1/3") in set(splits(read("24/13")))
    assert texts(merges(read("1/234"))) == {"1234"}
    assert texts(moves(read("1/234"))) == {"12/34", "13/24", "14/23"}


def test_example_4_is_a_walk_along_edges():
    walk = ["1/234", "1/23/4", "1/2/3/4", "12/3/4", "123/4"]
    for here, there in pairwise(walk):
        assert read(there) in set(neighbours(read(here)))


@pytest.mark.parametrize("text", ["1234", "12/34", "1/234", "1/2/34", "1/2/3/4"])
def test_every_neighbour_is_met_by_chance_and_no_kind_of_step_is_left_out(text):
    rng = np.random.default_rng(0)
    met = {random_neighbour(read(text), rng) for _ in range(400)}
    assert met >= set(neighbours(read(text)))


def test_a_single_tuple_has_no_neighbour_but_itself():
    assert random_neighbour(read("1"), np.random.default_rng(0)) == read("1")
    assert neighbour_count(read("1")) == 0
