"""Workers that run another Python than the driver: both versions are named, and the remedy."""

import sys

import pytest
from querymesh.spark.udfs.worker_python import (
    check_executable,
    mismatch_in,
    python_version,
    told_of_worker_python,
)

from querymesh.errors import SetupError
from querymesh.report import doctor

SPARK_SAYS = """An exception was thrown from the Python worker. Traceback (most recent call last):
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has \
different version: 3.9 than that in driver: 3.11, PySpark cannot run with different minor versions.
"""


@pytest.fixture
def old_python(tmp_path):
    """Something that says it is Python 3.9."""
    script = tmp_path / "python3.9"
    script.write_text("#!/bin/sh\necho 3.9\n", encoding="utf-8")
    script.chmod(0o755)
    return str(script)


def test_the_drivers_own_python_needs_no_look():
    assert check_executable(sys.executable) == f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_another_python_is_refused_with_both_versions_and_the_setting(old_python):
    with pytest.raises(SetupError, match=r"Python 3\.9 .*this program runs 3\.\d+.*PYSPARK_PYTHON"):
        check_executable(old_python)


def test_an_interpreter_that_is_not_here_or_says_nothing_is_left_to_spark(tmp_path):
    assert python_version(str(tmp_path / "none")) is None
    assert check_executable(str(tmp_path / "none")).startswith("3.")


def test_the_failure_of_a_task_is_told_in_a_sentence():
    told = mismatch_in(SPARK_SAYS)
    assert told is not None
    assert "workers run Python 3.9 and this program runs 3.11" in told
    assert mismatch_in("something else") is None
    with pytest.raises(SetupError, match="PYSPARK_PYTHON"), told_of_worker_python():
        raise RuntimeError(SPARK_SAYS)
    with pytest.raises(ValueError, match="else"), told_of_worker_python():
        raise ValueError("something else")


def test_the_doctor_looks_at_the_python_that_workers_would_run(old_python, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", old_python)
    check = workers_check()
    assert not check.ok
    assert "3.9" in check.found
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert workers_check().ok


def workers_check():
    return next(each for each in doctor.checks() if each.name == "workers")
