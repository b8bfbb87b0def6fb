from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from querymesh.spark.session import local_session

STARTS_SPARK = ("spark", "demo", "test_cli.py")
"""Folders and modules whose tests may start a session by themselves."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two processes share the tests: all that need Spark go to one, which begins with them, so that
    there is one session; the other takes the rest."""
    here = Path(__file__).parent
    needing, others = [], []
    for item in items:
        needs = item.path.relative_to(here).parts[0] in STARTS_SPARK
        if needs or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
            needing.append(item)
        else:
            others.append(item)
    items[:] = needing + others


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
