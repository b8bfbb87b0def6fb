import numpy as np
import pyarrow as pa
from problems import OVERHEADS, stock_problem, training_set
from profiles import profile_of

from querymesh.classify.tree import Leaf, Member, Split, Threshold
from querymesh.optimize.lattice import partition_text
from querymesh.optimize.problem import Problem
from querymesh.optimize.start import STARTS, from_tree

RNG = np.random.default_rng(0)


def starting(name, problem):
    return partition_text(STARTS[name](problem, np.random.default_rng(0)))


def test_the_extremes_are_the_ends_of_the_lattice():
    assert starting("extreme-1", stock_problem()) == "1234"
    assert starting("extreme-n", stock_problem()) == "1/2/3/4"


def test_route_driven_groups_tuples_of_one_best_route_however_their_content_differs():
    assert starting("route-driven", stock_problem()) == "1/23/4"


def test_content_driven_groups_near_tuples_whatever_their_routes():
    place = np.repeat([0.0, 1.0, 2.0, 30.0, 31.0, 60.0], 10)
    kind = np.where(place == 31.0, "b", "a")
    member = np.repeat(np.arange(6), 10)
    outcomes = RNG.integers(0, 2, (60, 2))
    profile = profile_of(outcomes, sample=pa.table({"x": place, "kind": pa.array(kind)}))
    problem = Problem(training_set(profile, member), OVERHEADS)
    assert starting("content-driven", problem) == "12/34/5/6"  # near by rank, of one kind


def test_content_driven_tells_missing_values_from_numbers():
    x = pa.array([None] * 10 + [1.0] * 10 + [1.5] * 10)
    profile = profile_of(RNG.integers(0, 2, (30, 2)), sample=pa.table({"x": x}))
    problem = Problem(training_set(profile, np.repeat([0, 1, 2], 10)), OVERHEADS)
    assert starting("content-driven", problem).startswith("1/")


def test_random_pick_takes_the_cheapest_of_its_picks():
    problem = stock_problem()
    picked = problem.solve(STARTS["random-pick"](problem, np.random.default_rng(3)))
    assert picked.cost_us == min(mesh.cost_us for mesh in problem._meshes.values())


def test_a_warm_start_groups_tuples_by_the_leaf_that_most_of_them_reach():
    tree = Split(Member("symbol", ("Apple", "Ford")), Leaf(0), Leaf(1))
    assert partition_text(from_tree(tree)(stock_problem(), RNG)) == "14/23"
    assert partition_text(from_tree(Leaf(0))(stock_problem(), RNG)) == "1234"
    place = np.repeat([1.0, 2.0, 3.0], [6, 6, 6]) + np.tile([0, 0, 0, 0, 0, 0.9], 3)
    profile = profile_of(RNG.integers(0, 2, (18, 2)), sample=pa.table({"x": place}))
    problem = Problem(training_set(profile, np.repeat([0, 1, 2], 6)), OVERHEADS)
    split = Split(Threshold("x", 2.5, False), Leaf(0), Leaf(1))
    assert partition_text(from_tree(split)(problem, RNG)) == "12/3"
