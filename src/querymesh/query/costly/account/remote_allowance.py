"""The account of a job as its tasks ask it: one line of JSON to the driver, and one back.

::

    task   {"secret": "…"}                                          driver  {"ok": true}
           {"name": "is_spam", "prices": [5000, 5000], "calls": 1,          {"granted": [0.0, 0.1],
            "spent": 5000, "back": 0}                                        "expire": true}

A process has one connection to a job's driver, and what it reserved belongs to that: when the
process dies, the driver takes it as spent. So it does where a connection breaks, and the next one
begins with nothing reserved.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from dataclasses import dataclass, field
from io import BufferedRWPair
from typing import Any

from querymesh.errors import SetupError
from querymesh.query.costly.account.allowance import (
    Answer,
    Ask,
    AtEnd,
    Granted,
    Later,
    Spent,
)
from querymesh.worker_cache import WorkerCache

MOST_BYTES = 1 << 20
"""Of one line, either way."""

CONNECT_S = 10.0
ANSWER_S = 30.0
PAUSES_S = (0.1, 0.5, 2.0)
"""Before a driver that could not be reached is tried again."""


@dataclass(frozen=True)
class RemoteAllowance:
    """Where the account of a job is asked for, small and picklable: it goes to tasks."""

    host: str
    port: int
    secret: str = field(repr=False)

    def ask(self, question: Ask) -> Answer:
        """Ask the driver; SetupError if it cannot be reached."""
        return answer_of_line(exchanged(self, line_of_question(question)))


class Connection:
    """One process's connection to the driver of a job, made when it is needed, and again."""

    def __init__(self, to: RemoteAllowance) -> None:
        self._to = to
        self._lock = threading.Lock()
        self._file: BufferedRWPair | None = None

    def exchange(self, line: bytes) -> bytes:
        """Send a line, and return the one that comes back."""
        with self._lock:
            for pause_s in (*PAUSES_S, None):
                try:
                    if self._file is None:
                        self._file = self._connected()
                    return _exchanged(self._file, line)
                except OSError as error:
                    self._close()
                    if pause_s is None:
                        raise self._unreachable(error) from error
                    time.sleep(pause_s)
        raise AssertionError("the last attempt raises")

    def _connected(self) -> BufferedRWPair:
        to = self._to
        with socket.create_connection((to.host, to.port), CONNECT_S) as link:
            link.settimeout(ANSWER_S)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            file = link.makefile("rwb")
        _exchanged(file, json.dumps({"secret": to.secret}).encode() + b"\n")
        return file

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(OSError):  # what was not sent yet is lost
                file.close()

    def _unreachable(self, error: OSError) -> SetupError:
        return SetupError(
            f"the driver cannot be reached at {self._to.host}:{self._to.port}, where rate_limit "
            f"and budget of this job are kept ({error or type(error).__name__}). It has ended, or "
            "workers may not connect to it: let them reach all ports of spark.driver.host, or run "
            "without rate_limit= and budget="
        )


def exchanged(to: RemoteAllowance, line: bytes) -> bytes:
    """What the driver says to a line of this process; SetupError if it cannot be reached."""
    with _lock:
        connection = _connections.get_or_make(to, lambda: Connection(to))
    return connection.exchange(line)


def line_of_question(question: Ask) -> bytes:
    """A question as it is sent.

    >>> question_of_line(line_of_question(Ask("f", (5, 7), calls=1)))
    Ask(name='f', prices=(5, 7), calls=1, spent=0, back=0)
    """
    told = {
        "name": question.name,
        "prices": question.prices,
        "calls": question.calls,
        "spent": question.spent,
        "back": question.back,
    }
    return json.dumps(told).encode() + b"\n"


def question_of_line(line: bytes) -> Ask:
    """A question as it was sent; ValueError if it is none."""
    return question_of(json.loads(line))


def question_of(told: object) -> Ask:
    """The same of a line that was read."""
    if not isinstance(told, dict) or not isinstance(told.get("name"), str):
        raise ValueError("no question")
    prices = told.get("prices")
    if not isinstance(prices, list):
        raise ValueError("no prices")
    counts = [_count(told.get(name)) for name in ("calls", "spent", "back")]
    return Ask(told["name"], tuple(_count(price) for price in prices), *counts)


def line_of_answer(answer: Answer) -> bytes:
    """An answer as it is sent.

    >>> answer_of_line(line_of_answer(AtEnd(1, 9, {"f": Spent(2, 8)}))).spent
    {'f': Spent(calls=2, money=8)}
    """
    told: dict[str, Any]
    if isinstance(answer, Granted):
        told = {"granted": answer.delays_s, "expire": answer.expire}
    elif isinstance(answer, Later):
        told = {"later": answer.seconds}
    else:
        spent = {name: (each.calls, each.money) for name, each in answer.spent.items()}
        told = {"left": answer.left, "amount": answer.amount, "spent": spent}
    return json.dumps(told).encode() + b"\n"


def answer_of_line(line: bytes) -> Answer:
    """An answer as it was sent."""
    told = json.loads(line)
    if "granted" in told:
        return Granted(tuple(told["granted"]), told["expire"])
    if "later" in told:
        return Later(told["later"])
    spent = {name: Spent(*each) for name, each in told["spent"].items()}
    return AtEnd(told["left"], told["amount"], spent)


def _exchanged(file: BufferedRWPair, line: bytes) -> bytes:
    file.write(line)
    file.flush()
    answer = file.readline(MOST_BYTES + 1)
    if not answer.endswith(b"\n"):
        raise ConnectionResetError("it closed the connection")
    return answer


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


_connections: WorkerCache[RemoteAllowance, Connection] = WorkerCache(16)
_lock = threading.Lock()


def _forget() -> None:
    """A forked process must not speak on the connections of its parent."""
    global _connections, _lock
    _connections, _lock = WorkerCache(16), threading.Lock()


os.register_at_fork(after_in_child=_forget)
