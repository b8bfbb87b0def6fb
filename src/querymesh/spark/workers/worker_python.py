"""The Python that Spark's workers run: it must be of the same minor version as this one.

Spark starts what PYSPARK_PYTHON names, or else the first `python3` on the PATH, which need not be
the Python of this program's environment. Pickled functions do not pass from one to another.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from pyspark.sql import SparkSession

from querymesh.errors import SetupError
from querymesh.spark.context import on_one_machine, worker_executable

_SECONDS_TO_ANSWER = 30
_MISMATCH = re.compile(
    r"Python in worker has different version: (?P<worker>[\d.]+)"
    r" than that in driver: (?P<driver>[\d.]+)"
)


def check_workers(session: SparkSession) -> None:
    """SetupError if the session's workers run another Python.

    Looked at on one machine only. On a cluster the workers' Python is elsewhere, and they say so
    themselves when a job starts (PYTHON_VERSION_MISMATCH).
    """
    if on_one_machine(session):
        check_python(worker_executable(session))


def check_python(executable: str) -> str:
    """The version of a Python for workers; SetupError if it is not that of this program."""
    ours = "{}.{}".format(*sys.version_info[:2])
    theirs = _version(executable)
    if theirs != ours:
        raise SetupError(
            f"Spark's workers run Python {theirs} ({executable}), this program Python {ours} "
            f"({sys.executable}): set PYSPARK_PYTHON={sys.executable} before the session starts, "
            "or give the workers a Python of the same version"
        )
    return theirs


@cache
def _version(executable: str) -> str:
    found = shutil.which(executable)
    if found is None:
        raise SetupError(
            f"Spark's workers are to run {executable!r}, which is not there: "
            f"set PYSPARK_PYTHON={sys.executable} before the session starts"
        )
    if os.path.realpath(found) == os.path.realpath(sys.executable):
        return "{}.{}".format(*sys.version_info[:2])
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [found, "-c", ask],
            capture_output=True,
            check=True,
            text=True,
            timeout=_SECONDS_TO_ANSWER,
        )
    except (OSError, subprocess.SubprocessError) as problem:
        raise SetupError(
            f"Spark's workers are to run {found}, which does not start as a Python ({problem}): "
            f"set PYSPARK_PYTHON={sys.executable} before the session starts"
        ) from problem
    return answer.stdout.strip()


def mismatch_in(text: str) -> str | None:
    """What to say of an error of Spark's, if its cause is another Python; None if it is not."""
    found = _MISMATCH.search(text)
    if found is None:
        return None
    return (
        f"Spark's workers run Python {found['worker']}, this program Python {found['driver']}: set "
        f"PYSPARK_PYTHON to a Python {found['driver']} that every worker has, before the session "
        "starts"
    )


@contextmanager
def told_of_worker_python() -> Iterator[None]:
    """Turn the failure of a job of ours into a SetupError, if its cause is another Python."""
    try:
        yield
    except Exception as problem:
        if (told := mismatch_in(str(problem))) is not None:
            raise SetupError(told) from None
        raise
