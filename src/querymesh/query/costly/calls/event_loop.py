"""A batch of an `async def`, called by tasks of one event loop.

A process has one loop, on a thread of its own, and always the same: connections that a function
keeps open belong to it. A function that blocks it, as `time.sleep` does, is noticed where there is
a `timeout_s`; then the loop is left alone, and another one made.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import Future, wait
from typing import Any

from querymesh.query.costly.calls import lanes
from querymesh.query.costly.calls.lanes import NoRoomError
from querymesh.query.costly.calls.work import Attempt, Work

CANCEL_S = 1.0
"""What is cancelled has so long to end. It is then no longer waited for."""

LOOK_S = 0.1
"""So often a task that pauses looks whether to go on at all."""

_loop: asyncio.AbstractEventLoop | None = None
_lock = threading.Lock()


def call_in_tasks(work: Work) -> None:
    """All pieces, by as many tasks as calls may run at once."""
    while not work.is_all_begun:
        try:
            loop = _event_loop(work.calling.timeout_s)
        except NoRoomError as error:
            work.give_up_rest(error)
            return
        future = asyncio.run_coroutine_threadsafe(_all(work), loop)
        try:
            is_blocked = _wait(future, loop, work.calling.timeout_s)
        except BaseException:
            work.stopped.set()
            future.cancel()
            raise
        if not is_blocked:
            future.result()
            return
        _leave_alone(loop)
        future.cancel()
        work.give_up_running(
            TimeoutError(
                f"the event loop was blocked for more than {work.calling.timeout_s:g} s "
                "(timeout_s): an async function awaits what takes long, and never sleeps itself"
            )
        )


def _wait(future: Future[None], loop: asyncio.AbstractEventLoop, timeout_s: float | None) -> bool:
    """Wait for the end; or until the loop does not answer any more: then True."""
    while not wait([future], timeout_s).done:
        answers = threading.Event()
        loop.call_soon_threadsafe(answers.set)
        if not answers.wait(timeout_s):
            return not future.done()
    return False


async def _all(work: Work) -> None:
    count = min(work.calling.concurrency, len(work.cuts))
    tasks = [asyncio.ensure_future(_some(work)) for _ in range(count)]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        work.stopped.set()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=CANCEL_S)
        raise


async def _some(work: Work) -> None:
    loop = asyncio.get_running_loop()
    while loop is _loop and (attempt := work.begin()) is not None:
        await _finish(work, attempt)
        del attempt  # and its arrays, before the next is cut


async def _finish(work: Work, attempt: Attempt) -> None:
    while (wait_s := await _wait_s(work, attempt)) is not None:
        if wait_s > 0:
            await _rest(work, wait_s)
            continue
        try:
            result = await _limited(work, attempt)
        except Exception as error:
            pause_s = work.pause_s(attempt, error)
            if pause_s is None:
                return
            await _rest(work, pause_s)
        else:
            work.succeeded(attempt, result)
            return


async def _wait_s(work: Work, attempt: Attempt) -> float | None:
    wait_s = work.wait_s(attempt, at_hand=True)
    if wait_s is None or wait_s >= 0:
        return wait_s
    return await asyncio.to_thread(work.wait_s, attempt)  # the other calls go on meanwhile


async def _rest(work: Work, seconds: float) -> None:
    """A pause that ends early where nothing is to be called any more."""
    until = time.monotonic() + seconds
    while not work.stopped.is_set() and (left := until - time.monotonic()) > 0:
        await asyncio.sleep(min(left, LOOK_S))


async def _limited(work: Work, attempt: Attempt) -> Any:
    timeout_s = work.calling.timeout_s
    if timeout_s is None:
        return await work.call(attempt.args, attempt.rows)
    lanes.hung.wait_for_room(0.0)
    task = asyncio.ensure_future(work.call(attempt.args, attempt.rows))
    try:
        await asyncio.wait({task}, timeout=timeout_s)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if task.cancelled():
        raise RuntimeError("the function cancelled its own task")
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_S)
    if not task.done():
        lanes.hung.add()
        task.add_done_callback(lambda _: lanes.hung.remove())
    raise TimeoutError(f"no answer within {timeout_s:g} s (timeout_s)")


def _event_loop(timeout_s: float | None) -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            if timeout_s is not None:
                lanes.hung.wait_for_room(timeout_s)
            _loop = asyncio.new_event_loop()
            threading.Thread(
                target=_run, args=(_loop,), daemon=True, name="querymesh-calls"
            ).start()
        return _loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Until it is left alone; what it had to do then is cancelled as soon as it comes back."""
    loop.run_forever()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=CANCEL_S))
    loop.close()


def _leave_alone(loop: asyncio.AbstractEventLoop) -> None:
    global _loop
    with _lock:
        if _loop is not loop:
            return
        _loop = None
    lanes.hung.add()
    loop.call_soon_threadsafe(lanes.hung.remove)
    loop.call_soon_threadsafe(loop.stop)


def _forget() -> None:
    """A forked process has no thread that runs the loop."""
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
