"""The contract that every search keeps from every start, and the paper's examples 3 and 4."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import OVERHEADS, random_problems, stock_problem

from querymesh.errors import TrainingError
from querymesh.optimize.lattice import bell_number, every_partition, partition, partition_text
from querymesh.optimize.problem import Problem
from querymesh.optimize.search import SEARCHES
from querymesh.optimize.simulated_annealing import simulated_annealing
from querymesh.optimize.start import STARTS
from querymesh.optimize.stop import Stop
from querymesh.reproduce.generated import generated_training_set, time_search

EXAMPLE_4 = "1/234 1/23/4 1/2/3/4 12/3/4 123/4"
HEURISTICS = ("iterative-improvement", "simulated-annealing")


def allowed(route, after):
    return all(after[k - 1] <= set(route[:i]) for i, k in enumerate(route))


def read(text):
    return partition([[int(digit) - 1 for digit in group] for group in text.split("/")])


def start_at(text):
    return lambda problem, rng: read(text)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("search", SEARCHES)
@given(problem=random_problems(), seed=st.integers(0, 1000))
@settings(max_examples=12, deadline=None)
def test_a_search_keeps_its_contract(search, start, problem, seed):
    def run(within):
        return SEARCHES[search](
            within, STARTS[start], np.random.default_rng(seed), Stop(partitions=60)
        )

    found = run(problem)
    size, after = problem.training.size, problem.training.profile.after
    assert found.partition == partition(found.partition)
    assert sorted(sum(found.partition, ())) == list(range(size))
    began = problem.solve(STARTS[start](problem, np.random.default_rng(seed)))
    assert found.cost_us <= began.cost_us
    assert all(allowed(route, after) for route in found.routes)
    assert found.stopped
    assert run(problem) == found
    assert run(Problem(problem.training, problem.overheads)) == found


@given(random_problems(most_tuples=5))
@settings(max_examples=30, deadline=None)
def test_the_optimum_is_the_cheapest_of_all_partitions(problem):
    found = SEARCHES["optimal"](problem, STARTS["extreme-1"], np.random.default_rng(0))
    every = every_partition(problem.training.size)
    assert found.cost_us == min(problem.solve(groups).cost_us for groups in every)


def test_the_heuristics_come_near_the_optimum_on_a_hundred_problems_of_eight_tuples():
    near = dict.fromkeys(HEURISTICS, 0)
    for seed in range(100):
        training = generated_training_set(8, 2 + seed % 3, rows=400, seed=seed)
        problem = Problem(training, OVERHEADS)
        best = SEARCHES["optimal"](problem, STARTS["route-driven"], np.random.default_rng(seed))
        assert best.stopped == f"all {bell_number(8):,} partitions were looked at"
        for search in HEURISTICS:
            afresh = np.random.default_rng(seed)
            found = SEARCHES[search](problem, STARTS["route-driven"], afresh)
            near[search] += found.cost_us <= 1.02 * best.cost_us
    assert min(near.values()) >= 95, near


def test_example_3_from_two_starts_to_the_same_minimum():
    problem = stock_problem()
    optimum = SEARCHES["optimal"](problem, STARTS["extreme-n"], np.random.default_rng(0))
    assert set(optimum.routes) == {(3, 2, 1), (1, 2, 3)}  # as in example 5
    assert optimum.cost_us == problem.solve(read("123/4")).cost_us
    for start in ("1/234", "1234"):
        found = SEARCHES["iterative-improvement"](
            problem, start_at(start), np.random.default_rng(1), Stop(iterations=1)
        )
        assert found.cost_us == optimum.cost_us
        assert found.stopped == "1 iteration was done"


def test_example_4_the_printed_walk_never_goes_uphill_and_annealing_ends_where_it_does():
    problem = stock_problem()
    walk = [problem.solve(read(text)).cost_us for text in EXAMPLE_4.split()]
    assert walk[0] > walk[1] == walk[2] > walk[3] == walk[4]
    found = SEARCHES["simulated-annealing"](problem, start_at("1/234"), np.random.default_rng(0))
    assert found.cost_us == walk[-1]


def test_annealing_walks_uphill_when_hot_but_returns_the_best_it_met():
    problem = stock_problem()
    began = []

    def optimum(problem, rng):
        began.append(problem.evaluated)
        return read("123/4")

    found = simulated_annealing(
        problem, optimum, np.random.default_rng(0), temperature=10.0, cooling=0.99
    )
    assert partition_text(found.partition) == "123/4"
    assert began == [0]
    assert problem.evaluated == 15  # only uphill leads to all of them


def test_the_optimal_search_refuses_what_would_never_end():
    problem = Problem(generated_training_set(12, 2, rows=60), OVERHEADS)
    with pytest.raises(TrainingError, match=r"4,213,597 partitions of 12 training tuples.*most 10"):
        SEARCHES["optimal"](problem, STARTS["extreme-1"], np.random.default_rng(0))


def test_a_search_can_be_timed_by_tuples_and_operators():
    timed = time_search(12, 3, search="simulated-annealing", stop=Stop(partitions=50))
    assert (timed.search, timed.tuples, timed.operators) == ("simulated-annealing", 12, 3)
    assert timed.found_us <= timed.start_us
    assert 0 < timed.meshes <= timed.partitions <= 51
    assert timed.seconds > 0
