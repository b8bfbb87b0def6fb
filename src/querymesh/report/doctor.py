"""What `querymesh doctor` looks at: everything a run needs, each tried for real.

A check never raises. It says what it found, and where that is a problem, what to do about it.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter

import pyarrow as pa

from querymesh.errors import QueryMeshError
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.spark.java import find_java
from querymesh.spark.session import local_session
from querymesh.spark.workers.worker_python import check_python, told_of_worker_python

LEAST_PYTHON = (3, 11)
ROWS = 1000


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `remedy` is empty where all is well."""

    name: str
    found: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is nothing to do."""
        return not self.remedy


def checks() -> Iterator[Check]:
    """Every check, in the order in which one builds on the other."""
    yield _tried("python", _python, "use Python 3.11 or newer")
    yield _tried("java", _java, "install a JDK, or: pip install 'querymesh[java]'")
    for package in ("pyspark", "pyarrow", "numpy", "sqlglot"):
        yield _package(package, f"pip install --upgrade {package}")
    yield _tried("worker", _worker_python, f"set PYSPARK_PYTHON={sys.executable}")
    yield _optional("altair", "vl-convert-python")
    yield _tried(
        "calibration", _calibration, "the fabric itself failed: please report this with the text"
    )
    yield _tried(
        "spark job",
        _spark_job,
        "see the lines above; with Java and pyspark in order, look for a proxy or a host name "
        "that does not resolve (SPARK_LOCAL_IP=127.0.0.1 helps)",
    )


def _tried(name: str, look: Callable[[], str], remedy: str) -> Check:
    try:
        return Check(name, look())
    except QueryMeshError as problem:
        return Check(name, str(problem), remedy)
    except Exception as problem:  # any failure at all is the finding
        first = str(problem).strip().splitlines() or [""]
        return Check(name, f"{type(problem).__name__}: {first[0]}", remedy)


def _python() -> str:
    if sys.version_info[:2] < LEAST_PYTHON:
        raise QueryMeshError(f"{platform.python_version()} is too old")
    return platform.python_version()


def _worker_python() -> str:
    executable = os.environ.get("PYSPARK_PYTHON", sys.executable)
    return f"Python {check_python(executable)} for Spark's workers, {executable}"


def _java() -> str:
    found = find_java()
    where = f", home {found.home}" if found.home else ""
    return f"version {found.version}, from {found.source}{where}"


def _package(name: str, remedy: str) -> Check:
    try:
        return Check(name, version(name))
    except PackageNotFoundError:
        return Check(name, "not installed", remedy)


def _optional(*names: str) -> Check:
    """Plots are an extra: without them everything else works, so their absence is no problem."""
    found = []
    for name in names:
        check = _package(name, "missing")
        if not check.ok:
            return Check("plots", "not installed: pip install 'querymesh[report]' adds HTML pages")
        found.append(f"{name} {check.found}")
    return Check("plots", ", ".join(found))


def _spark_job() -> str:
    """A query through a Python task and back, on Arrow: what every fabric run does."""
    started = perf_counter()
    spark = local_session(cores=1, app_name="querymesh-doctor")
    ready = perf_counter()

    def double(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"id": [2 * v for v in batch["id"].to_pylist()]})

    numbers = spark.range(ROWS)
    with told_of_worker_python():
        total = numbers.mapInArrow(double, "id long").groupBy().sum("id").first()
    first = perf_counter()
    if total is None or total[0] != ROWS * (ROWS - 1):
        raise QueryMeshError(f"a sum over {ROWS} rows came out as {total}")
    numbers.mapInArrow(double, "id long").count()
    return (
        f"mapInArrow gave the right sum; session {ready - started:.1f} s, "
        f"first job {first - ready:.1f} s, next job {perf_counter() - first:.2f} s"
    )


def _calibration() -> str:
    overheads = calibrate()
    return (
        f"a test costs {overheads.node_us:.4f} µs a row, "
        f"a ruster {overheads.ruster_us:.1f} µs an operator"
    )
