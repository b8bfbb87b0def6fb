"""The functions of a run: its driver and its workers ask about each input once, within a budget."""

import gc
import json
import pickle
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import querymesh as qm
from querymesh.query.costly.in_run import asking_of, begin_functions, in_run
from querymesh.runtime.job_functions import JobFunctions

HOST = "127.0.0.1"

WORKER = """
import json, pickle, sys
import pyarrow as pa
from querymesh.query.costly.in_run import begin_functions
from test_job_functions import written_down

start, identity, log, values = pickle.loads(bytes.fromhex(sys.argv[1]))
predicate = written_down(log, identity)
tallies = begin_functions({"f": predicate}, start)
answers, failed = predicate.apply_dropping([pa.array(values)], len(values))
told = tallies.taken()["f"]
print(json.dumps([answers.to_pylist(), told.rows, told.asked, told.unasked]))
"""


def written_down(log, identity, **options):
    """A predicate that is true of numbers above 2 and writes down what it was asked about."""

    def above(value):
        time.sleep(0.002)
        with Path(log).open("a") as file:
            file.write(f"{value}\n")
        return value > 2

    made = qm.predicate(above, name="f", vectorised=False, memo=True, price=1, **options)
    return in_run({"f": made})["f"] if identity is None else _with(made, identity)


def _with(predicate, identity):
    return replace(predicate, identity=identity)


def asked(log):
    return Counter(int(line) for line in Path(log).read_text().split())


def in_worker(start, predicate, log, values):
    told = pickle.dumps((start, predicate.identity, str(log), values)).hex()
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {here!r})\n{WORKER}", told]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result(process):
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(output)


def test_what_the_driver_asked_its_workers_do_not_ask(tmp_path):
    log = tmp_path / "log"
    predicate = written_down(log, None)
    job = JobFunctions({"f": predicate})
    predicate.apply([pa.array([1, 2, 3])], 3)
    start = job.begin(HOST)
    answers, rows, about, _ = result(in_worker(start, predicate, log, [3, 1, 4, 3]))
    assert (answers, rows, about) == ([True, False, True, True], 4, 1)
    assert asked(log) == Counter([1, 2, 3, 4])


def test_workers_ask_about_each_input_once_whoever_meets_it_first(tmp_path):
    log = tmp_path / "log"
    predicate = written_down(log, None)
    job = JobFunctions({"f": predicate})
    start = job.begin(HOST)
    values = [[(k * step) % 120 for k in range(120)] for step in (1, 7)]
    workers = [in_worker(start, predicate, log, each) for each in values]
    for worker, each in zip(workers, values, strict=True):
        assert result(worker)[0] == [value > 2 for value in each]
    assert asked(log) == Counter(range(120))


def test_the_budget_is_one_for_the_driver_and_all_workers_and_is_spent_to_the_last_call(tmp_path):
    log = tmp_path / "log"
    predicate = written_down(log, None)
    job = JobFunctions({"f": predicate}, qm.Budget(50, then="drop"))
    predicate.apply([pa.array([1, 2, 3])], 3)
    start = job.begin(HOST)
    workers = [
        in_worker(start, predicate, log, [*range(first, first + 60)]) for first in (100, 200)
    ]
    told = [result(worker) for worker in workers]
    assert sum(about for _, _, about, _ in told) == 47
    assert sum(unasked for *_, unasked in told) == 120 - 47
    assert sum(each is None for answers, *_ in told for each in answers) == 120 - 47
    assert sum(asked(log).values()) == 50


@pytest.mark.parametrize(("then", "rest"), [("keep", True), ("drop", None)])
def test_rows_that_the_budget_cannot_pay_for_are_kept_or_dropped(tmp_path, then, rest):
    predicate = written_down(tmp_path / "log", None)
    job = JobFunctions({"f": predicate}, qm.Budget(2, then=then))
    values, _ = predicate.apply_dropping([pa.array([1, 5, 1, 0, 9])], 5)
    assert values.to_pylist() == [False, True, False, rest, rest]
    assert asking_of(predicate).tally.unasked == 2
    del job


def test_at_the_end_of_a_budget_the_error_says_what_was_spent_on_what(tmp_path):
    predicate = written_down(tmp_path / "log", None)
    job = JobFunctions({"f": predicate}, qm.Budget(2))
    with pytest.raises(qm.BudgetError, match=r"budget of 2.00 .* next call of f.*2 calls of f"):
        predicate.apply([pa.array([1, 2, 3])], 3)
    assert predicate.apply([pa.array([2, 1])], 2).to_pylist() == [False, False], "was paid for"
    del job


def test_cheap_functions_without_bounds_need_no_server():
    functions = in_run({"f": qm.predicate(lambda x: x, name="f")})
    start = JobFunctions(functions).begin(HOST)
    assert start.allowance is None
    assert start.answers is None
    assert start.shared == frozenset()


def test_a_plan_may_run_when_nobody_holds_its_run_any_more(tmp_path):
    log = tmp_path / "log"
    predicate = written_down(log, None)
    job = JobFunctions({"f": predicate}, qm.Budget(100))
    start = job.begin(HOST)
    del job
    gc.collect()
    assert result(in_worker(start, predicate, log, [1, 3]))[0] == [False, True]


def test_where_the_driver_cannot_be_reached_a_budget_is_an_error_and_answers_are_asked_alone(
    tmp_path, caplog
):
    predicate = written_down(tmp_path / "log", None)
    bounded, free = (JobFunctions({"f": predicate}, budget) for budget in (qm.Budget(9), None))
    starts = [job.begin(HOST) for job in (bounded, free)]
    for job in (bounded, free):
        job._server.close()
    unknown = [_with(predicate, f"unknown {number}") for number in range(2)]
    told = [
        replace(s, shared=frozenset({u.identity})) for s, u in zip(starts, unknown, strict=True)
    ]
    for each, start in zip(unknown, told, strict=True):
        begin_functions({"f": each}, start)
    assert unknown[1].apply([pa.array([1, 5, 1])], 3).to_pylist() == [False, True, False]
    assert "workers ask for themselves" in caplog.text
    with pytest.raises(qm.SetupError, match="driver cannot be reached"):
        unknown[0].apply([pa.array([1])], 1)


def test_many_functions_of_a_run_and_of_others_forget_no_budget():
    def free(value):
        return True

    def made(number):
        return qm.predicate(free, name=f"f{number}", vectorised=False, price=1)

    functions = in_run({f"f{number}": made(number) for number in range(80)})
    job = JobFunctions(functions, qm.Budget(3, then="drop"))
    passed = [each.apply([pa.array([1])], 1).to_pylist() for each in functions.values()]
    assert passed == [[True]] * 3 + [[None]] * 77
    start = job.begin(HOST)
    others = in_run({f"f{number}": made(number) for number in range(80)})
    tallies = begin_functions(others, start)
    assert [each.apply([pa.array([1])], 1).to_pylist() for each in others.values()] == [[None]] * 80
    assert sum(each.unasked for each in tallies.taken().values()) == 80
