"""The mark `spark` is on every test that needs a JVM, so `-m "not spark"` starts none."""

import os
import subprocess
import sys

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
