"""The mark `spark` is on every test that needs a JVM, so `-m "not spark"` starts none."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.java_gateway import launch_gateway

MESSAGE = "this test starts Spark: give it pytest.mark.spark"


def test_whatever_uses_the_session_has_the_mark(request: pytest.FixtureRequest) -> None:
    uses = [item for item in request.session.items if "spark" in getattr(item, "fixturenames", ())]
    assert [item.nodeid for item in uses if item.get_closest_marker("spark") is None] == []


def test_a_test_without_the_mark_cannot_start_a_jvm() -> None:
    with pytest.raises(FileNotFoundError, match=MESSAGE):
        launch_gateway()


def test_nor_can_a_process_that_it_starts() -> None:
    program = "from pyspark.java_gateway import launch_gateway; launch_gateway()"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode != 0
    assert MESSAGE in ended.stderr


@pytest.mark.spark(own_process=True)
def test_a_test_with_the_mark_finds_sparks_launcher_as_ever() -> None:
    assert MESSAGE not in os.environ.get("SPARK_HOME", "")


TESTS = """
import os
import pytest
from pathlib import Path

def _note(what):
    with open(Path(__file__).with_name("workers.txt"), "a") as file:
        print(what, os.environ["PYTEST_XDIST_WORKER"], file=file)

@pytest.mark.spark
@pytest.mark.parametrize("number", range(6))
def test_marked(number):
    _note("marked")

@pytest.mark.parametrize("number", range(40))
def test_unmarked(number):
    _note("unmarked")
"""


def test_two_processes_have_one_session_between_them(tmp_path: Path) -> None:
    """What has the mark runs in one process; a silent change in pytest or xdist would show here."""
    own = Path(__file__).parents[1] / "conftest.py"
    (tmp_path / "conftest.py").write_text(own.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = spark\n", encoding="utf-8")
    (tmp_path / "test_workers.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ended.returncode == 0, ended.stdout
    noted = Counter((tmp_path / "workers.txt").read_text(encoding="utf-8").splitlines())
    assert sum(noted.values()) == 46
    assert [count for line, count in noted.items() if line.startswith("marked")] == [6]
