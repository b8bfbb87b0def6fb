import re
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from problems import OVERHEADS, stock_problem, training_set
from profiles import profile_of
from querymesh.classify.condense import condense
from querymesh.classify.tree import Leaf, Member, Split, Threshold
from querymesh.errors import TrainingError
from querymesh.optimize.search import start
from querymesh.optimize.search.lattice import partition_text
from querymesh.optimize.search.problem import Problem
from querymesh.optimize.search.start import STARTS, checked, from_tree
from querymesh_lab.papers.qm.generated import generated_training_set

RNG = np.random.default_rng(0)


def starting(name, problem):
    return partition_text(STARTS[name](problem, np.random.default_rng(0)))


def test_the_extremes_are_the_ends_of_the_lattice():
    assert starting("extreme-1", stock_problem()) == "1234"
    assert starting("extreme-n", stock_problem()) == "1/2/3/4"


def test_route_driven_groups_tuples_of_one_best_route_however_their_content_differs():
    assert starting("route-driven", stock_problem()) == "1/23/4"


def test_content_driven_groups_near_tuples_whatever_their_routes():
    place = np.repeat([0.0, 1.0, 2.0, 30.0, 31.0, 60.0], [10, 12, 14, 10, 10, 12])
    kind = np.where(place == 31.0, "b", "a")
    member = np.unique(place, return_inverse=True)[1]
    outcomes = RNG.integers(0, 2, (len(place), 2))
    profile = profile_of(outcomes, sample=pa.table({"x": place, "kind": pa.array(kind)}))
    problem = Problem(training_set(profile, member), OVERHEADS)
    assert starting("content-driven", problem) == "1/234/5/6"  # by rank from 3; 5 is another kind


def test_content_driven_tells_missing_values_from_numbers():
    x = pa.array([None] * 10 + [1.0] * 10 + [1.5] * 10 + [2.0] * 90)
    profile = profile_of(RNG.integers(0, 2, (120, 2)), sample=pa.table({"x": x}))
    problem = Problem(training_set(profile, np.repeat([0, 1, 2, 3], [10, 10, 10, 90])), OVERHEADS)
    assert starting("content-driven", problem) == "1/23/4"


def test_content_driven_goes_by_content_and_not_by_where_the_operators_cut_it():
    """Operators tell three narrow ranges apart at one end, and nothing in the wide rest."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 100, 4000)
    cuts = [4.0, 8.0, 12.0]
    outcomes = np.column_stack([x < cuts[0], (x > cuts[0]) & (x < cuts[1]), x > cuts[2]])
    profile = profile_of(outcomes.astype(float), sample=pa.table({"x": x}))
    problem = Problem(condense(profile, 4), OVERHEADS)
    assert problem.training.size == 4
    assert starting("content-driven", problem) == "123/4"
    assert starting("route-driven", problem) != "123/4"


def test_content_driven_is_a_start_of_its_own():
    starts = []
    for seed in range(40):
        problem = Problem(generated_training_set(8, 3, rows=400, seed=seed), OVERHEADS)
        starts.append(STARTS["content-driven"](problem, RNG))
    groups = [len(start) for start in starts]
    assert min(groups) >= 2
    assert sum(count == 8 for count in groups) <= 4
    assert len(set(starts)) > 20


@pytest.mark.parametrize(
    ("returned", "fault"),
    [
        ([[0, 1], [3]], r"leaves out the tuples \[2\]"),
        ([[0, 1], [1, 2, 3]], r"has the tuples \[1\] more than once"),
        ([[0, 1], [2, 3, 4]], r"has unknown tuples \[4\]"),
        ([[0, 1], [2, 3, -1]], r"has unknown tuples \[-1\]"),
        ([0, 1, 2, 3], "is no collection of groups"),
        ("12/34", "is no collection of groups"),
        ([[0, 1], [2.0, 3.0]], "is no collection of groups"),
        (None, "is no collection of groups"),
    ],
)
def test_a_start_that_gives_no_partition_is_refused_with_what_it_gave(returned, fault):
    def mine(problem, rng):
        return returned

    text = rf"start mine returned {re.escape(repr(returned))}, which {fault}"
    with pytest.raises(TrainingError, match=text):
        checked(mine)(stock_problem(), RNG)


@pytest.mark.parametrize(
    "returned",
    [
        [[3], [], [2, 1], [0]],
        [np.array([3]), np.array([2, 1]), np.array([0])],
        ({1, 2}, {0}, {3}),
        iter([range(1, 3), range(1), range(3, 4)]),
    ],
)
def test_a_start_may_write_its_partition_as_it_likes(returned):
    assert partition_text(checked(lambda problem, rng: returned)(stock_problem(), RNG)) == "1/23/4"


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


class Asked:
    """A random generator that says what it was asked for, and has every tuple by itself."""

    def __init__(self):
        self.calls = []

    def integers(self, low, high, size):
        self.calls.append((low, high, size))
        return np.arange(size)


@pytest.mark.parametrize(("size", "groups"), [(1, 2), (3, 2), (4, 3), (8, 3), (9, 4)])
def test_random_pick_draws_four_times_of_about_the_root_of_the_tuples_groups(size, groups):
    rng, member = Asked(), np.arange(3 * size) % size
    profile = profile_of(np.ones((3 * size, 2)), sample=pa.table({"x": member}))
    problem = Problem(training_set(profile, member), OVERHEADS)
    assert STARTS["random-pick"](problem, rng) == tuple((number,) for number in range(size))
    assert rng.calls == [(0, groups, size)] * 4


def test_random_pick_takes_the_first_of_the_cheapest(monkeypatch):
    problem = stock_problem()
    drawn = iter([[0, 0, 0, 0], [0, 1, 1, 2], [0, 0, 0, 1], [0, 0, 1, 1]])
    rng = SimpleNamespace(integers=lambda low, high, size: np.array(next(drawn)))
    prices = {"1234": 9, "1/23/4": 7, "123/4": 5, "12/34": 5}
    monkeypatch.setattr(
        problem, "solve", lambda groups: SimpleNamespace(cost_us=prices[partition_text(groups)])
    )
    assert partition_text(STARTS["random-pick"](problem, rng)) == "123/4"


def test_numbers_are_apart_by_their_mean_ranks_and_by_what_is_missing():
    """Six numbers: 1 has rank 1/6, 2 has 1/2, 3 has 5/6. The means of the three tuples are 1/6,
    1/2 and 13/18; of the second 1/2 is missing, of the third 1/4."""
    x = pa.array([1.0, 1.0, 2.0, None, 3.0, 3.0, 2.0, None])
    member = np.array([0, 0, 1, 1, 2, 2, 2, 2])
    profile = profile_of(np.ones((8, 2)), sample=pa.table({"x": x}))
    apart = start._numbers_apart(training_set(profile, member), x)
    far = (13 / 18 - 1 / 6) * 3 / 4
    assert apart == pytest.approx(np.array([[0, 0.5, far], [0.5, 0, 0.25], [far, 0.25, 0]]))


def test_a_number_that_a_tuple_never_has_is_missing_and_no_number_at_all_is_no_difference():
    member = np.array([0, 0, 1, 1])
    profile = profile_of(np.ones((4, 2)), sample=pa.table({"x": [1, 1, 2, 2]}))
    training = training_set(profile, member)
    some = start._numbers_apart(training, pa.array([1.0, 2.0, None, None]))
    assert some.tolist() == [[0, 1], [1, 0]]
    none = start._numbers_apart(training, pa.array([None] * 4, pa.float64()))
    assert none.tolist() == [[0, 0], [0, 0]]


def test_sets_of_values_are_apart_by_the_share_that_differs():
    """Of the first tuple's rows half are a, of the second one's a quarter; b and c are the rest."""
    kind = pa.array(["a", "a", "b", "b", "a", "c", "c", "c"])
    profile = profile_of(np.ones((8, 2)), sample=pa.table({"kind": kind}))
    training = training_set(profile, np.repeat([0, 1], 4))
    assert start._content_distance(training).tolist() == [[0, 0.75], [0.75, 0]]


def test_content_driven_joins_what_is_closer_than_a_third_to_the_heaviest(monkeypatch):
    member = np.repeat([0, 1, 2, 3], [2, 5, 2, 2])
    profile = profile_of(np.ones((11, 2)), sample=pa.table({"x": member}))
    problem = Problem(training_set(profile, member), OVERHEADS)
    apart = np.full((4, 4), 0.9)
    apart[1, 0], apart[1, 2], apart[1, 3], apart[2, 3] = 0.33, 0.34, 1 / 3, 0.1
    monkeypatch.setattr(start, "_content_distance", lambda training: apart)
    assert starting("content-driven", problem) == "12/34"
