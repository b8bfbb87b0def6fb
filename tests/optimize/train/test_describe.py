"""The figures of a mesh over a profile, by hand."""

import numpy as np
import pyarrow as pa
import pytest

from profiles import profile_of, three_classes
from querymesh.classify.tree import Leaf, Member, Split
from querymesh.cost.route_time import Overheads
from querymesh.errors import OptionError
from querymesh.mesh.mesh import LeafStats, SharedMesh
from querymesh.optimize.train.describe import (
    best_single,
    costs_us,
    describe,
    leave_open,
    reach,
    route_search_for,
    single_mesh,
)
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query

QUERY = query("SELECT * FROM t")
OVERHEADS = Overheads(node_us=0.5, ruster_us=30.0, window=10)
KIND_A = Member("kind", ("a",))
TREE = Split(KIND_A, Leaf(1), Leaf(0))
ROUTES = ((1, 2), (2, 1))


def two_kinds(serves=()):
    """Three tuples of kind a are dropped by p2, one of kind b by p1: 8 or 3 µs to drop a tuple, 10
    or 5 to pass it."""
    outcomes = [[1, 0], [1, 0], [1, 0], [0, 1]]
    costs = [[8.0, 3.0], [10.0, 5.0]]
    return profile_of(outcomes, costs, sample=pa.table({"kind": list("aaab")}), serves=serves)


def described(profile, tree=TREE, routes=ROUTES, **kwargs):
    return describe(QUERY, profile, tree, routes, (1, 2), (), OVERHEADS, **kwargs)


def test_a_mesh_has_the_figures_of_its_leaves_and_of_equation_2():
    mesh = described(two_kinds())
    assert mesh.leaves == (LeafStats(0.75, 3.0, 13.0), LeafStats(0.25, 8.0, 8.0))
    tests_us, second_ruster_us = 0.5, 30.0 * 2 / 10
    assert mesh.expected_us == pytest.approx(0.75 * 3 + 0.25 * 8 + tests_us + second_ruster_us)
    assert mesh.single_us == pytest.approx((3 * 13 + 8) / 4)
    assert mesh.bound_us == pytest.approx((3 * 3 + 8) / 4)
    assert mesh.sample_rows == 4
    assert mesh.why == "2 kinds of tuples are worth telling apart"
    assert described(two_kinds(), why="I say so").why == "I say so"
    assert not isinstance(mesh, SharedMesh)


def test_its_operators_have_their_costs_and_pass_rates():
    first, second = described(two_kinds()).operators
    assert (first.name, first.pass_rate, first.drop_us, first.pass_us) == ("p1", 0.75, 8.0, 10.0)
    assert first.cost_us == pytest.approx(0.25 * 8 + 0.75 * 10)
    assert (second.pass_rate, second.drop_us, second.pass_us) == (0.25, 3.0, 5.0)


def test_a_tuple_costs_its_route_its_tests_and_its_share_of_the_rusters():
    profile = two_kinds()
    second_ruster_us = 30.0 * 2 / 10
    expected = [3.5 + second_ruster_us] * 3 + [8.5 + second_ruster_us]
    assert costs_us(profile, TREE, ROUTES, OVERHEADS).tolist() == pytest.approx(expected)
    alone = costs_us(profile, Leaf(1), ROUTES, OVERHEADS)
    assert alone.tolist() == [3.0, 3.0, 3.0, 13.0], "one route has no test and no ruster of its own"


def test_a_leaf_that_no_tuple_reaches_costs_nothing_and_stays():
    tree = Split(Member("kind", ("z",)), Leaf(1), Leaf(0))
    mesh = described(two_kinds(), tree)
    assert mesh.leaves[0] == LeafStats(0.0, 0.0, 0.0)
    assert mesh.leaves[1].share == 1.0
    assert [rows.tolist() for rows in reach(two_kinds(), tree)] == [[], [0, 1, 2, 3]]


def test_a_leaf_that_no_tuple_reaches_leaves_open_what_all_tuples_would():
    alike = profile_of(np.ones((4, 2)), sample=pa.table({"kind": list("aaab")}))
    mesh = described(alike, Split(Member("kind", ("z",)), Leaf(0), Leaf(1)))
    open_single, beside_it = leave_open(mesh, alike, 0.1).uncertain
    assert open_single == ((1, 2),)
    assert beside_it == ((2,), (1,)), "another order may not cost what the single route does"
    assert leave_open(mesh, alike, 0.0) == mesh


def test_a_mesh_of_one_route_costs_what_the_route_does():
    mesh = single_mesh(QUERY, two_kinds(), (2, 1), (), "one will do")
    assert mesh.routes == ((2, 1),) == (mesh.single,)
    assert mesh.expected_us == mesh.single_us == pytest.approx((3 * 3 + 13) / 4)
    assert mesh.why == "one will do"


def test_queries_in_one_pass_have_a_mesh_and_a_route_search_of_their_own():
    """Operator 1 serves both queries and drops most; alone, the cheap operator 2 would be first."""
    outcomes = np.array([[0, 0]] * 9 + [[1, 1]])
    shared = profile_of(outcomes, [1.5, 1.0], serves=(0b11, 0b01))
    alone = profile_of(outcomes, [1.5, 1.0])
    assert (best_single(shared), best_single(alone)) == ((1, 2), (2, 1))
    assert isinstance(single_mesh(QUERY, shared, (1, 2), (), "shared"), SharedMesh)
    with pytest.raises(OptionError, match="queries that share one pass have a route search"):
        route_search_for(shared, Training(route_search="rank"))
    assert route_search_for(shared, Training()).serves == (0b11, 0b01)
    assert route_search_for(alone, Training(route_search="rank")).__name__ == "rank"


def test_no_operators_have_the_empty_route():
    assert best_single(profile_of(np.ones((3, 0)))) == ()
    assert len(best_single(three_classes(50))) == 3
