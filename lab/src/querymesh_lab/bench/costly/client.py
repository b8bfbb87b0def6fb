"""How functions ask the endpoint: from threads, and from an event loop. Connections are kept.

What a caller must know is in the kind of error: `BusyError` (429) says how long to wait, and a
`FailedError` (500), a `GarbageError` or a dropped connection can be tried again. All are OSErrors.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import Any
from weakref import WeakKeyDictionary

TIMEOUT_S = 30.0

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class BusyError(OSError):
    """The endpoint takes no more calls for now; `retry_after` is in seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"429: too many calls, try again after {retry_after:g} s")
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[type[BusyError], tuple[float]]:
        return BusyError, (self.retry_after,)


class FailedError(OSError):
    """The endpoint had an error of its own."""


class GarbageError(OSError):
    """What the endpoint answered is no answer."""


_of_thread = threading.local()


def ask(
    address: str, question: str, inputs: Sequence[Any], timeout_s: float = TIMEOUT_S
) -> list[Any]:
    """One call, on the connection that this thread keeps."""
    kept: dict[str, HTTPConnection] = _of_thread.__dict__.setdefault("kept", {})
    connection = kept.pop(address, None) or HTTPConnection(address, timeout=timeout_s)
    try:
        connection.request("POST", "/ask", _body(question, inputs))
        response = connection.getresponse()
        content = response.read()
    except (OSError, HTTPException) as problem:
        connection.close()
        if isinstance(problem, TimeoutError):
            raise
        raise ConnectionError(f"{address} gave no answer: {problem!r}") from problem
    kept[address] = connection
    return _answers(response.status, content, response.headers.get("Retry-After"))


_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, list[Stream]]] = (
    WeakKeyDictionary()
)


async def ask_async(
    address: str, question: str, inputs: Sequence[Any], timeout_s: float = TIMEOUT_S
) -> list[Any]:
    """One call, on a connection of this event loop that nobody uses."""
    idle = _of_loop.setdefault(asyncio.get_running_loop(), {}).setdefault(address, [])
    host, port = address.split(":")
    body = _body(question, inputs)
    async with asyncio.timeout(timeout_s):
        reader, writer = idle.pop() if idle else await asyncio.open_connection(host, int(port))
        try:
            head = f"POST /ask HTTP/1.1\r\nHost: {address}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            status, content, retry_after = await _response(reader)
        except BaseException as problem:  # also when it is cancelled: the answer is still to come
            writer.close()
            if isinstance(problem, asyncio.IncompleteReadError):
                raise ConnectionError(f"{address} gave no answer: {problem!r}") from problem
            raise
    idle.append((reader, writer))
    return _answers(status, content, retry_after)


def forget_connections() -> None:
    """Close what this thread keeps."""
    for connection in _of_thread.__dict__.pop("kept", {}).values():
        with suppress(OSError):
            connection.close()


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes, str | None]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    content = await reader.readexactly(int(headers["content-length"]))
    return int(first.split()[1]), content, headers.get("retry-after")


def _body(question: str, inputs: Sequence[Any]) -> bytes:
    return json.dumps({"question": question, "inputs": list(inputs)}).encode()


def _answers(status: int, content: bytes, retry_after: str | None) -> list[Any]:
    if status == 429:
        raise BusyError(float(retry_after or 1))
    if status >= 500:
        raise FailedError(f"{status}: {content.decode(errors='replace')}")
    if status != 200:
        raise ValueError(f"{status}: {content.decode(errors='replace')}")
    try:
        answers: list[Any] = json.loads(content)["answers"]
    except (ValueError, KeyError) as problem:
        text = content[:60].decode(errors="replace")
        raise GarbageError(f"no answer is in {text!r}") from problem
    return answers
