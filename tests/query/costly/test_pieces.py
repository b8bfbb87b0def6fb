"""A function called in pieces: in order, several at once, again where it failed, not for ever."""

import asyncio
import functools
import itertools
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from calls import pieces_of, results_of
from querymesh.errors import PredicateError
from querymesh.query.costly.calling import Calling
from querymesh.query.costly.calls import event_loop, lanes
from querymesh.query.costly.pieces import Unanswered, call_in_pieces, is_async
from querymesh.query.predicate.failing_rows import Raised

LONG_S = 60.0
"""Longer than any test waits."""


def doubled(value: int) -> int:
    return 2 * value


async def doubled_later(value: int) -> int:
    await asyncio.sleep(0.001 * (7 - value % 7))  # later ones are often earlier
    return 2 * value


WAYS = [
    (doubled, Calling(batch=3)),
    (doubled, Calling(batch=3, timeout_s=LONG_S)),
    (doubled, Calling(batch=3, concurrency=4)),
    (doubled, Calling(batch=3, concurrency=4, timeout_s=LONG_S)),
    (doubled_later, Calling(batch=3)),
    (doubled_later, Calling(batch=3, concurrency=4, timeout_s=LONG_S)),
]


@pytest.mark.parametrize(("fn", "calling"), WAYS)
def test_results_are_in_the_order_of_the_rows(fn: Any, calling: Calling) -> None:
    pieces = pieces_of(fn, 50, calling)
    assert [value for piece in pieces for value in piece.result] == [2 * at for at in range(50)]
    assert [(piece.start, piece.rows) for piece in pieces][-2:] == [(45, 3), (48, 2)]
    assert {piece.calls for piece in pieces} == {1}


@pytest.mark.parametrize(("fn", "calling"), WAYS)
def test_no_rows_are_no_calls(fn: Any, calling: Calling) -> None:
    assert pieces_of(fn, 0, calling) == []


def test_a_function_that_is_usual_is_called_once_and_here() -> None:
    threads = set()

    def call(args: Any, n: int) -> int:
        threads.add(threading.current_thread())
        return n

    (piece,) = call_in_pieces(call, Calling(), [pa.array([1, 2, 3])], 3)
    assert piece.result == 3
    assert threads == {threading.current_thread()}


def test_callable_objects_and_partials_of_async_functions_are_awaited() -> None:
    class Model:
        async def __call__(self, value: int) -> int:
            return 2 * value

    async def times(factor: int, value: int) -> int:
        return factor * value

    for fn in (Model(), Model().__call__, functools.partial(times, 2), functools.partial(Model())):
        assert is_async(fn)
        assert results_of(pieces_of(fn, 3, Calling(batch=1, concurrency=2))) == [[0], [2], [4]]
    assert not is_async(functools.partial(doubled))
    assert not is_async(Counter)


@pytest.mark.parametrize("timeout_s", [None, LONG_S])
def test_so_many_calls_run_at_once_and_no_more(timeout_s: float | None) -> None:
    lock = threading.Lock()
    running, most = 0, 0
    all_here = threading.Barrier(4)

    def call(value: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        all_here.wait(LONG_S)  # never passed by fewer
        with lock:
            running -= 1
        return value

    pieces = pieces_of(call, 40, Calling(batch=1, concurrency=4, timeout_s=timeout_s))
    assert results_of(pieces) == [[at] for at in range(40)]
    assert most == 4


def test_so_many_tasks_run_at_once_and_no_more() -> None:
    running, most = 0, 0

    async def call(value: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1
        return value

    assert len(pieces_of(call, 100, Calling(batch=1, concurrency=5))) == 100
    assert most == 5


class Slices:
    """A column that counts the pieces cut out of it which somebody still has."""

    def __init__(self) -> None:
        self.alive = self.most = 0
        self._lock = threading.Lock()

    def slice(self, start: int, rows: int) -> "Cut":
        with self._lock:
            self.alive += 1
            self.most = max(self.most, self.alive)
        return Cut(self, start)

    def dropped(self) -> None:
        with self._lock:
            self.alive -= 1


class Cut:
    def __init__(self, of: Slices, start: int) -> None:
        self.of, self.start = of, start

    def __del__(self) -> None:
        self.of.dropped()


@pytest.mark.parametrize("way", ["threads", "lanes", "tasks"])
def test_no_more_pieces_are_there_than_calls_run(way: str) -> None:
    column: Any = Slices()

    def call(args: Any, n: int) -> int:
        time.sleep(0.0005)
        return int(args[0].start)

    async def awaited(args: Any, n: int) -> int:
        await asyncio.sleep(0.0005)
        return int(args[0].start)

    calling = Calling(batch=1, concurrency=4, timeout_s=LONG_S if way == "lanes" else None)
    of = awaited if way == "tasks" else call
    pieces = call_in_pieces(of, calling, [column], 200)
    assert [piece.result for piece in pieces] == list(range(200))
    assert column.most <= 2 * 4  # one is let go of just after the next was cut


def failing(times: int, error: Exception) -> Any:
    """A function that fails so many times for each value."""
    seen: Counter[int] = Counter()

    def call(value: int) -> int:
        seen[value] += 1
        if seen[value] <= times:
            raise error
        return value

    return call


def awaiting(fn: Any) -> Any:
    async def call(value: int) -> Any:
        return fn(value)

    return call


@pytest.mark.parametrize("wrapped", [lambda fn: fn, awaiting])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_call_is_tried_again_until_it_succeeds(wrapped: Any, concurrency: int) -> None:
    fn = wrapped(failing(2, ConnectionResetError("gone")))
    pieces = pieces_of(fn, 4, Calling(batch=1, concurrency=concurrency, retries=2))
    assert results_of(pieces) == [[0], [1], [2], [3]]
    assert [piece.calls for piece in pieces] == [3, 3, 3, 3]


@pytest.mark.parametrize("wrapped", [lambda fn: fn, awaiting])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_what_failed_for_good_does_not_stop_the_others(wrapped: Any, concurrency: int) -> None:
    def call(value: int) -> int:
        if value == 1:
            raise ValueError(value)
        return value

    pieces = pieces_of(wrapped(call), 4, Calling(batch=1, concurrency=concurrency, retries=5))
    assert isinstance(pieces[1].result, Raised)
    assert isinstance(pieces[1].result.error, ValueError)
    assert [piece.result for piece in pieces[2:]] == [[2], [3]]
    assert pieces[1].calls == 1  # nobody named that error


@pytest.mark.parametrize("wrapped", [lambda fn: fn, awaiting])
@pytest.mark.parametrize("concurrency", [1, 2])
def test_the_first_final_failure_stops_what_has_not_begun(wrapped: Any, concurrency: int) -> None:
    called = []

    def call(value: int) -> int:
        called.append(value)
        if value == 3:
            raise ValueError(value)
        return value

    calling = Calling(batch=1, concurrency=concurrency)
    pieces = pieces_of(wrapped(call), 1000, calling, stop_at_failure=True)
    assert len(pieces) == 1000
    assert [piece.result for piece in pieces[:3]] == [[0], [1], [2]]
    assert isinstance(pieces[3].result, Raised)
    assert isinstance(pieces[-1].result, Unanswered)
    assert pieces[-1].result.end is None
    unanswered = [piece for piece in pieces if isinstance(piece.result, Unanswered)]
    assert len(called) + len(unanswered) == 1000
    assert {piece.calls for piece in unanswered} == {0}


@pytest.mark.parametrize("wrapped", [lambda fn: fn, awaiting])
@pytest.mark.parametrize("timeout_s", [None, LONG_S])
@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_result_of_the_wrong_kind_is_raised_at_once(
    wrapped: Any, timeout_s: float | None, concurrency: int
) -> None:
    called = []

    def call(value: int) -> int:
        called.append(value)
        if value == 3:
            raise PredicateError("wrong length")
        return value

    calling = Calling(1, concurrency, retries=3, retry_on=(Exception,), timeout_s=timeout_s)
    with pytest.raises(PredicateError, match="wrong length"):
        pieces_of(wrapped(call), 1000, calling)
    assert called.count(3) == 1
    assert len(called) < 1000


@pytest.mark.parametrize("way", ["threads", "lanes", "tasks"])
def test_what_is_no_error_but_an_end_is_raised_too(way: str) -> None:
    def call(value: int) -> int:
        raise SystemExit(3)

    async def awaited(value: int) -> int:
        raise asyncio.CancelledError

    calling = Calling(batch=1, concurrency=2, timeout_s=LONG_S if way != "threads" else None)
    if way == "tasks":  # whoever cancels itself has failed: nobody else was cancelled
        assert all(
            isinstance(each, RuntimeError) for each in results_of(pieces_of(awaited, 3, calling))
        )
    else:
        with pytest.raises(SystemExit):
            pieces_of(call, 3, calling)


def test_an_endpoint_that_says_when_is_left_alone_until_then_by_all() -> None:
    class BusyError(Exception):
        retry_after = 0.2

    began: list[float] = []
    refused: list[float] = []
    lock = threading.Lock()

    def call(value: int) -> int:
        with lock:
            first = not began
            began.append(time.monotonic())
        if first:
            refused.append(time.monotonic())
            raise BusyError
        return value

    pieces = pieces_of(call, 1, Calling(retries=1, retry_on=(BusyError,)))
    assert results_of(pieces) == [[0]]
    assert began[1] - refused[0] >= 0.2
    began.clear(), refused.clear()
    pieces = pieces_of(call, 100, Calling(1, 2, retries=1, retry_on=(BusyError,)))
    assert results_of(pieces) == [[at] for at in range(100)]
    early = [at for at in began if refused[0] < at < refused[0] + 0.2]
    assert len(early) <= 1  # the one that began beside it


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_call_that_hangs_fails_and_stops_nothing(concurrency: int) -> None:
    let_go = threading.Event()

    def call(value: int) -> int:
        if value == 1:
            let_go.wait(LONG_S)
        return value

    try:
        pieces = pieces_of(call, 4, Calling(batch=1, concurrency=concurrency, timeout_s=0.2))
        assert isinstance(results_of(pieces)[1], TimeoutError)
        assert "0.2 s (timeout_s)" in str(results_of(pieces)[1])
        assert [piece.result for piece in pieces[2:]] == [[2], [3]]
    finally:
        let_go.set()


def test_threads_that_hang_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "hung", lanes.Hung(3))
    let_go, called = threading.Event(), []

    def call(value: int) -> int:
        called.append(value)
        let_go.wait(LONG_S)
        return value

    calling = Calling(batch=1, concurrency=2, retries=1, timeout_s=0.1)
    pieces = pieces_of(call, 10, calling)
    assert all(isinstance(each, TimeoutError) for each in results_of(pieces))
    assert 1 <= len(called) <= 4  # both workers may have begun while two hung
    assert len(called) == sum(piece.calls for piece in pieces)
    assert "have not come back yet" in str(results_of(pieces)[-1])
    let_go.set()
    lanes.hung.wait_for_room(LONG_S)
    while len(lanes.hung):
        time.sleep(0.001)
    assert results_of(pieces_of(call, 3, Calling(batch=1, timeout_s=LONG_S))) == [[0], [1], [2]]


def test_a_task_that_takes_too_long_is_cancelled() -> None:
    cancelled = []

    async def call(value: int) -> int:
        if value == 1:
            try:
                await asyncio.sleep(LONG_S)
            except asyncio.CancelledError:
                cancelled.append(value)
                raise
        return value

    pieces = pieces_of(call, 3, Calling(batch=1, concurrency=2, timeout_s=0.1))
    assert isinstance(results_of(pieces)[1], TimeoutError)
    assert pieces[2].result == [2]
    assert cancelled == [1]


def test_a_task_that_will_not_be_cancelled_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "hung", lanes.Hung(3))
    monkeypatch.setattr(event_loop, "CANCEL_S", 0.05)
    let_go = threading.Event()

    async def call(value: int) -> int:
        while value == 1 and not let_go.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return value

    try:
        pieces = pieces_of(call, 3, Calling(batch=1, timeout_s=0.1))
        assert isinstance(results_of(pieces)[1], TimeoutError)
        assert pieces[2].result == [2]
        assert len(lanes.hung) == 1
    finally:
        let_go.set()
    while len(lanes.hung):
        time.sleep(0.001)


def test_a_function_that_blocks_the_event_loop_is_told_so_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "hung", lanes.Hung(3))
    let_go = threading.Event()

    async def call(value: int) -> int:
        if value == 1:
            let_go.wait(LONG_S)
        return value

    try:
        pieces = pieces_of(call, 6, Calling(batch=1, concurrency=2, timeout_s=0.3))
        assert "the event loop was blocked" in str(results_of(pieces)[1])
        assert [piece.result for piece in pieces[3:]] == [[3], [4], [5]]
    finally:
        let_go.set()
    while len(lanes.hung):
        time.sleep(0.001)
    assert results_of(pieces_of(call, 2, Calling(batch=1))) == [[0], [1]]


def test_connections_of_a_thread_are_still_there_in_the_next_batch() -> None:
    of_thread, made = threading.local(), itertools.count()

    def call(value: int) -> int:
        if not hasattr(of_thread, "connection"):
            of_thread.connection = next(made)
        return value

    for timeout_s in (None, LONG_S):
        calling = Calling(batch=1, concurrency=2, timeout_s=timeout_s)
        for _ in range(50):
            pieces_of(call, 4, calling)
            time.sleep(0.001)
    assert next(made) <= 12


def test_an_event_loop_is_the_same_in_the_next_batch() -> None:
    loops = set()

    async def call(value: int) -> int:
        loops.add(asyncio.get_running_loop())
        return value

    for _ in range(3):
        pieces_of(call, 2, Calling(batch=1))
    assert len(loops) == 1


INTERRUPTED = """
import asyncio, os, signal, sys, threading, time
from calls import pieces_of
from querymesh.query.costly.calling import Calling

called = []

def call(value):
    called.append(value)
    if len(called) == 4:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    time.sleep(0.02)
    return value

async def awaited(value):
    called.append(value)
    if len(called) == 4:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    await asyncio.sleep(0.02)
    return value

concurrency, timeout_s = int(sys.argv[2]), float(sys.argv[3]) or None
try:
    fn = awaited if sys.argv[1] == "tasks" else call
    pieces_of(fn, 100_000, Calling(batch=1, concurrency=concurrency, timeout_s=timeout_s))
except KeyboardInterrupt:
    time.sleep(0.1)
    count = len(called)
    time.sleep(0.3)
    print("stopped" if len(called) == count < 1000 else f"{count} {len(called)}")
"""


@pytest.mark.parametrize(
    ("way", "concurrency", "timeout_s"),
    [("calls", 1, 0), ("calls", 1, 9), ("calls", 3, 0), ("calls", 3, 9), ("tasks", 3, 9)],
)
def test_ctrl_c_leaves_nothing_behind(way: str, concurrency: int, timeout_s: float) -> None:
    """In a process of its own, which also ends by itself afterwards."""
    code = textwrap.dedent(INTERRUPTED)
    command = [sys.executable, "-c", code, way, str(concurrency), str(timeout_s)]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (ended.stdout, ended.stderr) == ("stopped\n", "")
