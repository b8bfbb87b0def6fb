"""The driver's side of a job's account and of its answers: tasks ask here before they call.

::

    task ──secret──> a stranger until then: one short line, a few seconds, a few at a time
         ──lines───> a session; what it reserved counts as spent when its connection ends
                     (the lines: `account/remote_allowance.py`, `sharing/remote_answers.py`)

Nothing waits here: every question is answered at once. A thread serves each worker process.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Callable

from querymesh.query.costly.account.allowance import JobAllowance, Session
from querymesh.query.costly.account.remote_allowance import (
    MOST_BYTES,
    RemoteAllowance,
    line_of_answer,
    question_of,
)
from querymesh.query.costly.sharing.job_answers import JobAnswers, JobAnswersSession
from querymesh.query.costly.sharing.remote_answers import is_about_answers, line_of_claim

STRANGER_S = 10.0
"""Who connects has so long to tell the secret."""

MOST_STRANGERS = 64
"""So many connections at most have not told it yet; further ones are closed."""

MOST_SECRET_BYTES = 256

BACKLOG = 1024

_NO_QUESTION = (OSError, ValueError, TypeError, KeyError, RecursionError)
"""What a connection ends with that broke, or whose line cannot be understood."""


class AllowanceServer:
    """Answers the tasks of one job, until it is closed, or nobody holds it any more.

    `host` is the driver's name or address as tasks reach it, `bind` the address that it listens on
    if that is another. Whoever holds the secret of `remote` may reserve money of the job, and read
    and tell answers of its functions, and do nothing else.
    """

    def __init__(
        self,
        account: JobAllowance,
        host: str = "127.0.0.1",
        bind: str | None = None,
        answers: JobAnswers | None = None,
    ) -> None:
        family = socket.AF_INET6 if ":" in (bind or host) else socket.AF_INET
        link = socket.create_server((bind or host, 0), family=family, backlog=BACKLOG)
        secret = secrets.token_hex(32)
        self.account = account
        self.remote = RemoteAllowance(host, link.getsockname()[1], secret)
        """What tasks ask, to be sent to them."""
        desk = _Desk(account, answers or JobAnswers(), secret, link)
        _start(desk.open)
        self._finalizer = weakref.finalize(self, desk.close)

    def close(self) -> None:
        """Answer no more; also done when this is garbage collected."""
        self._finalizer()


class _Desk:
    """Who serves the connections. It does not know the server, which may so be collected."""

    def __init__(
        self, account: JobAllowance, answers: JobAnswers, secret: str, link: socket.socket
    ) -> None:
        self._account = account
        self._answers = answers
        self._secret = secret.encode()
        self._link = link
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._strangers = 0
        self._is_closed = False

    def open(self) -> None:
        """Let in who comes, until this is closed."""
        while True:
            try:
                link, _ = self._link.accept()
            except OSError:
                if self._is_closed:
                    return
                time.sleep(0.1)  # too many open files, perhaps
                continue
            with self._lock:
                welcome = not self._is_closed and self._strangers < MOST_STRANGERS
                if welcome:
                    self._open.add(link)
                    self._strangers += 1
            if welcome:
                _start(self._serve, link)
            else:
                link.close()

    def close(self) -> None:
        """End all connections, and let nobody in."""
        with self._lock:
            self._is_closed = True
            links = [self._link, *self._open]
        for link in links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        self._link.close()

    def _serve(self, link: socket.socket) -> None:
        """One connection, from its secret to its end."""
        with contextlib.suppress(*_NO_QUESTION):
            try:
                knows = self._knows_secret(link)
            finally:
                with self._lock:
                    self._strangers -= 1
            if knows:
                session, answers = self._account.session(), self._answers.session()
                try:
                    _answer(link, session, answers)
                finally:
                    session.close()
                    answers.close()
        with self._lock:
            self._open.discard(link)
        link.close()

    def _knows_secret(self, link: socket.socket) -> bool:
        told = json.loads(_first_line(link))
        secret = told.get("secret") if isinstance(told, dict) else None
        return isinstance(secret, str) and hmac.compare_digest(secret.encode(), self._secret)


def _answer(link: socket.socket, session: Session, answers: JobAnswersSession) -> None:
    """Answer questions until one is none, or there are no more."""
    link.settimeout(None)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _keep_alive(link)
    link.sendall(b'{"ok": true}\n')
    with link.makefile("rb") as lines:
        while (line := lines.readline(MOST_BYTES + 1)).endswith(b"\n"):
            told = json.loads(line)
            if is_about_answers(told):
                link.sendall(line_of_claim(told, answers))
            else:
                link.sendall(line_of_answer(session.ask(question_of(told))))


def _first_line(link: socket.socket) -> bytes:
    """What a stranger says first, who waits for an answer before saying more."""
    until = time.monotonic() + STRANGER_S
    line = b""
    while not line.endswith(b"\n"):
        link.settimeout(max(until - time.monotonic(), 0.001))
        part = link.recv(MOST_SECRET_BYTES)
        line += part
        if not part or len(line) > MOST_SECRET_BYTES or time.monotonic() > until:
            raise ConnectionResetError
    return line


def _keep_alive(link: socket.socket) -> None:
    """Notice within two minutes that a worker's machine is gone."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _start(target: Callable[..., None], *args: socket.socket) -> None:
    threading.Thread(target=target, args=args, daemon=True, name="querymesh-allowance").start()
