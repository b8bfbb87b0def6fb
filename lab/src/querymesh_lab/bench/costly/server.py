"""A model endpoint, in a process of its own: HTTP/1.1 with keep-alive on one event loop.

::

    POST /ask       {"question": "bot", "inputs": ["Googlebot/2.1", …]}  ->  {"answers": [true, …]}
    GET  /counts    what was seen
    POST /manners   new settings, and the counts from 0 again

`python -m querymesh_lab.bench.costly.server` takes its settings as one line of JSON from standard
input, writes its port as a line to standard output, and ends when standard input does. It needs
nothing beyond Python itself.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

from querymesh_lab.bench.costly.counts import Counting
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.costly.questions import Rule, rule_of, tokens

BACKLOG = 1024
GARBAGE = b'<html>upstream said: {"answers": ['
Answer = tuple[HTTPStatus, bytes, dict[str, str]]


class DropError(Exception):
    """The connection is to be closed without an answer."""


class HangError(Exception):
    """There will never be an answer; the call no longer counts as in flight."""


class ModelServer:
    """The endpoint's state: its settings, its counts, and what it has seen."""

    def __init__(self, manners: Manners) -> None:
        self.counting = Counting()
        self._behave(manners)

    def _behave(self, manners: Manners) -> None:
        self.manners = manners
        self._bodies: Counter[str] = Counter()
        self._allowed = manners.limit_per_s or 0.0
        self._refilled = time.monotonic()
        self._truth = json.loads(Path(manners.truth).read_text()) if manners.truth else {}
        self.counting.start_anew()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """All calls of one connection."""
        self.counting.connected()
        try:
            while (request := await _request(reader)) is not None:
                status, body, headers = await self._reply(*request, reader)
                writer.write(_head(status, len(body), headers) + body)
                await writer.drain()
        except HangError:
            await reader.read()  # until the caller gives up
        except (DropError, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # cancelled when the server ends
        finally:
            self.counting.disconnected()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _reply(self, target: str, body: str, reader: asyncio.StreamReader) -> Answer:
        if target == "POST /ask":
            return await self._ask(body, reader)
        if target == "GET /counts":
            return _json(self.counting.now().as_json())
        if target == "POST /manners":
            self._behave(Manners(**json.loads(body)))
            return _json({})
        return HTTPStatus.NOT_FOUND, b"{}", {}

    async def _ask(self, body: str, reader: asyncio.StreamReader) -> Answer:
        asked = json.loads(body)
        question, inputs = asked["question"], asked["inputs"]
        try:
            rule = self._rule(question)
        except KeyError:
            return _json({"error": f"there is no question {question!r}"}, HTTPStatus.BAD_REQUEST)
        self.counting.began(question)
        try:
            if not self._within_limit():
                return self._too_many(question, "limited")
            fault = self.manners.fault(body, self._bodies[body])
            self._bodies[body] += 1
            if fault == "busy":  # whoever is busy says so at once
                return self._too_many(question, fault)
            if fault is not None:
                self.counting.failed(question, fault)
            if fault == "hang":
                raise HangError
            await _pause(reader, self.manners.seconds(question, len(inputs), body))
            if fault == "drop":
                raise DropError
            if fault == "error":
                return _json({"error": "the model failed"}, HTTPStatus.INTERNAL_SERVER_ERROR)
            if fault == "garbage":
                return HTTPStatus.OK, GARBAGE, {}
            count = sum(map(tokens, inputs))
            written = [json.dumps(value) for value in inputs]
            self.counting.answered(question, written, count, self.manners.money(question, count))
            return _json({"answers": [rule(value) for value in inputs], "tokens": count})
        finally:
            self.counting.ended(question)

    def _rule(self, question: str) -> Rule:
        if question not in self._truth:
            return rule_of(question)
        known = self._truth[question]
        return lambda value: known[json.dumps(value)]

    def _within_limit(self) -> bool:
        limit = self.manners.limit_per_s
        if limit is None:
            return True
        now = time.monotonic()
        self._allowed = min(max(limit, 1.0), self._allowed + limit * (now - self._refilled))
        self._refilled = now
        if self._allowed < 1.0:
            return False
        self._allowed -= 1.0
        return True

    def _too_many(self, question: str, fault: str) -> Answer:
        self.counting.failed(question, fault)
        wait = {"Retry-After": f"{self.manners.retry_after_s:g}"}
        status, body, _ = _json({"error": "too many calls"}, HTTPStatus.TOO_MANY_REQUESTS)
        return status, body, wait


async def _pause(reader: asyncio.StreamReader, seconds: float) -> None:
    """Take so long, unless the caller leaves before: he pays all the same."""
    if seconds > 0:
        with suppress(TimeoutError, ConnectionError):
            await asyncio.wait_for(reader.read(1), seconds)


async def _request(reader: asyncio.StreamReader) -> tuple[str, str] | None:
    """Method and path of the next request, and its body; None when there is no more."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.split("\r\n")
    target = first.rsplit(" ", 1)[0]
    length = 0
    for line in lines:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    return target, (await reader.readexactly(length)).decode()


def _json(content: Any, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return status, json.dumps(content).encode(), {}


def _head(status: HTTPStatus, length: int, headers: dict[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def main() -> None:
    """Serve until standard input ends, which it does when whoever started this does."""
    served = ModelServer(Manners(**json.loads(sys.stdin.readline())))
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0, backlog=BACKLOG, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
