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
from functools import cache
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from querymesh.cost.catalyst_cost import CostTable, estimate_us
from querymesh.cost.catalyst_prices import PRICES
from querymesh.spark.context import analysed, hidden_frame, java, query_execution
from querymesh.spark.sampling.calibration import texts
from querymesh.spark.sampling.catalyst_costs import timed_us
from querymesh.storage import Storage

VERSION = 1
SLOWEST = 100.0
"""A factor beyond this, or below one over it, is no measurement."""

LENGTH, ROWS, BUDGET_S, TURNS = 80, 500, 0.15, 60
CONDITIONS = (
    "s LIKE '%nowhere%'",
    "lower(s) = 'nowhere'",
    "s RLIKE 'nowhere'",
    "s RLIKE '(select|union|insert|drop)'",
)
"""What is timed: texts and regular expressions, which are what there is to decide about."""


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
    """How many times as long conditions take here as the shipped table says; 1 if unknown."""
    sample = texts(LENGTH, ROWS).select(["s"])
    timed = timed_us(session, sample, CONDITIONS, BUDGET_S, TURNS)
    if timed is None:
        return 1.0
    schema = query_execution(session.createDataFrame(sample.slice(0, 1))).analyzed().schema()
    read = analysed(hidden_frame(session, schema), [F.expr(each) for each in CONDITIONS])
    shipped = CostTable(PRICES)
    estimates = [estimate_us(each.tree, {"s": LENGTH}, shipped).us for each in read]
    slower = float(np.exp(np.nanmedian(np.log(timed / np.array(estimates)))))
    return slower if math.isfinite(slower) and 1 / SLOWEST < slower < SLOWEST else 1.0


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
