import re
from functools import partial

import numpy as np
import pytest

from profiles import profile_of, three_classes
from querymesh.cost.route_time import Overheads
from querymesh.errors import OptionError, QueryMeshError, TrainingError
from querymesh.optimize.search.iterative_improvement import iterative_improvement
from querymesh.optimize.search.lattice import partition
from querymesh.optimize.search.searches import SEARCHES
from querymesh.optimize.search.stop import Stop
from querymesh.optimize.train.folds import holdout
from querymesh.optimize.train.presets import PRESETS
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query

OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)
QUERY = query("SELECT * FROM t")


def test_the_presets_are_those_of_tables_1_and_3():
    first, third = Training.preset("table-1"), Training.preset("table-3")
    assert (first.sample_rows, first.training_tuples, first.stop.iterations) == (1000, 10, 3)
    assert (first.start, first.search) == ("route-driven", "iterative-improvement")
    assert (third.sample_rows, third.training_tuples) == (1000, 100)
    assert third.start == "content-driven"
    assert third.search == "simulated-annealing"
    assert {(t.window, t.least_ruster) for t in (first, third)} == {(1000, 100)}
    assert {t.stop for t in (first, third)} == {Stop(iterations=3)}
    assert Training.preset("table-1", seed=7).seed == 7


@pytest.mark.parametrize("preset", PRESETS)
def test_either_preset_finds_the_three_classes(preset):
    mesh = train_mesh(QUERY, three_classes(), OVERHEADS, Training.preset(preset))
    assert len(mesh.routes) == 3
    assert (mesh.window, mesh.least_ruster) == (1000, 100)


@pytest.mark.parametrize(
    "choice",
    [{"start": "content"}, {"search": "tabu"}, {"route_search": "ranks"}, {"judge": "jury"}],
)
def test_an_unknown_strategy_lists_the_known_ones(choice):
    with pytest.raises(QueryMeshError, match=r"unknown .* Known: |unknown .* did you mean"):
        Training(**choice)


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(QueryMeshError, match="table-1, table-3"):
        Training.preset("table-2")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"folds": 1}, "folds must be at least 2"),
        ({"window": 0}, "window must be at least 1"),
        ({"sample_rows": 0}, "sample_rows must be at least 1, not 0"),
        ({"training_tuples": 0}, "training_tuples must be at least 1, not 0"),
        ({"most_sample_rows": 0}, "most_sample_rows must be at least 1, not 0"),
        ({"least_ruster": -1}, "least_ruster must be at least 0"),
        ({"accuracy": 1.0}, "accuracy is a share between 0 and 1"),
        ({"accuracy": 0.9, "holdout": 0.0, "judge": "holdout"}, "tuples kept back"),
        ({"accuracy": 0.9, "most_sample_rows": 10}, "most_sample_rows, 10, is less"),
        ({"stop": 3}, r"stop must be a Stop, such as Stop\(iterations=3\), not 3"),
        ({"stop": None}, "stop must be a Stop"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"seed": 1.5}, "seed must be an integer, not 1.5"),
        ({"sample_rows": "2000"}, "sample_rows must be an integer, not '2000'"),
        ({"sample_rows": 2000.0}, "sample_rows must be an integer, not 2000.0"),
        ({"folds": True}, "folds must be an integer, not True"),
        ({"most_sample_rows": float("nan")}, "most_sample_rows must be an integer, not nan"),
        ({"holdout": "a third"}, "holdout must be a number, not 'a third'"),
        ({"holdout": float("nan")}, "holdout is a share"),
        ({"holdout": 1.0}, "holdout is a share from 0 to below 1, not 1.0"),
        ({"holdout": -0.1}, "holdout is a share"),
        ({"holdout": True}, "holdout must be a number, not True"),
        ({"accuracy": 0.0}, "accuracy is a share between 0 and 1"),
        ({"accuracy": 0.9, "holdout": 0.0, "judge": holdout}, "tuples kept back"),
        ({"tolerance": None}, "tolerance must be a number, not None"),
        ({"accuracy": "0.9"}, "accuracy must be a number, not '0.9'"),
        ({"accuracy": float("nan")}, "accuracy is a share"),
    ],
)
def test_settings_without_a_meaning_are_refused(wrong, text):
    with pytest.raises(OptionError, match=text):
        Training(**wrong)
    with pytest.raises(OptionError, match="a start is a name or a function, not 3"):
        Training(start=3)


def test_the_bounds_of_the_settings_are_allowed():
    least = Training(
        sample_rows=1, training_tuples=1, folds=2, window=1, least_ruster=0, seed=0, holdout=0,
        tolerance=0, most_sample_rows=1,
    )  # fmt: skip
    assert least.holdout == least.tolerance == 0
    assert Training(accuracy=0.9, sample_rows=5, most_sample_rows=5).most_sample_rows == 5
    assert Training(accuracy=0.9, holdout=0, judge="bootstrap").judged_by == "bootstrap"
    assert Training(tolerance=2).tolerance == 2
    assert Training(most_sample_rows=1).sample_rows == 2000, "of no concern without an accuracy"


def test_the_defaults_are_those_that_are_documented():
    training = Training()
    assert (training.sample_rows, training.training_tuples) == (2000, 24)
    assert (training.holdout, training.folds, training.most_sample_rows) == (1 / 3, 5, 32_000)
    assert (training.window, training.least_ruster, training.tolerance) == (10_000, 0, 0.0)
    assert (training.accuracy, training.seed) == (None, 0)


def test_strategies_of_ones_own_are_used_and_named():
    seen = []

    def halves(problem, rng):
        half = problem.training.size // 2
        return partition([range(half), range(half, problem.training.size)])

    def first_come(problem, start, rng, stop):
        seen.append(stop)
        return problem.solve(start(problem, rng))

    def as_written(subset):
        return tuple(range(1, subset.operators + 1))

    stop = Stop(iterations=1)
    training = Training(start=halves, search=first_come, route_search=as_written, stop=stop)
    mesh = train_mesh(QUERY, three_classes(), OVERHEADS, training)
    assert seen == [stop]
    assert mesh.routes == ((1, 2, 3),)
    assert "first_come from halves" in mesh.found_by


def test_a_partial_strategy_is_named_by_its_function():
    search = partial(partial(iterative_improvement, patience=5), patience=7)
    mesh = train_mesh(QUERY, three_classes(), OVERHEADS, Training(search=search))
    assert mesh.found_by.startswith("iterative_improvement from route-driven, ")

    class Mine:
        def __call__(self, problem, rng):
            return [range(problem.training.size)]

    mesh = train_mesh(QUERY, three_classes(), OVERHEADS, Training(start=Mine()))
    assert "from Mine, " in mesh.found_by


def test_a_search_that_returns_no_solution_is_refused():
    def mine(problem, start, rng, stop):
        return start(problem, rng)

    with pytest.raises(TrainingError, match=r"search mine returned \(\(0.*`problem.solve` gave it"):
        train_mesh(QUERY, three_classes(), OVERHEADS, Training(search=mine))


def test_a_start_that_returns_no_partition_is_refused():
    def mine(problem, rng):
        return [[0]]

    with pytest.raises(TrainingError, match=r"start mine returned \[\[0\]\], which leaves out"):
        train_mesh(QUERY, three_classes(), OVERHEADS, Training(start=mine))


def test_a_route_that_breaks_precedence_is_refused():
    def mine(subset):
        return (2, 1)

    after = [frozenset(), frozenset({1})]
    profile = profile_of(np.ones((20, 2)), [1.0, 1.0], after)
    text = r"route search mine returned \(2, 1\), which visits operator 2 before operator 1"
    for one_route in (True, False):
        with pytest.raises(TrainingError, match=text):
            train_mesh(QUERY, profile, OVERHEADS, Training(route_search=mine), one_route=one_route)


def test_what_was_looked_at_is_counted_in_words_that_fit():
    mesh = train_mesh(
        QUERY, three_classes(), OVERHEADS, Training(search="optimal", training_tuples=4)
    )
    assert re.search(
        r", (5|15) partitions of (3|4) training tuples as \d+ mesh(es)?; ", mesh.found_by
    )
    alike = profile_of(np.tile([[1.0, 0.0]], (60, 1)))
    mesh = train_mesh(QUERY, alike, OVERHEADS)
    assert ", 1 partition of 1 training tuple as 1 mesh; " in mesh.found_by


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("route_search", ["dynamic-programming", "rank", "greedy"])
def test_all_ways_of_searching_find_three_clear_classes(search, route_search):
    training = Training(search=search, route_search=route_search, training_tuples=8)
    mesh = train_mesh(QUERY, three_classes(), OVERHEADS, training)
    assert {route[0] for route in mesh.routes} == {1, 2, 3}
    assert mesh.found_by.startswith(f"{search} from route-driven, ")
    assert re.search(r" of 3 training tuples as (1 mesh|\d+ meshes); \w", mesh.found_by)
    assert mesh.accuracy is None
