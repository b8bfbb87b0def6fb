import gc
import math
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import OVERHEADS, random_problems, stock_problem
from querymesh.classify.induce import Growth, induce
from querymesh.classify.tree import Leaf, Split, answers, leaves
from querymesh.errors import TrainingError
from querymesh.optimize.routes.rank import rank
from querymesh.optimize.routes.route_searches import auto
from querymesh.optimize.search.lattice import every_partition, partition, random_neighbour
from querymesh.optimize.search.problem import MAX_LEAVES, Problem
from querymesh.optimize.search.searches import SEARCHES
from querymesh.optimize.search.start import STARTS
from querymesh.optimize.search.stop import Stop
from querymesh_lab.papers.qm.generated import generated_training_set


def cost_row_by_row(problem, groups):
    """The cost of a partition as its definition reads: every sampled tuple by itself."""
    training, overheads = problem.training, problem.overheads
    profile, rows = training.profile, training.profile.rows
    of_group = [problem.route(group) for group in groups]
    routes = list(dict.fromkeys(of_group))
    label_of_tuple = np.zeros(training.size, dtype=np.int64)
    for group, route in zip(groups, of_group, strict=True):
        label_of_tuple[list(group)] = routes.index(route)
    growth = Growth(max_leaves=MAX_LEAVES, min_weight=max(2.0, 0.005 * rows))
    labels = label_of_tuple[training.member]
    tree = induce(training.attributes, training.codes, labels, np.ones(rows), growth)
    realized = np.array([profile.realized_us(route) for route in routes])
    leaf_us = overheads.route_us(profile.operators) * rows

    def prune(node, here):
        if isinstance(node, Leaf):
            return node, realized[node.label][here]
        yes = answers(node.test, training.column(node.test.attribute))[here]
        yes_tree, yes_us = prune(node.yes, here[yes])
        no_tree, no_us = prune(node.no, here[~yes])
        split_us = np.empty(len(here))
        split_us[yes], split_us[~yes] = yes_us, no_us
        split_us += overheads.node_us
        best = int(realized[:, here].sum(axis=1).argmin())
        saved = realized[best][here] - split_us
        pruned = Split(node.test, yes_tree, no_tree)
        added = len(list(leaves(pruned))) - 1
        doubt = saved.std() * math.sqrt(len(saved))
        if saved.sum() <= added * leaf_us + doubt + 1e-9:
            return Leaf(best), realized[best][here]
        return pruned, split_us

    pruned, row_us = prune(tree, np.arange(rows))
    count = len(list(leaves(pruned)))
    return (row_us.sum() + (count - 1) * leaf_us) / rows


@given(random_problems(), st.data())
@settings(max_examples=150, deadline=None)
def test_sums_over_cells_cost_a_partition_like_sums_over_tuples(problem, data):
    groups = partition([range(problem.training.size)])
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    for _ in range(4):
        groups = random_neighbour(groups, rng)
        assert problem.solve(groups).cost_us == pytest.approx(cost_row_by_row(problem, groups))


@given(random_problems(most_tuples=5))
@settings(max_examples=40, deadline=None)
def test_no_partition_costs_less_than_its_bound(problem):
    for groups in every_partition(problem.training.size):
        solution = problem.solve(groups)
        assert problem.least_us(groups) <= solution.cost_us * (1 + 1e-9)
        assert problem.solve_below(groups, solution.cost_us) is None
        above = solution.cost_us * 1.01 + 1e-6
        assert problem.solve_below(groups, above).cost_us == solution.cost_us


@given(random_problems(most_tuples=5))
@settings(max_examples=25, deadline=None)
def test_what_was_remembered_makes_no_difference(problem):
    for groups in every_partition(problem.training.size):
        afresh = Problem(problem.training, problem.overheads).solve(groups)
        assert problem.solve(groups) == afresh


@pytest.mark.parametrize("search", SEARCHES)
def test_no_subset_is_routed_twice_and_no_mesh_costed_twice(search):
    asked = Counter()

    def counting(subset):
        asked[subset.outcomes.tobytes()] += 1
        return auto(subset)

    problem = stock_problem(route_search=counting)
    SEARCHES[search](problem, STARTS["route-driven"], np.random.default_rng(0))
    assert set(asked.values()) == {1}
    assert problem.subsets_routed == len(asked) <= 2**4 - 1
    assert problem.meshes_costed <= problem.evaluated <= 15


def test_partitions_that_assign_the_same_routes_are_one_mesh():
    problem = stock_problem()
    problem.solve(partition([[0], [1, 2], [3]]))
    problem.solve(partition([[0], [1], [2], [3]]))
    assert problem.evaluated == 2
    assert problem.meshes_costed == 1


def test_memory_grows_with_what_is_remembered():
    problem = stock_problem()
    before = problem.memory_mb
    for groups in every_partition(4):
        problem.solve(groups)
    assert problem.memory_mb > before


@pytest.mark.parametrize("search", ["iterative-improvement", "simulated-annealing"])
def test_memory_is_about_what_the_search_allocates_and_keeps(search):
    training = generated_training_set(16, 4, rows=1000)
    rng, stop = np.random.default_rng(0), Stop(partitions=150)
    SEARCHES[search](Problem(training, OVERHEADS), STARTS["extreme-n"], rng, stop)
    gc.collect()
    tracemalloc.start()
    try:
        problem = Problem(training, OVERHEADS)
        SEARCHES[search](problem, STARTS["extreme-n"], rng, stop)
        gc.collect()
        kept_mb = tracemalloc.get_traced_memory()[0] / 1e6
    finally:
        tracemalloc.stop()
    assert 0.8 * kept_mb < problem.memory_mb < 1.5 * kept_mb


@pytest.mark.parametrize("search", ["iterative-improvement", "simulated-annealing"])
def test_a_bound_on_memory_is_crossed_midway_by_one_partition(search):
    problem = Problem(generated_training_set(16, 4, rows=1000), OVERHEADS)
    stop = Stop(memory_mb=1.5, iterations=10)
    found = SEARCHES[search](problem, STARTS["extreme-n"], np.random.default_rng(0), stop)
    assert found.stopped == "it remembered 1.5 MB"
    assert problem.evaluated > 30
    assert 1.5 <= problem.memory_mb < 1.6


def test_survivor_tables_are_made_when_a_route_search_asks_for_one():
    problem = stock_problem(route_search=rank)
    problem.solve(partition([range(4)]))
    assert "_survivors" not in vars(problem)
    problem = stock_problem()
    assert "_survivors" not in vars(problem)
    problem.solve(partition([range(4)]))
    assert "_survivors" in vars(problem)


def test_a_partition_that_was_only_bounded_counts_as_looked_at():
    problem = stock_problem()
    SEARCHES["optimal"](problem, STARTS["extreme-1"], np.random.default_rng(0))
    assert problem.evaluated == 15


@pytest.mark.parametrize("route", [(1,), (1, 1, 1), (0, 1, 2), (1, 2, 3, 4), "123", None, 3])
def test_a_route_that_is_none_is_refused_with_the_function_that_gave_it(route):
    def mine(subset):
        return route

    with pytest.raises(TrainingError, match=r"route search mine returned .*, which is not a"):
        stock_problem(route_search=mine).solve(partition([range(4)]))


def test_a_route_may_be_any_sequence_of_integers():
    problem = stock_problem(route_search=lambda subset: np.array([3, 1, 2]))
    assert problem.route((0, 1)) == (3, 1, 2)
    assert all(type(operator) is int for operator in problem.route((0, 1)))
