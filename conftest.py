"""What all tests share: one Spark session, and who runs what."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from querymesh.spark.session import local_session

# Other tests run beside, and kernels may have to be compiled first: no example has a deadline.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

STARTS_SPARK = ("tests/spark/", "tests/demo/", "tests/cli/test_cli.py")
"""Tests that may start a session by themselves."""

STARTS_DRIVERS = ("test_a_join_that_is_killed_again_and_again_gives_each_result_once",)
"""Tests whose Spark is in processes of their own: they may run beside the session."""


@cache
def needs_spark(module: str) -> bool:
    """Whether a module, by its path from the project's root, has tests on Spark."""
    asks = re.compile(r"def \w+\([^)]*\bspark\b")
    path = Path(__file__).parent / module
    return module.startswith(STARTS_SPARK) or bool(asks.search(path.read_text(encoding="utf-8")))


class OneSession(LoadScopeScheduling):
    """Two processes share the tests: modules that need Spark go to one of them, so that there is
    one session; of all others each test goes to who is free."""

    def _split_scope(self, nodeid: str) -> str:
        module, _, test = nodeid.partition("::")
        return "spark" if needs_spark(module) and test not in STARTS_DRIVERS else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneSession:
    """Asked for by `-n`."""
    return OneSession(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs Spark comes first: it takes longest."""
    items.sort(key=lambda item: not needs_spark(item.nodeid.partition("::")[0]))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One real local session for the whole run.

    Java's second compiler and its parallel collector are off: on queries this small and this many
    they took a third of the processor time and never paid it back.
    """
    session = local_session(
        cores=2,
        app_name="querymesh-tests",
        conf={
            "spark.sql.session.timeZone": "UTC",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    yield session
    session.stop()
