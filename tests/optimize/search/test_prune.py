"""Which tests of a classifier pay, on a problem whose sums are known."""

import numpy as np
import pyarrow as pa
import pytest

from problems import training_set
from profiles import profile_of
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
        assert found.cost_us == pytest.approx((1000 + 100 * node_us + 2 * leaf_us) / 100)
    else:
        assert found.tree == Leaf(0)
        assert len(found.routes) == 1
        assert found.cost_us == pytest.approx(15.0), "one route has no overhead"


def test_a_bound_counts_one_test_and_two_leaves():
    problem = two_kinds(node_us=2.0, leaf_us=50.0)
    assert problem.least_us(TOGETHER) == pytest.approx(15.0)
    assert problem.least_us(APART) == pytest.approx(10.0 + 2.0 + 1.0)
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


@pytest.mark.parametrize(("limit_mb", "kept"), [(64e-6, True), (63e-6, False)])
def test_survivor_tables_are_kept_up_to_their_limit(monkeypatch, limit_mb, kept):
    """Two training tuples have tables of 2^2 numbers of 8 bytes: 64 in all."""
    monkeypatch.setattr("querymesh.optimize.search.problem.SURVIVORS_MB", limit_mb)
    problem = two_kinds()
    assert problem.route((0,)) == (1, 2)
    assert ("_survivors" in vars(problem)) is kept
