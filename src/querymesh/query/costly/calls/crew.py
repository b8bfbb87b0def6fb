"""Threads that are kept from one batch to the next, and with them the connections they keep open.

Functions often hold a connection for each thread: a new thread would open a new one.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

IDLE_S = 60.0
"""A thread that nobody needed for so long ends."""

Task = Callable[[], None]


class Crew:
    """Runs each task on a thread of its own, one that is idle if there is one. All are daemons."""

    def __init__(self, name: str, idle_s: float = IDLE_S) -> None:
        self._name = name
        self._idle_s = idle_s
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def start(self, task: Task) -> None:
        """Run a task beside; RuntimeError if the system has no more threads."""
        with self._lock:
            if self._idle:
                self._idle.pop().put(task)
                return
        box: queue.SimpleQueue[Task] = queue.SimpleQueue()
        box.put(task)
        threading.Thread(target=self._run, args=(box,), daemon=True, name=self._name).start()

    def _forget(self) -> None:
        """A forked process has none of these threads."""
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[Task]] = []

    def _run(self, box: queue.SimpleQueue[Task]) -> None:
        while True:
            try:
                task = box.get(timeout=self._idle_s)
            except queue.Empty:
                with self._lock:
                    if box in self._idle:
                        self._idle.remove(box)
                        return
                continue  # a task has come just now
            task()
            del task
            with self._lock:
                self._idle.append(box)
