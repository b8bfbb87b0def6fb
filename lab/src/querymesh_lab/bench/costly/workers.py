"""Spark's Python workers on this machine: which they are, how large they grew, and their end.

Of Linux, where `/proc` tells who is whose child; elsewhere there are none to be seen.
"""

from __future__ import annotations

import os
import random
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROC = Path("/proc")
DAEMON = b"daemon"
LOOK_S = 0.02


def worker_pids() -> list[int]:
    """The workers below this process: children of a daemon of PySpark that are its like."""
    parents, commands = {}, {}
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError):
            parents[int(folder.name)] = _parent(folder)
            commands[int(folder.name)] = (folder / "cmdline").read_bytes()
    return [
        pid
        for pid, parent in parents.items()
        if _is_daemon(commands.get(pid, b""))
        and _is_daemon(commands.get(parent, b""))
        and _is_below(pid, os.getpid(), parents)
    ]


def peak_bytes(pid: int) -> int:
    """The largest resident size that a process has had; 0 of one that is gone."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", (PROC / str(pid) / "status").read_text())
        return 1024 * int(found[1]) if found else 0
    return 0


@contextmanager
def peaks() -> Iterator[dict[int, int]]:
    """By process, the largest size that workers have while a block runs."""
    seen: dict[int, int] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_S):
            for pid in worker_pids():
                seen[pid] = max(seen.get(pid, 0), peak_bytes(pid))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


@contextmanager
def kills(when: list[threading.Event], seed: int = 0) -> Iterator[list[int]]:
    """`kill -9` of a worker at each event, while a block runs: the pids, as they were killed."""
    killed: list[int] = []
    over = threading.Event()
    chance = random.Random(seed)

    def kill() -> None:
        for event in when:
            while not event.wait(LOOK_S):
                if over.is_set():
                    return
            pids = sorted(set(worker_pids()) - set(killed))
            if pids:
                pid = chance.choice(pids)
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def _parent(folder: Path) -> int:
    # pid (name) state ppid ...; the name may have spaces and brackets
    return int((folder / "stat").read_text().rpartition(")")[2].split()[1])


def _is_daemon(command: bytes) -> bool:
    return DAEMON in command and b"python" in command


def _is_below(pid: int, top: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != top:
        pid = parents[pid]
    return pid == top
