"""A function called in pieces: so many rows a call, several calls at once, each tried again.

::

    rows  |  piece  |  piece  |  piece  |  piece  |      results in the order of the rows
              │ thread 1  │ thread 2  │ (or tasks of one event loop, for an `async def`)
              └ attempt, pause, attempt ... or it has failed

Pieces that fail do not stop the others: what they answered has been paid for.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from querymesh.errors import PredicateError
from querymesh.query.costly.calling import Calling
from querymesh.query.predicate.failing_rows import Raised

Call = Callable[[Sequence[pa.Array], int], Any]
"""Of arrays and the number of their rows, what the function gives: for an `async def` what is to be
awaited."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows, and what the function gave for them."""

    start: int
    rows: int
    result: Any


def call_in_pieces(
    call: Call,
    calling: Calling,
    args: Sequence[pa.Array],
    n: int,
    *,
    is_async: bool,
    stop_at_failure: bool = False,
) -> list[Piece]:
    """The results of all pieces, in order; `Raised` where one failed for good."""
    size = calling.batch or n
    cuts = [(start, min(size, n - start)) for start in range(0, n, size)]
    parts = [([arg.slice(start, rows) for arg in args], rows) for start, rows in cuts]
    if is_async:
        results = _awaited(call, calling, parts)
    elif calling.concurrency == 1 and calling.timeout_s is None:
        results = [_attempts(call, calling, *part) for part in parts]
    else:
        results = _threaded(call, calling, parts)
    return [Piece(*cut, result) for cut, result in zip(cuts, results, strict=True)]


def _attempts(call: Call, calling: Calling, args: Sequence[pa.Array], n: int) -> Any:
    """One piece, tried until it succeeds, or has failed for good."""
    for attempt in range(1, calling.retries + 2):
        try:
            return call(args, n)
        except PredicateError:
            raise
        except Exception as error:
            if attempt > calling.retries or not isinstance(error, calling.retry_on):
                return Raised(error)
        time.sleep(calling.pause_s(attempt, random.random()))
    raise AssertionError("a call succeeds, or fails for good")


def _threaded(
    call: Call, calling: Calling, parts: Sequence[tuple[list[pa.Array], int]]
) -> list[Any]:
    """All pieces, in threads. A call that takes too long is left to itself, and its thread with
    it: Python cannot end one. It is a daemon, so that the process can end."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for at in range(len(parts)):
        waiting.put(at)
    results: list[Any] = [None] * len(parts)
    done = threading.Semaphore(0)

    def work() -> None:
        while True:
            try:
                at = waiting.get_nowait()
            except queue.Empty:
                return
            results[at] = _attempts(_within(call, calling.timeout_s), calling, *parts[at])
            done.release()

    for _ in range(min(calling.concurrency, len(parts))):
        threading.Thread(target=work, daemon=True).start()
    for _ in parts:
        done.acquire()
    return results


def _within(call: Call, timeout_s: float | None) -> Call:
    """The call, that raises TimeoutError once it has taken so long."""
    if timeout_s is None:
        return call

    def limited(args: Sequence[pa.Array], n: int) -> Any:
        box: list[Any] = []

        def run() -> None:
            try:
                box.append(call(args, n))
            except Exception as error:
                box.append(Raised(error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(timeout_s)
        if not box:
            raise TimeoutError(f"no answer within {timeout_s:g} s (timeout_s)")
        if isinstance(box[0], Raised):
            raise box[0].error
        return box[0]

    return limited


def _awaited(
    call: Call, calling: Calling, parts: Sequence[tuple[list[pa.Array], int]]
) -> list[Any]:
    """All pieces, as tasks of this process's event loop; what is given up is cancelled."""
    future = asyncio.run_coroutine_threadsafe(_gathered(call, calling, parts), _event_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def _gathered(
    call: Call, calling: Calling, parts: Sequence[tuple[list[pa.Array], int]]
) -> list[Any]:
    at_once = asyncio.Semaphore(calling.concurrency)

    async def one(args: Sequence[pa.Array], n: int) -> Any:
        async with at_once:
            for attempt in range(1, calling.retries + 2):
                try:
                    return await _answer(call(args, n), calling.timeout_s)
                except Exception as error:
                    if attempt > calling.retries or not isinstance(error, calling.retry_on):
                        return Raised(error)
                await asyncio.sleep(calling.pause_s(attempt, random.random()))
        raise AssertionError("a call succeeds, or fails for good")

    return list(await asyncio.gather(*(one(*part) for part in parts)))


async def _answer(awaited: Awaitable[Any], timeout_s: float | None) -> Any:
    try:
        return await asyncio.wait_for(awaited, timeout_s)
    except TimeoutError:
        limit = "" if timeout_s is None else f" within {timeout_s:g} s (timeout_s)"
        raise TimeoutError(f"no answer{limit}") from None


@cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """The loop of this process, always the same: connections that a function keeps belong to it."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="querymesh-calls").start()
    return loop


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether what the function gives must be awaited."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(
        getattr(fn, "__call__", None)  # noqa: B004
    )
