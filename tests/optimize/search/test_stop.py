import numpy as np
import pyarrow as pa
import pytest

from problems import OVERHEADS, stock_problem, training_set
from profiles import profile_of
from querymesh.errors import OptionError
from querymesh.optimize.search.problem import Problem
from querymesh.optimize.search.searches import SEARCHES
from querymesh.optimize.search.start import STARTS
from querymesh.optimize.search.stop import DEFAULT_STOP, Stop, Tally
from querymesh.optimize.train.training import Training
from querymesh_lab.papers.qm.generated import generated_training_set

REASONS = {
    "2 iterations were done": Stop(iterations=2),
    "17 partitions in a row were no better": Stop(plateau=17),
    "the last partition was no better": Stop(plateau=1),
    "1e-09 seconds had passed": Stop(seconds=1e-9),
    "it remembered 1e-06 MB": Stop(memory_mb=1e-6),
    "25 partitions were tried": Stop(partitions=25),
    "1 partition was tried": Stop(partitions=1),
}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("search", ["iterative-improvement", "simulated-annealing"])
def test_every_bound_ends_a_search_and_is_named(search, reason):
    problem = Problem(generated_training_set(12, 3, rows=200), OVERHEADS)
    rng = np.random.default_rng(0)
    found = SEARCHES[search](problem, STARTS["extreme-1"], rng, REASONS[reason])
    assert found.stopped == reason


def test_the_first_bound_that_is_reached_is_the_reason():
    now = iter([0.0, 1.0, 5.0, 9.0])
    tally = Tally(Stop(seconds=4, partitions=3), stock_problem(), clock=lambda: next(now))
    tally.step(better=True)
    assert not tally.over
    tally.step(better=False)
    tally.step(better=False)
    assert tally.reason == "4 seconds had passed"
    assert (tally.partitions, tally.since_better) == (3, 2)


@pytest.mark.parametrize("search", SEARCHES)
def test_operators_that_cost_nothing_end_a_search(search):
    profile = profile_of([[1, 0], [0, 1]] * 6, [0.0, 0.0], sample=pa.table({"x": [0.5, 1.5] * 6}))
    problem = Problem(training_set(profile, [0, 1] * 6), OVERHEADS)
    stop = Stop(partitions=50)
    found = SEARCHES[search](problem, STARTS["extreme-1"], np.random.default_rng(0), stop)
    assert found.cost_us == 0


def test_bounds_that_bound_nothing_are_refused():
    with pytest.raises(OptionError, match=r"stop\.plateau must be greater than 0 or None, not 0"):
        Stop(plateau=0)
    with pytest.raises(OptionError, match="at least one of iterations, plateau, seconds"):
        Stop()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"iterations": 2.5}, r"stop\.iterations must be an integer or None, not 2.5"),
        ({"partitions": "600"}, r"stop\.partitions must be an integer or None, not '600'"),
        ({"plateau": True}, r"stop\.plateau must be an integer"),
        ({"seconds": float("nan")}, r"stop\.seconds must be a finite number"),
        ({"seconds": float("inf")}, r"stop\.seconds must be a finite number"),
        ({"memory_mb": "1 GB"}, r"stop\.memory_mb must be a finite number"),
    ],
)
def test_bounds_of_a_wrong_kind_are_refused(wrong, text):
    with pytest.raises(OptionError, match=text):
        Stop(**wrong)


def test_a_bound_that_is_given_brings_no_others():
    assert Stop(seconds=60) == Stop(None, None, 60, None, None)
    assert Stop(iterations=np.int64(30)).partitions is None


def test_by_default_the_clock_has_no_say():
    assert Training().stop == DEFAULT_STOP == Stop(iterations=3, partitions=600)


def test_a_bound_is_reached_by_the_last_step_that_it_allows():
    tally = Tally(Stop(partitions=2), stock_problem())
    tally.step(better=True)
    assert not tally.over
    tally.step(better=True)
    assert tally.reason == "2 partitions were tried"

    tally = Tally(Stop(plateau=2), stock_problem())
    for better, since in ((True, 0), (False, 1), (True, 0), (False, 1)):
        tally.step(better=better)
        assert (tally.since_better, tally.over) == (since, False)
    tally.step(better=False)
    assert tally.reason == "2 partitions in a row were no better"

    tally = Tally(Stop(iterations=2), stock_problem())
    tally.walked()
    assert not tally.over
    tally.walked()
    assert tally.reason == "2 iterations were done"


def test_time_and_memory_are_reached_when_they_are_used_up():
    now = iter([100.0, 103.5, 104.0])
    tally = Tally(Stop(seconds=4), stock_problem(), clock=lambda: next(now))
    tally.step(better=True)
    assert not tally.over
    tally.step(better=True)
    assert tally.reason == "4 seconds had passed"

    problem = stock_problem()
    problem.route((0,))
    for bound, over in ((problem.memory_mb * 1.01, False), (problem.memory_mb, True)):
        tally = Tally(Stop(memory_mb=bound), problem)
        tally.step(better=True)
        assert tally.over is over


def test_the_first_reason_to_end_stays():
    tally = Tally(Stop(partitions=9), stock_problem())
    tally.end("first")
    tally.end("second")
    assert tally.reason == "first"


def test_bounds_of_one_and_of_parts_of_it_are_taken():
    assert Stop(seconds=0.5, memory_mb=0.25).seconds == 0.5
    assert Stop(iterations=1, plateau=1, partitions=1).iterations == 1


def test_what_costs_nothing_and_what_is_one_tuple_need_no_search():
    free = profile_of([[1, 0], [0, 1]] * 6, [0.0, 0.0], sample=pa.table({"x": [0.5, 1.5] * 6}))
    problem = Problem(training_set(free, [0, 1] * 6), OVERHEADS)
    rng = np.random.default_rng(0)
    found = SEARCHES["simulated-annealing"](problem, STARTS["extreme-1"], rng, Stop(partitions=50))
    assert found.stopped == "nothing costs less than nothing"
    for search in ("iterative-improvement", "simulated-annealing"):
        for tuples, reason in (
            (1, "one training tuple has one partition"),
            (2, "2 iterations were done"),
        ):
            member = np.arange(12) % tuples
            profile = profile_of(np.ones((12, 2)), [0.1, 0.1], sample=pa.table({"x": member}))
            problem = Problem(training_set(profile, member), OVERHEADS)
            found = SEARCHES[search](problem, STARTS["extreme-1"], rng, Stop(iterations=2))
            assert found.stopped == reason
