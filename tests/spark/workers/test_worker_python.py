import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import querymesh as qm
from querymesh.errors import SetupError
from querymesh.report.doctor import Check, checks
from querymesh.spark.workers import worker_python

OURS = "{}.{}".format(*sys.version_info[:2])


def fake_python(folder: Path, answer: str) -> str:
    """A program that answers as a Python of another version does."""
    program = folder / "python3"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    return str(program)


def test_the_python_of_this_program_is_known_without_asking_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(worker_python.subprocess, "run")
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    assert worker_python.check_python(sys.executable) == OURS
    assert worker_python.check_python(str(link)) == OURS


def test_another_python_of_the_same_version_is_as_good(tmp_path: Path) -> None:
    assert worker_python.check_python(fake_python(tmp_path, f"echo {OURS}")) == OURS


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("echo 3.2", rf"run Python 3\.2 \(.*python3\), this program Python {OURS}"),
        ("exit 3", "does not start as a Python"),
    ],
)
def test_a_python_of_another_version_is_told_with_both_and_the_remedy(
    tmp_path: Path, answer: str, said: str
) -> None:
    with pytest.raises(SetupError, match=rf"{said}.*PYSPARK_PYTHON=.*python"):
        worker_python.check_python(fake_python(tmp_path, answer))


def test_a_python_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"'/.*nowhere', which is not there.*PYSPARK_PYTHON="):
        worker_python.check_python(str(tmp_path / "nowhere"))


def test_doctor_tells_of_the_workers_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", fake_python(tmp_path, "echo 3.2"))
    (found,) = (check for check in checks_before_spark() if check.name == "worker")
    assert "run Python 3.2" in found.found
    assert found.remedy == f"set PYSPARK_PYTHON={sys.executable}"


def checks_before_spark() -> list[Check]:
    found = []
    for check in checks():
        found.append(check)
        if check.name == "worker":
            break
    return found


def test_a_run_that_needs_python_says_it_before_it_starts(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = fake_python(tmp_path, "echo 3.2")
    monkeypatch.setattr(worker_python, "worker_executable", lambda _: other)
    numbers = spark.range(10)
    even = qm.predicate(lambda n: n % 2 == 0, name="even", columns=["id"], vectorised=False)
    with pytest.raises(SetupError, match=r"run Python 3\.2"):
        numbers.transform(qm.where(even, engine="fabric", policy="single"))


SPARK_SAYS = """An exception was thrown from the Python worker. Traceback (most recent call last):
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has \
different version: 3.9 than that in driver: 3.11, PySpark cannot run with different minor versions.
"""


def test_the_failure_of_a_task_is_told_in_a_sentence():
    told = worker_python.mismatch_in(SPARK_SAYS)
    assert told is not None
    assert "workers run Python 3.9, this program Python 3.11" in told
    assert worker_python.mismatch_in("something else") is None
    with pytest.raises(SetupError, match="PYSPARK_PYTHON"), worker_python.told_of_worker_python():
        raise RuntimeError(SPARK_SAYS)
    with pytest.raises(ValueError, match="else"), worker_python.told_of_worker_python():
        raise ValueError("something else")
