"""Processor time of a process and all that it started: what a run cost, whoever else is busy.

Spark's work happens in a Java process and in Python workers below it, Flink's in a Java process
below a Python one. Linux keeps the times of each, and of children that have ended, in /proc.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _FIRST_TIME, _TIMES = 1, 11, 4
"""Places in /proc/<pid>/stat behind the command's name: parent; user, system, children's two."""


def cpu_seconds(pid: int) -> float | None:
    """Seconds on any core, so far, of the process and its descendants; None where not told."""
    if not _PROC.is_dir():
        return None
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for path in _PROC.glob("[0-9]*/stat"):
        try:
            # The name stands in brackets and may itself hold blanks and brackets.
            numbers = path.read_text().rpartition(")")[2].split()
        except OSError:  # ended while we looked
            continue
        one = int(path.parent.name)
        ticks[one] = sum(int(n) for n in numbers[_FIRST_TIME : _FIRST_TIME + _TIMES])
        children[int(numbers[_PARENT])].append(one)
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        total += ticks.get(one, 0)
        waiting += children[one]
    return total / os.sysconf("SC_CLK_TCK")


def between(before: float | None, after: float | None) -> float | None:
    """The seconds between two readings, None if either is missing."""
    return None if before is None or after is None else after - before
