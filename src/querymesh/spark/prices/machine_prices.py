"""Catalyst's prices on this machine: the shipped table times how much slower this machine is.

That factor is measured once, in about a tenth of a second, and remembered in a file for this Spark,
Java and processor: in `QUERYMESH_CACHE`, else in `querymesh` in the user's cache folder. A file
that is damaged is measured again; a folder that cannot be written to costs that tenth of a second
once a process.

What is measured later corrects it (`measured_against`): conditions that are timed, and tasks that
took less than their conditions should (`price_loop.py`). One of them tells of one kind of
condition, or of a busy moment; only where three in a row say the same is it the machine, and of
these the one that says least counts::

    time / price      below 1/2                 1/2 to 2        above 2
    factor            · (2 · ratio) ** 1/2      stays           · (ratio / 2) ** 1/2

by half as much at the most. In between, prices are as wrong as single kinds of conditions are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import threading
from collections import deque
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from time import perf_counter

from pyspark.sql import SparkSession

from querymesh.cost.catalyst_cost import CostTable
from querymesh.cost.catalyst_prices import PRICES
from querymesh.spark.context import java
from querymesh.spark.prices.calibration import some_text
from querymesh.spark.prices.catalyst_costs import thread_clock
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

USUAL, AGREEING, DAMPING, LONGEST_STEP = 2.0, 3, 0.5, 1.5
"""By this factor the price of one condition may be wrong where those of a machine are right; so
many times in a row must say that prices are wrong; the power of what is beyond that which is
believed at once; and by which factor one measurement may change prices at the most."""

TOLD_FROM = 1.05
"""A correction smaller than this is not written down."""


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


def measured_against(session: SparkSession, used: CostTable, ratio: float) -> None:
    """Take in that conditions took `ratio` times what they cost by the table that was used."""
    if not 1 / SLOWEST < ratio < SLOWEST:
        return
    machine, folder = _machine(session), str(cache_folder())
    _slower_once(session, machine, folder)
    known = _slower_in(folder, machine)
    with known.lock:
        changed = known.correct(used.slower * ratio)
    if changed:
        remember_slower(Path(folder), machine, known.factors[0])


def price_level(session: SparkSession) -> float:
    """How high prices are on this machine, by what is known now; 1 before anything is."""
    known = _slower_in(str(cache_folder()), _machine(session))
    return known.factors[0] if known.factors else 1.0


@dataclass
class _Known:
    """What this process knows of a machine: no factor yet, or one; those that were measured since
    and are all higher, or all lower; and the factor that was written down last."""

    factors: list[float] = field(default_factory=list)
    measured: deque[float] = field(default_factory=lambda: deque(maxlen=AGREEING))
    told: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def correct(self, measured: float) -> bool:
        """Move the factor towards one that was measured; whether that is to be written down."""
        (factor,) = self.factors
        if any((each > factor) != (measured > factor) for each in self.measured):
            self.measured.clear()
        self.measured.append(measured)
        if len(self.measured) < AGREEING:
            return False
        ratio = (min if measured > factor else max)(self.measured) / factor
        beyond = max(ratio / USUAL, 1.0) if ratio > 1 else min(ratio * USUAL, 1.0)
        step = min(max(beyond**DAMPING, 1 / LONGEST_STEP), LONGEST_STEP)
        self.factors[0] = min(max(factor * step, 1 / SLOWEST), SLOWEST)
        self.told = self.told or factor
        if abs(math.log(self.factors[0] / self.told)) < math.log(TOLD_FROM):
            return False
        self.told = self.factors[0]
        return True


@cache
def _slower_in(folder: str, machine: str) -> _Known:
    return _Known()


def _slower_once(session: SparkSession, machine: str, folder: str) -> float:
    known = _slower_in(folder, machine)
    if not known.factors:
        slower = remembered_slower(Path(folder), machine)
        if slower is None:
            slower = measured_slower(session)
            remember_slower(Path(folder), machine, slower)
        known.factors.append(slower)
    return known.factors[0]


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
