"""The account of a job, asked by threads and real processes over TCP."""

import gc
import json
import os
import pickle
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from calls import pieces_of
from querymesh.errors import SetupError
from querymesh.query.costly.account import remote_allowance
from querymesh.query.costly.account.allowance import (
    Answer,
    Ask,
    AtEnd,
    Granted,
    JobAllowance,
    Later,
    Spent,
)
from querymesh.query.costly.account.permits import Permits
from querymesh.query.costly.account.price import PARTS, Budget, Price
from querymesh.query.costly.account.remote_allowance import MOST_BYTES, Connection, RemoteAllowance
from querymesh.query.costly.calling import Calling
from querymesh.query.costly.pieces import Unanswered
from querymesh.runtime.allowance_server import AllowanceServer
from soak import SOAK


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that is gone is noticed at once."""
    monkeypatch.setattr(remote_allowance, "PAUSES_S", (0.01,))


@pytest.fixture
def server() -> Iterator[AllowanceServer]:
    server = AllowanceServer(JobAllowance(Budget(1.0)))
    yield server
    server.close()


def test_tasks_ask_as_the_driver_does(server: AllowanceServer) -> None:
    remote: RemoteAllowance = pickle.loads(pickle.dumps(server.remote))
    third = PARTS // 3
    assert remote.ask(Ask("f", (third, third, third, third))) == Granted((0.0,) * 3)
    assert isinstance(remote.ask(Ask("f", (third,))), Later)
    end = remote.ask(Ask("f", (third,), calls=3, spent=3 * third))
    assert end == AtEnd(PARTS - 3 * third, PARTS, {"f": Spent(3, 3 * third)})
    assert server.account.spent() == {"f": Spent(3, 3 * third)}


def test_the_secret_is_not_shown(server: AllowanceServer) -> None:
    assert server.remote.secret not in repr(server.remote)
    assert len(server.remote.secret) == 64


def spoken(server: AllowanceServer, *lines: bytes) -> bytes:
    """What a stranger hears who sends these lines."""
    with socket.create_connection((server.remote.host, server.remote.port), 10) as link:
        heard = b""
        try:
            for line in lines:
                link.sendall(line + b"\n")
                if line is not lines[-1]:
                    heard += link.recv(4096)
            link.shutdown(socket.SHUT_WR)
            while part := link.recv(4096):
                heard += part
        except OSError:  # it was closed
            pass
        return heard


QUESTION = json.dumps({"name": "f", "prices": [1], "calls": 0, "spent": 0, "back": 0}).encode()


@pytest.mark.parametrize(
    "first",
    [
        b'{"secret": "guessed"}',
        b'{"secret": ""}',
        b'{"secret": 3}',
        b'{"secret": "\xc3\xa9"}',
        b"{}",
        b"[]",
        b"null",
        b"GET / HTTP/1.1",
        b"\xff\xfe",
        b"x" * (MOST_BYTES + 10),
        QUESTION,
    ],
)
def test_who_does_not_know_the_secret_hears_nothing(server: AllowanceServer, first: bytes) -> None:
    assert spoken(server, first, QUESTION) == b""
    assert server.account.reserve("f", (PARTS,)) == Granted((0.0,))


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"[]",
        b'{"name": "f"}',
        b'{"name": "f", "prices": [-1], "calls": 0, "spent": 0, "back": 0}',
        b'{"name": "f", "prices": [0.5], "calls": 0, "spent": 0, "back": 0}',
        b'{"name": "f", "prices": [true], "calls": 0, "spent": 0, "back": 0}',
        b'{"name": 3, "prices": [1], "calls": 0, "spent": 0, "back": 0}',
        b'{"name": "f", "prices": [1], "calls": 0, "spent": 0}',
        b'{"name": "f", "prices": [' + b"9" * 5000 + b'], "calls": 0, "spent": 0, "back": 0}',
        b"[" * 60_000,
        b"x" * (MOST_BYTES + 10),
    ],
)
def test_a_line_that_is_no_question_ends_the_connection_alone(
    server: AllowanceServer, line: bytes
) -> None:
    secret = json.dumps({"secret": server.remote.secret}).encode()
    assert spoken(server, secret, line, QUESTION) == b'{"ok": true}\n'
    assert isinstance(server.remote.ask(Ask("f", (1,))), Granted)  # others are served


def test_a_connection_that_ends_leaves_its_money_spent(server: AllowanceServer) -> None:
    gone, other = Connection(server.remote), Connection(server.remote)
    half = remote_allowance.line_of_question(Ask("f", (PARTS // 2,)))
    gone.exchange(half)
    gone._close()
    other.exchange(half)
    until = time.monotonic() + 30
    while not server.account.spent() and time.monotonic() < until:
        time.sleep(0.001)
    assert server.account.spent() == {"f": Spent(0, PARTS // 2)}


def test_a_broken_connection_is_made_again(server: AllowanceServer) -> None:
    connection = Connection(server.remote)
    line = remote_allowance.line_of_question(Ask("f", (1,)))
    connection.exchange(line)
    assert connection._file is not None
    connection._file.write(b"no question, which ends it\n")
    connection._file.flush()
    assert b"granted" in connection.exchange(line)


def test_a_driver_that_is_gone_is_named_and_no_call_is_made(server: AllowanceServer) -> None:
    server.close()
    called: list[int] = []
    for calling in (Calling(batch=1), Calling(batch=1, concurrency=3, retries=3)):
        permits = Permits("f", None, server.remote)
        with pytest.raises(SetupError, match=f"driver cannot be reached at .*{server.remote.port}"):
            pieces_of(called.append, 5, calling, allowance=permits)
    assert called == []


def test_a_server_that_nobody_holds_is_closed() -> None:
    server = AllowanceServer(JobAllowance())
    remote, gone = server.remote, weakref.ref(server)
    remote.ask(Ask("f", (0,)))
    del server
    gc.collect()
    assert gone() is None
    with pytest.raises(SetupError):
        remote.ask(Ask("f", (0,)))


def test_a_server_can_be_closed_twice(server: AllowanceServer) -> None:
    server.close()
    server.close()


@dataclass
class NotedAllowance(JobAllowance):
    """An account that notes when the slots are that it grants."""

    slots: list[float] = field(default_factory=list)

    def reserve(self, name: str, prices: tuple[int, ...]) -> Answer:
        before = self.clock()
        answer = super().reserve(name, prices)
        if isinstance(answer, Granted):
            self.slots += [before + delay for delay in answer.delays_s]
        return answer


WORKER = """
import asyncio, json, os, sys, threading, time
from calls import pieces_of
from querymesh.query.costly.calling import Calling
from querymesh.query.costly.account.permits import Permits
from querymesh.query.costly.pieces import Unanswered
from querymesh.query.costly.account.price import Price
from querymesh.query.costly.account.remote_allowance import RemoteAllowance

told = json.loads(sys.argv[1])
began = []
lock = threading.Lock()

def call(value):
    with lock:
        began.append((time.monotonic(), value))
        if told["dies_after"] and len(began) > told["dies_after"]:
            print(json.dumps(began), flush=True)
            os._exit(1)
    time.sleep(told["takes_s"])
    if value % 7 == 3:
        error = OSError("busy")
        error.status = 429
        raise error
    return value

async def awaited(value):
    return call(value)

price = Price(per_token=1e-3, tokens=lambda v: 1 + v % 5)
permits = Permits("f", price, RemoteAllowance(*told["to"]))
calling = Calling(1, told["concurrency"], rate_limit=told["rate"])
print("ready", flush=True)
sys.stdin.readline()
for start in range(3):  # three batches
    pieces_of(awaited if told["is_async"] else call, told["rows"], calling, allowance=permits)
print(json.dumps(began), flush=True)
"""
"""A worker process: prints when it began each call, and about which value."""


def run_workers(server: AllowanceServer, *options: dict[str, Any]) -> list[list[list[float]]]:
    """The calls of several processes that begin at once."""
    usual = {"concurrency": 4, "rate": None, "rows": 40, "takes_s": 0.0, "dies_after": 0}
    remote = server.remote
    to = {"to": [remote.host, remote.port, remote.secret], "is_async": False}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, json.dumps({**usual, **to, **each})],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in options
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [json.loads(process.communicate(timeout=120)[0]) for process in processes]


def test_the_rate_holds_over_threads_and_processes() -> None:
    """The i-th call of all begins no sooner than the i-th slot, and slots are 1/rate apart."""
    rate = 400.0
    account = NotedAllowance(rates={"f": rate})
    server = AllowanceServer(account)
    threads = {"concurrency": 4, "rate": rate}
    of_all = run_workers(server, threads, threads, {**threads, "is_async": True})
    server.close()
    began = sorted(at for calls in of_all for at, _ in calls)
    slots = sorted(account.slots)
    assert len(began) == 3 * 3 * 40
    assert len(slots) >= len(began)
    assert all(call >= slot for call, slot in zip(began, slots, strict=False))
    gaps = [(later - slot) * rate for slot, later in pairwise(slots)]
    assert min(gaps) > 0.9  # the moment of a question is known a little before it is answered


@pytest.mark.parametrize(("amount", "workers"), [(0.0, 1), (0.01, 2), (0.2, 4)])
def test_the_budget_is_spent_to_within_one_call_by_threads_and_processes(
    amount: float, workers: int
) -> None:
    server = AllowanceServer(JobAllowance(Budget(amount)))
    kinds: list[dict[str, Any]] = [
        {},
        {"is_async": True},
        {"concurrency": 1},
        {"concurrency": 7, "takes_s": 0.001},
    ]
    of_all = run_workers(server, *kinds[: len(kinds) if SOAK else workers])
    server.close()
    made = [int(value) for calls in of_all for _, value in calls]
    paid = [1 + value % 5 for value in made if value % 7 != 3]  # others were refused
    assert sum(paid) <= 1000 * amount
    assert sum(paid) > 1000 * amount - 5
    (spent,) = server.account.spent().values() or (Spent(),)
    assert spent == Spent(len(made), sum(paid) * PARTS // 1000)


def test_what_a_dead_worker_reserved_stays_spent_and_nobody_waits_for_it() -> None:
    server = AllowanceServer(JobAllowance(Budget(0.2)))
    of_all = run_workers(server, {"dies_after": 5, "takes_s": 0.002}, {"takes_s": 0.001})
    server.close()
    spent = sum(1 + int(v) % 5 for calls in of_all for _, v in calls if v % 7 != 3)
    assert spent <= 200
    (told,) = server.account.spent().values()
    assert 200 - 5 < told.money * 1000 // PARTS <= 200
    assert len(of_all[1]) > 20


def test_one_process_asks_for_many_calls_in_few_messages() -> None:
    account = NotedAllowance()
    questions: list[int] = []
    inner = account.reserve
    account.reserve = lambda name, prices: (questions.append(1), inner(name, prices))[1]  # type: ignore[method-assign,func-returns-value]
    server = AllowanceServer(account)
    permits = Permits("f", Price(per_row=1), server.remote)
    pieces = pieces_of(int, 2000, Calling(batch=1, concurrency=4), allowance=permits)
    server.close()
    assert not any(isinstance(piece.result, Unanswered) for piece in pieces)
    assert account.spent() == {"f": Spent(2000, 2000 * PARTS)}
    assert len(questions) < 200


def test_a_forked_process_makes_its_own_connection(server: AllowanceServer) -> None:
    tenth = PARTS // 10
    assert isinstance(server.remote.ask(Ask("f", (tenth,))), Granted)
    child = os.fork()
    if child == 0:
        answer = server.remote.ask(Ask("f", (tenth,)))
        os._exit(0 if isinstance(answer, Granted) else 1)
    assert os.waitpid(child, 0)[1] == 0
    server.remote.ask(Ask("f", calls=1, spent=tenth))
    until = time.monotonic() + 30
    while server.account.spent().get("f") != Spent(1, 2 * tenth) and time.monotonic() < until:
        time.sleep(0.001)
    assert server.account.spent() == {"f": Spent(1, 2 * tenth)}
