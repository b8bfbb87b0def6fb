"""Calls that may take too long: each on a thread that is left alone if it does.

Python cannot end a thread. One whose call hangs is a daemon, so that the process can end, and no
more than `MOST_HUNG` of a process hang at once: then no call is begun until one of them came back.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from querymesh.query.costly.calls.crew import Crew

MOST_HUNG = 256


class NoRoomError(TimeoutError):
    """A call was not made, because too many of those before it hang."""


class Hung:
    """How many calls of this process hang, and no more than that."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return self._count

    def add(self) -> None:
        """One more hangs."""
        with self._changed:
            self._count += 1

    def remove(self) -> None:
        """One came back."""
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait_for_room(self, timeout_s: float) -> None:
        """Wait until another call may hang; NoRoomError if that takes too long."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._count < self._most, timeout_s):
                raise NoRoomError(
                    f"{self._count} calls that took longer than timeout_s have not come back yet: "
                    "no further one is begun in this process"
                )


class _Job:
    def __init__(self, args: Sequence[pa.Array], n: int) -> None:
        self.args, self.n = args, n
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.has_begun = self.given_up = False


class Lane:
    """Makes calls on a thread of its own, each for so many seconds at most."""

    def __init__(self, call: Callable[[Sequence[pa.Array], int], Any], timeout_s: float) -> None:
        self._call = call
        self._timeout_s = timeout_s
        self._jobs: queue.SimpleQueue[_Job | None] | None = None
        self._lock = threading.Lock()

    def __call__(self, args: Sequence[pa.Array], n: int) -> Any:
        """What the call gives; TimeoutError if it takes too long."""
        if self._jobs is None:
            hung.wait_for_room(self._timeout_s)
            self._jobs = self._started()
        job = _Job(args, n)
        self._jobs.put(job)
        try:
            job.done.wait(self._timeout_s)
        finally:
            with self._lock:
                if not job.done.is_set():
                    job.given_up = True
                    hung.add()
                    self._jobs = None
        if job.given_up and not job.has_begun:
            raise NoRoomError(f"no thread began the call within {self._timeout_s:g} s (timeout_s)")
        if job.given_up:
            raise TimeoutError(f"no answer within {self._timeout_s:g} s (timeout_s)")
        if job.error is not None:
            raise job.error
        return job.result

    def close(self) -> None:
        """No more calls come: the thread ends, if it does not hang."""
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None

    def _started(self) -> queue.SimpleQueue[_Job | None]:
        jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        try:
            crew.start(partial(self._run, jobs))
        except RuntimeError as error:
            raise NoRoomError("the system has no more threads") from error
        return jobs

    def _run(self, jobs: queue.SimpleQueue[_Job | None]) -> None:
        while (job := jobs.get()) is not None:
            with self._lock:
                if job.given_up:
                    hung.remove()
                    return
                job.has_begun = True
            try:
                job.result = self._call(job.args, job.n)
            except BaseException as error:
                job.error = error
            job.args = ()
            with self._lock:
                job.done.set()
                if job.given_up:
                    hung.remove()
                    return


hung = Hung(MOST_HUNG)
crew = Crew("querymesh-lane")


def _forget() -> None:
    """A forked process has none of these threads."""
    global hung
    hung = Hung(MOST_HUNG)


os.register_at_fork(after_in_child=_forget)
