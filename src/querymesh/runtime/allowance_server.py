"""The driver's side of a job's account and of its answers: tasks ask here before they call.

::

    task ──secret──> a stranger until then: one line, a few seconds, a few at a time
         ──lines───> a session; what it reserved counts as spent when its connection ends
                     (what the lines are: `query/costly/remote_allowance.py`, `remote_answers.py`)

Nothing waits here: every question is answered at once, by one thread for all tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
import socket
import threading
import weakref

from querymesh.query.costly.allowance import JobAllowance
from querymesh.query.costly.job_answers import JobAnswers
from querymesh.query.costly.remote_allowance import (
    MOST_BYTES,
    RemoteAllowance,
    line_of_answer,
    question_of,
)
from querymesh.query.costly.remote_answers import is_about_answers, line_of_claim

STRANGER_S = 10.0
"""Who connects has so long to tell the secret."""

MOST_STRANGERS = 256
"""So many connections at most have not told it yet; further ones are closed."""

BACKLOG = 1024


class AllowanceServer:
    """Answers the tasks of one job, until it is closed, or nobody holds it any more.

    `host` is the driver's name or address as tasks reach it. Whoever holds the secret of `remote`
    may reserve money of the job, and read and tell answers of its functions, and do nothing else.
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
        loop = asyncio.new_event_loop()
        desk = _Desk(account, answers or JobAnswers(), secret)
        stopped = asyncio.Event()
        threading.Thread(
            target=_run, args=(loop, link, desk, stopped), daemon=True, name="querymesh-allowance"
        ).start()
        self._finalizer = weakref.finalize(self, _stop, loop, stopped)

    def close(self) -> None:
        """Answer no more; also done when this is garbage collected."""
        self._finalizer()


class _Desk:
    """Who serves the connections; it does not know the server, which may so be collected."""

    def __init__(self, account: JobAllowance, answers: JobAnswers, secret: str) -> None:
        self._account = account
        self._answers = answers
        self._secret = secret.encode()
        self._strangers = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its secret to its end."""
        with contextlib.suppress(OSError, ValueError, asyncio.CancelledError):
            if await self._knows_secret(reader):
                _keep_alive(writer.get_extra_info("socket"))
                await self._answer(reader, writer)
        writer.close()

    async def _knows_secret(self, reader: asyncio.StreamReader) -> bool:
        if self._strangers >= MOST_STRANGERS:
            return False
        self._strangers += 1
        try:
            told = json.loads(await asyncio.wait_for(reader.readline(), STRANGER_S))
        finally:
            self._strangers -= 1
        secret = told.get("secret") if isinstance(told, dict) else None
        return isinstance(secret, str) and hmac.compare_digest(secret.encode(), self._secret)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session, answers = self._account.session(), self._answers.session()
        try:
            writer.write(b'{"ok": true}\n')
            while line := await reader.readline():
                told = json.loads(line)
                if is_about_answers(told):
                    writer.write(line_of_claim(told, answers))
                else:
                    writer.write(line_of_answer(session.ask(question_of(told))))
                await writer.drain()
        finally:
            session.close()
            answers.close()


def _keep_alive(link: socket.socket) -> None:
    """Notice within two minutes that a worker's machine is gone."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _run(
    loop: asyncio.AbstractEventLoop, link: socket.socket, desk: _Desk, stopped: asyncio.Event
) -> None:
    loop.run_until_complete(_serve(link, desk, stopped))
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def _serve(link: socket.socket, desk: _Desk, stopped: asyncio.Event) -> None:
    server = await asyncio.start_server(desk.serve, sock=link, limit=MOST_BYTES)
    await stopped.wait()
    server.close()


def _stop(loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    with contextlib.suppress(RuntimeError):  # closed before
        loop.call_soon_threadsafe(stopped.set)
