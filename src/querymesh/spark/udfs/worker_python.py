"""The Python of Spark's workers must be the driver's: what to say, and when, where it is not.

A worker of another minor version cannot read the driver's functions, and Spark says so from within
a failed task, under a page of Java. Where driver and workers are on one machine it can be seen
beforehand, for nothing; on a cluster the failure is translated where we meet it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from pyspark.sql import SparkSession

from querymesh.errors import SetupError
from querymesh.spark.context import on_one_machine, worker_executable

_MISMATCH = re.compile(
    r"Python in worker has different version: (?P<worker>[\d.]+)"
    r" than that in driver: (?P<driver>[\d.]+)"
)
_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"
_SECONDS = 10
"""An interpreter that does not answer in this time is left to Spark."""


def check_worker_python(session: SparkSession) -> None:
    """SetupError if the workers of a session on this machine would run another Python."""
    if on_one_machine(session):
        check_executable(worker_executable(session))


def check_executable(executable: str) -> str:
    """The version of the Python that workers would run; SetupError if it is not the driver's."""
    driver = f"{sys.version_info.major}.{sys.version_info.minor}"
    if executable == sys.executable:
        return driver
    worker = python_version(executable)
    if worker is not None and worker != driver:
        raise SetupError(mismatch_text(worker, driver, executable))
    return driver if worker is None else worker


@lru_cache
def python_version(executable: str) -> str | None:
    """The version of an interpreter, such as "3.11"; None if it does not tell."""
    if shutil.which(executable) is None:
        return None
    try:
        told = subprocess.run(
            [executable, "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() or None


def mismatch_text(worker: str, driver: str, executable: str | None = None) -> str:
    """What to say where versions differ: both, and how to make them one."""
    found = f" ({executable})" if executable else ""
    return (
        f"Spark's workers run Python {worker}{found} and this program runs {driver}: they must be "
        f"of one minor version. Set PYSPARK_PYTHON to a Python {driver} that every worker has, "
        "before the session starts; on one machine "
        f"PYSPARK_PYTHON={sys.executable} will do"
    )


def mismatch_in(text: str) -> str | None:
    """What to say of an error of Spark's, if its cause is another Python; None if it is not."""
    found = _MISMATCH.search(text)
    return None if found is None else mismatch_text(found["worker"], found["driver"])


@contextmanager
def told_of_worker_python() -> Iterator[None]:
    """Turn the failure of a job of ours into a SetupError, if its cause is another Python."""
    try:
        yield
    except Exception as problem:
        if (told := mismatch_in(str(problem))) is not None:
            raise SetupError(told) from None
        raise


def default_executable() -> str:
    """The Python that workers of a session yet to be started would run."""
    return os.environ.get("PYSPARK_PYTHON", sys.executable)
