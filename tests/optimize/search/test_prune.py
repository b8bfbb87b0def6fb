"""Which tests of a classifier pay, on a problem whose sums are known."""

from sys import getsizeof

import numpy as np
import pyarrow as pa
import pytest

from problems import training_set
from profiles import profile_of
from querymesh.classify.induce import Growth
from querymesh.classify.tree import Leaf, Split
from querymesh.cost.route_time import Overheads
from querymesh.optimize.search.lattice import partition
from querymesh.optimize.search.problem import Problem


def two_kinds(node_us=0.0, leaf_us=0.0):
    """50 tuples that the first of two operators drops and 50 that the second does, at 10 µs each.

    Told apart they save 500 µs over one route: 10 each for half of them, with a standard error of
    the sum of 50. `leaf_us` is what a leaf costs over all tuples.
    """
    kind = np.repeat([0, 1], 50)
    profile = profile_of(
        np.array([[0, 1], [1, 0]])[kind],
        [10.0, 10.0],
        sample=pa.table({"kind": pa.array(np.array(["a", "b"])[kind])}),
    )
    return Problem(training_set(profile, kind), Overheads(node_us, leaf_us, window=200))


APART, TOGETHER = partition([[0], [1]]), partition([[0, 1]])


@pytest.mark.parametrize(
    ("node_us", "leaf_us", "pays"),
    [
        (0.0, 0.0, True),
        (4.4, 0.0, True),
        (4.6, 0.0, False),
        (0.0, 440.0, True),
        (0.0, 460.0, False),
        (2.0, 240.0, True),
        (2.0, 260.0, False),
    ],
)
def test_a_test_pays_for_itself_for_one_more_leaf_and_for_the_error_of_its_saving(
    node_us, leaf_us, pays
):
    found = two_kinds(node_us, leaf_us).solve(APART)
    if pays:
        assert isinstance(found.tree, Split)
        assert set(found.routes) == {(1, 2), (2, 1)}
        assert found.cost_us == pytest.approx((1000 + 100 * node_us + leaf_us) / 100)
    else:
        assert found.tree == Leaf(0)
        assert len(found.routes) == 1
        assert found.cost_us == pytest.approx(15.0), "one route has no overhead"


def test_a_bound_counts_one_test_and_one_more_leaf():
    problem = two_kinds(node_us=2.0, leaf_us=50.0)
    assert problem.least_us(TOGETHER) == pytest.approx(15.0)
    assert problem.least_us(APART) == pytest.approx(10.0 + 2.0 + 0.5)
    assert problem.least_us(APART) == pytest.approx(problem.solve(APART).cost_us)
    assert two_kinds(node_us=20.0).least_us(APART) == pytest.approx(15.0)


def test_what_is_remembered_grows_with_every_new_subset_route_and_partition():
    problem = two_kinds()
    sizes = [problem.memory_mb]
    for ask in (
        lambda: problem.route((0,)),
        lambda: problem.route((0, 1)),
        lambda: problem.least_us(APART),
        lambda: problem.solve(APART),
        lambda: problem.solve(TOGETHER),
    ):
        ask()
        sizes.append(problem.memory_mb)
    assert sizes == sorted(set(sizes))
    problem.solve(APART)
    assert problem.memory_mb == sizes[-1]


@pytest.mark.parametrize(
    ("limit_mb", "kept"), [(64e-6, True), (63.99999e-6, False), (63e-6, False)]
)
def test_survivor_tables_are_kept_up_to_their_limit(monkeypatch, limit_mb, kept):
    """Two training tuples have tables of 2^2 numbers of 8 bytes: 64 in all."""
    monkeypatch.setattr("querymesh.optimize.search.problem.SURVIVORS_MB", limit_mb)
    problem = two_kinds()
    assert problem.route((0,)) == (1, 2)
    assert ("_survivors" in vars(problem)) is kept


def test_what_is_remembered_is_counted_to_the_byte():
    """An entry of a dictionary is taken for 110 bytes, an object for 64, a number for 8.

    The problem has two training tuples, two cells, two patterns of outcomes, two operators.
    """
    problem = two_kinds()
    grown = []

    def bytes_of(ask):
        ask()
        grown.append(round(problem.memory_mb * 1e6) - sum(grown))
        return grown[-1]

    assert bytes_of(lambda: None) == 0
    of_group = getsizeof((0,)) + 110
    tables = 2 * 4 * 8
    assert bytes_of(lambda: problem.route((0,))) == of_group + tables
    assert bytes_of(lambda: problem.route((0,))) == 0
    looked_at = 110 + 2 * 64 + 2 * 8
    bound = getsizeof(frozenset({0, 1})) + 110
    costs = 8 * (2 * 2 + 2 * 2)  # of two routes, by pattern and by cell
    assert bytes_of(lambda: problem.least_us(APART)) == looked_at + of_group + bound + costs
    assert bytes_of(lambda: problem.least_us(APART)) == 0
    mesh = getsizeof((0, 1)) + 64 * (3 * 2 + 5) + 110  # of two leaves
    tree = 2 * 16 + 110 + 2 * 64 * 3  # of three nodes, by the labels of two cells
    root = (16 + 16 + 110 + 4 * 64) + (16 + 2 * 3 * 8 + 8 * 3 + 12 * 64)  # a test on three bins
    sides = 2 * (8 + 8 + 110 + 4 * 64)
    squares = 2 * 8
    assert bytes_of(lambda: problem.solve(APART)) == mesh + tree + root + sides + squares
    assert bytes_of(lambda: problem.solve(APART)) == 0


@pytest.mark.parametrize(("rows", "least"), [(100, 2.0), (400, 2.0), (1000, 5.0)])
def test_a_leaf_has_half_a_percent_of_the_tuples_and_two_at_least(rows, least):
    kind = np.repeat([0, 1], rows // 2)
    profile = profile_of(np.ones((rows, 2)), sample=pa.table({"kind": kind}))
    grown = Problem(training_set(profile, kind), Overheads(0.0, 0.0, 200))._growth
    assert grown == Growth(max_leaves=32, min_weight=least)


@pytest.mark.parametrize(
    ("tuples", "operators", "kept"), [(488, 14, True), (489, 14, False), (2, 15, False)]
)
def test_survivor_tables_have_64_megabytes_of_up_to_fourteen_operators(tuples, operators, kept):
    """A tuple's table of 14 operators has 2^14 numbers: 0.131 MB, 63.96 of 488 tuples."""
    member = np.arange(tuples)
    profile = profile_of(np.ones((tuples, operators)), sample=pa.table({"x": member}))
    problem = Problem(training_set(profile, member), Overheads(0.0, 0.0, 200))
    assert (problem._subset((0, 1)).table is not None) is kept


def test_a_single_tuple_costs_what_its_route_does():
    profile = profile_of([[1, 0]], [10.0, 4.0], sample=pa.table({"x": [1]}))
    problem = Problem(training_set(profile, [0]), Overheads(1.0, 1.0, 200))
    assert problem.solve(((0,),)).cost_us == 4.0
    assert problem.least_us(((0,),)) == pytest.approx(4.0)


def test_costs_by_cell_are_remembered_for_a_pair_of_routes_either_way():
    costs = two_kinds()._costs
    there = costs.squares((1, 2), (2, 1))
    assert there.tolist() == [50 * 100.0, 50 * 100.0], "50 tuples that save or lose 10 µs each"
    assert costs.squares((2, 1), (1, 2)) is there
    assert costs.sums((1, 2)).tolist() == [500.0, 1000.0]
    assert costs.sums((1, 2)) is costs.sums((1, 2))
