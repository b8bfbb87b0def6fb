"""What a process remembers: bounded, the newest, not too old, whoever asks."""

import pickle
import threading
from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.query.costly import memory
from querymesh.query.costly.memo import Memo
from querymesh.query.costly.memory import Memory
from soak import TIMES


def keys(*numbers):
    return [blake2b(b"%d" % number, digest_size=16).digest() for number in numbers]


@pytest.fixture
def clock(monkeypatch):
    """A wall clock that stands still until a test moves it."""

    class Clock:
        now = 1000.0

    monkeypatch.setattr(memory.time, "time", lambda: Clock.now)
    return Clock


def test_what_was_put_is_found_whatever_it_is():
    remembered = Memory(Memo(), "f")
    values = [True, False, None, 0, 0.0, "", "text", b"", [], [1, None], {"a": None}]
    some = keys(*range(len(values)))
    remembered.put(some, values)
    found = remembered.find([*some, *keys(99)])
    assert list(found) == some
    assert list(found.values()) == values


def test_the_longest_unused_is_forgotten_first():
    remembered = Memory(Memo(size=3), "f")
    one, two, three, four = keys(1, 2, 3, 4)
    remembered.put([one, two, three], [1, 2, 3])
    assert remembered.find([one]) == {one: 1}
    remembered.put([four], [4])
    assert remembered.find([one, two, three, four]) == {one: 1, three: 3, four: 4}


def test_long_answers_count_for_several():
    remembered = Memory(Memo(size=10), "f")
    long = "x" * (5 * 1024)
    remembered.put(keys(1, 2), [long, [long[:1024], {"a": long[:2048].encode()}]])
    assert len(remembered) == 2, "6 and 4"
    remembered.put(keys(3), [True])
    assert list(remembered.find(keys(1, 2, 3))) == keys(2, 3)
    remembered.put(keys(2), [False])
    remembered.put(keys(*range(4, 12)), [True] * 8)
    assert len(remembered) == 10, "what was replaced takes no room"
    remembered.put(keys(50), ["x" * 11 * 1024])
    assert len(remembered) == 0, "it alone is more than there is room for"
    remembered.put(keys(51), [True])
    assert len(remembered) == 1


@settings(max_examples=100 * TIMES, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from([True, "x" * 2000, "y" * 9000])), max_size=40
    ),
    size=st.integers(1, 12),
)
def test_it_never_holds_more_than_it_may(steps, size):
    remembered = Memory(Memo(size=size), "f")
    for number, value in steps:
        remembered.put(keys(number), [value])
        held = remembered.find(keys(*range(10)))
        weights = [1 if value is True else 1 + len(value) // 1024 for value in held.values()]
        assert sum(weights) <= size
        assert (keys(number)[0] in held) == (value is True or 1 + len(value) // 1024 <= size)


def test_answers_get_too_old(clock):
    remembered = Memory(Memo(ttl=10.0), "f")
    remembered.put(keys(1), [1])
    clock.now += 6.0
    remembered.put(keys(2), [2])
    assert len(remembered.find(keys(1, 2))) == 2
    clock.now += 6.0
    assert remembered.find(keys(1, 2)) == {keys(2)[0]: 2}
    assert list(remembered.known()) == keys(2)
    remembered.learn({keys(3)[0]: (3, clock.now - 11.0), keys(4)[0]: (4, clock.now - 9.0)})
    assert remembered.find(keys(3, 4)) == {keys(4)[0]: 4}
    remembered.put(keys(1), ["again"])
    assert remembered.find(keys(1)) == {keys(1)[0]: "again"}


def test_without_a_ttl_nothing_is_too_old(clock):
    remembered = Memory(Memo(), "f")
    remembered.put(keys(1), [1])
    clock.now += 1e9
    assert remembered.find(keys(1)) == {keys(1)[0]: 1}


def test_something_newer_is_not_replaced_by_something_older(clock):
    remembered = Memory(Memo(), "f")
    remembered.put(keys(1), ["new"])
    remembered.learn({keys(1)[0]: ("old", clock.now - 1.0)})
    assert remembered.find(keys(1)) == {keys(1)[0]: "new"}
    remembered.learn({keys(1)[0]: ("newer", clock.now + 1.0)})
    assert remembered.find(keys(1)) == {keys(1)[0]: "newer"}


def test_what_one_process_learned_travels_to_another(monkeypatch):
    monkeypatch.setattr(memory, "TRAVELLING", 4)
    training = Memory(Memo(), "f")
    training.put(keys(1, 2, 3, 4), [1, 2, 3, 4])
    training.find(keys(1))
    training.put(keys(5), ["x" * 1024])
    task = Memory(Memo(), "f")
    task.learn(pickle.loads(pickle.dumps(training.known())))
    assert task.find(keys(1, 2, 3, 4, 5)) == dict(
        zip(keys(1, 4, 5), [1, 4, "x" * 1024], strict=True)
    )
    assert list(task.known()) == keys(1, 4, 5)


def test_several_threads_may_use_it_at_once(tmp_path):
    remembered = Memory(Memo(path=tmp_path, size=50), "f")
    problems = []

    def work(start):
        try:
            for number in range(start, start + 300):
                remembered.put(keys(number), [number % 2 == 0], more=True)
                found = remembered.find(keys(number, number - 1, number + 1, 1, 2))
                assert found[keys(number)[0]] == (number % 2 == 0)
                remembered.known()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 150, 1000, 5000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(remembered) == 50
    remembered.put([], [])
    other = Memory(Memo(path=tmp_path), "f")
    expected = {*range(450), *range(1000, 1300), *range(5000, 5300)}
    assert set(other.find(keys(*range(6000)))) == set(keys(*expected))


def test_what_memory_forgot_is_still_found_in_the_store(tmp_path):
    remembered = Memory(Memo(path=tmp_path, size=2), "f")
    remembered.put(keys(*range(10)), [True] * 10)
    assert len(remembered) == 2
    assert len(remembered.find(keys(*range(10)))) == 10
    assert len(Memory(Memo(path=tmp_path, size=2), "f").find(keys(*range(10)))) == 10


def test_a_store_is_asked_only_for_what_is_not_known(tmp_path, monkeypatch):
    remembered = Memory(Memo(path=tmp_path), "f")
    remembered.put(keys(1), [True])
    asked = []
    monkeypatch.setattr(remembered._store, "find", lambda some: asked.append(some) or {})
    assert remembered.find(keys(1, 1)) == {keys(1)[0]: True}
    remembered.find(keys(1, 2))
    assert asked[-1] == keys(2)


def test_the_time_of_an_answer_is_kept_with_it(tmp_path, clock):
    one = Memory(Memo(path=tmp_path), "f")
    one.put(keys(1), [True])
    clock.now += 5.0
    later = Memory(Memo(path=tmp_path, ttl=10.0), "f")
    assert later.find(keys(1)) == {keys(1)[0]: True}
    assert later.known() == {keys(1)[0]: (True, 1000.0)}
    clock.now += 6.0
    assert later.find(keys(1)) == {}
