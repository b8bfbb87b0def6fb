"""Catalyst's prices on this machine: the shipped table times how much slower this machine is.

That factor is measured once, in about a tenth of a second, and remembered in a file for this Spark,
Java and processor: in `QUERYMESH_CACHE`, else in `querymesh` in the user's cache folder. A file
that is damaged is measured again; a folder that cannot be written to costs that tenth of a second
once a process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
from functools import cache, lru_cache
from pathlib import Path
from time import perf_counter

from pyspark.sql import SparkSession

from querymesh.cost.catalyst_cost import CostTable
from querymesh.cost.catalyst_prices import PRICES
from querymesh.spark.context import java
from querymesh.spark.sampling.calibration import some_text
from querymesh.spark.sampling.catalyst_costs import thread_clock
from querymesh.storage import Storage

VERSION = 1
SLOWEST = 100.0
"""A factor beyond this, or below one over it, is no measurement."""

PATTERN, TEXT_BYTES = "(select|union|insert|drop)", 100_000
REFERENCE_US = 0.0235
"""What is timed is one search of Java's in one long text, and what a byte of it took where the
shipped prices come from. Such a loop is fast after a few rounds even in a session that has just
begun, where conditions on rows take up to fifty times as long as later."""

ROUNDS, BUDGET_S = 40, 0.3


def cost_table(session: SparkSession) -> CostTable:
    """The prices that hold on the session's driver."""
    return CostTable(PRICES, _slower_once(session, _machine(session), str(cache_folder())))


def cache_folder() -> Path:
    """Where what was measured is remembered."""
    if own := os.environ.get("QUERYMESH_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "querymesh"


def remembered_slower(folder: Path, machine: str) -> float | None:
    """What was measured on this machine before; None if nothing was, or the file is damaged."""
    try:
        found = json.loads(_file(folder, machine).read_text(encoding="utf-8"))
        if found["version"] != VERSION or found["machine"] != machine:
            return None
        slower = float(found["slower"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return slower if 1 / SLOWEST < slower < SLOWEST else None


def remember_slower(folder: Path, machine: str, slower: float) -> None:
    """Write down what was measured, where that is possible."""
    content = {"version": VERSION, "machine": machine, "slower": slower}
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        name = _file(folder, machine).name
        Storage(str(folder)).write(name, json.dumps(content).encode())


def measured_slower(session: SparkSession) -> float:
    """How many times as long this machine takes as the one that the shipped prices are of."""
    started, clock = perf_counter(), thread_clock(session)
    pattern = java(session).java.util.regex.Pattern.compile(PATTERN)
    search = pattern.matcher(some_text(TEXT_BYTES))
    least_ns = math.inf
    for _ in range(ROUNDS):
        search.reset()
        before = clock()
        search.find()
        least_ns = min(least_ns, clock() - before)
        if perf_counter() - started > BUDGET_S:
            break
    slower = least_ns / 1e3 / TEXT_BYTES / REFERENCE_US
    return slower if 1 / SLOWEST < slower < SLOWEST else 1.0


@cache
def _slower_in(folder: str, machine: str) -> list[float]:
    """What this process knows already of a machine: nothing, or one factor."""
    return []


def _slower_once(session: SparkSession, machine: str, folder: str) -> float:
    known = _slower_in(folder, machine)
    if not known:
        slower = remembered_slower(Path(folder), machine)
        if slower is None:
            slower = measured_slower(session)
            remember_slower(Path(folder), machine, slower)
        known.append(slower)
    return known[0]


@lru_cache(maxsize=1)
def _machine(session: SparkSession) -> str:
    """What the prices hang on: Spark, Java, the processor."""
    version = java(session).java.lang.System.getProperty("java.version")
    return f"Spark {session.version}, Java {version}, {_processor()}"


@cache
def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file(folder: Path, machine: str) -> Path:
    return folder / f"catalyst-{hashlib.sha256(machine.encode()).hexdigest()[:16]}.json"
