"""Which rows a function is really asked about."""

import threading
from collections import Counter
from time import sleep

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.query.costly.account.permits import Permits
from querymesh.query.costly.asking import FIRST_ROWS, PAUSE_ROWS, Asking
from querymesh.query.costly.memo import Memo
from querymesh.query.costly.memory import Memory
from querymesh.query.costly.pieces import Piece
from querymesh.query.costly.sharing.job_answers import JobAnswers, OneFunction
from querymesh.query.predicate.failing_rows import Raised


class Counted:
    """A function that is True of numbers above 2, and counts what it was asked about."""

    def __init__(self, seconds_a_row=0.0, fails_on=()):
        self.asked = Counter()
        self.seconds_a_row = seconds_a_row
        self.fails_on = frozenset(fails_on)

    def __call__(self, args, n, heard):
        values = args[0].to_pylist()
        self.asked.update(values)
        sleep(self.seconds_a_row * n)
        return [self._piece(at, value) for at, value in enumerate(values)]

    def _piece(self, at, value):
        if value in self.fails_on:
            return Piece(at, 1, Raised(ValueError(f"no {value}")), calls=1)
        return Piece(at, 1, pa.array([None if value is None else value > 2], pa.bool_()), calls=1)


def asking(**options):
    return Asking(Memory(Memo(), "f"), pa.bool_(), Permits("f"), **options)


def expected(values):
    return [None if value is None else value > 2 for value in values]


def test_a_costly_function_is_asked_once_about_equal_inputs_of_all_batches():
    function, known = Counted(), asking(always=True)
    for batch in ([1, 2, 3, 1], [3, 4, None], [None, 4, 1]):
        answers = known.answers(function, [pa.array(batch, pa.int64())], len(batch))
        assert answers.values.to_pylist() == expected(batch)
        assert not answers.failed
    assert function.asked == Counter({1: 1, 2: 1, 3: 1, 4: 1, None: 1})
    assert (known.tally.rows, known.tally.distinct, known.tally.asked) == (10, 9, 5)


def test_what_is_not_deterministic_is_asked_about_every_row():
    function, known = Counted(), asking(always=True, never=True)
    known.answers(function, [pa.array([1, 1, 3])], 3)
    assert function.asked == Counter({1: 2, 3: 1})
    assert not known.remembers


def test_a_dear_function_is_remembered_though_nobody_said_so():
    function, known = Counted(seconds_a_row=0.002), asking()
    for _ in range(2):
        known.answers(function, [pa.array([1, 2, 3])], 3)
    assert set(function.asked.values()) == {1}
    assert known.call_us > 1000


def test_a_cheap_function_of_inputs_that_never_repeat_is_asked_plainly_after_its_first_rows():
    known = asking()

    def cheap(args, n, heard):
        return [Piece(0, n, pa.array([True] * n), calls=1)]

    def answer(start, rows):
        known.answers(cheap, [pa.array(range(start, start + rows))], rows)

    answer(0, 10_000)
    looked = known.tell_us
    answer(10_000, 10_000)
    assert not known.remembers
    assert known.tell_us == looked, "nobody looked again"
    answer(20_000, PAUSE_ROWS)
    assert known.tell_us != looked, "after many rows somebody does"


def test_the_first_rows_tell_what_a_function_costs_before_all_of_a_batch_is_looked_at():
    sizes = []

    def cheap(args, n, heard):
        sizes.append(n)
        return [Piece(0, n, pa.array([True] * n), calls=1)]

    asking().answers(cheap, [pa.array(range(10_000))], 10_000)
    assert sizes == [FIRST_ROWS, 10_000 - FIRST_ROWS]


def test_equal_rows_of_a_batch_fail_alike_and_what_failed_is_asked_again_later():
    function, known = Counted(fails_on=[2]), asking(always=True)
    answers = known.answers(function, [pa.array([2, 5, 2])], 3)
    assert answers.values.to_pylist() == [None, True, None]
    assert sorted(answers.failed) == [0, 2]
    assert answers.failed[0].args[0].to_pylist() == [2]
    function.fails_on = frozenset()
    assert known.answers(function, [pa.array([2, 5])], 2).values.to_pylist() == [False, True]
    assert function.asked == Counter({2: 2, 5: 1})


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 6)), min_size=1, max_size=30), max_size=6
    ),
    st.sets(st.integers(0, 6), max_size=2),
    st.booleans(),
    st.booleans(),
)
def test_any_batches_have_the_answers_of_their_rows(batches, fails_on, always, shares):
    function, known = Counted(fails_on=fails_on), asking(always=always, lot=3)
    if shares:
        known.shared = OneFunction(JobAnswers().session(), "f")
    for batch in batches:
        answers = known.answers(function, [pa.array(batch, pa.int64())], len(batch))
        wanted = [None if v in fails_on else e for v, e in zip(batch, expected(batch), strict=True)]
        assert answers.values.to_pylist() == wanted
        assert set(answers.failed) == {at for at, v in enumerate(batch) if v in fails_on}


def test_workers_that_share_answers_ask_about_each_input_once():
    job, functions = JobAnswers(), [Counted(seconds_a_row=0.002) for _ in range(4)]
    results = {}

    def work(number):
        known = asking(always=True, lot=8)
        known.shared = OneFunction(job.session(), "f")
        values = [(7 * k + number) % 50 for k in range(100)]
        answers = known.answers(functions[number], [pa.array(values)], len(values))
        results[number] = answers.values.to_pylist() == expected(values)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)
    assert sum((function.asked for function in functions), Counter()) == Counter(range(50))


def test_a_worker_that_dies_gives_its_claims_back():
    job = JobAnswers()
    dead, alive = job.session(), job.session()
    assert list(dead.claim("f", [b"a", b"b"]).mine) == [0, 1]
    assert list(alive.claim("f", [b"b", b"c"]).mine) == [1]
    dead.close()
    assert list(alive.claim("f", [b"b", b"a"]).mine) == [0, 1]


def test_what_one_worker_failed_on_another_tries():
    job = JobAnswers()
    first, second = asking(always=True), asking(always=True)
    for known in (first, second):
        known.shared = OneFunction(job.session(), "f")
    failing, well = Counted(fails_on=[1]), Counted()
    assert first.answers(failing, [pa.array([1, 2])], 2).failed
    assert second.answers(well, [pa.array([1, 2])], 2).values.to_pylist() == [False, False]
    assert well.asked == Counter({1: 1}), "what the first knew was not asked again"


@pytest.mark.parametrize(
    "values",
    [
        pa.array([10**9, -(10**9), 0], pa.int32()).view(pa.date32()),
        pa.array([10**18, -(10**18), 0]).view(pa.timestamp("us", "UTC")),
        pa.StructArray.from_arrays([pa.array([1, 2, 3])] * 2, names=["twice", "twice"]),
    ],
    ids=["dates", "timestamps", "structs"],
)
@pytest.mark.parametrize("shares", [False, True])
def test_answers_that_python_has_no_objects_for_are_given_and_asked_for_again(values, shares):
    known = Asking(Memory(Memo(), "f"), values.type, Permits("f"), always=True)
    if shares:
        known.shared = OneFunction(JobAnswers().session(), "f")

    def ask(args, n, heard):
        return [Piece(0, n, values.take(args[0]), calls=1)]

    for _ in range(2):
        assert known.answers(ask, [pa.array([2, 0, 1, 0])], 4).values.equals(
            values.take(pa.array([2, 0, 1, 0]))
        )
