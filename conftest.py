"""What all tests share: one Spark session, the `spark` mark, and what doctests leave out."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from querymesh.spark.session import local_session

# Other tests run beside, and kernels may have to be compiled first: no example has a deadline.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

NO_SPARK_HOME = "/this test starts Spark: give it pytest.mark.spark"
"""SPARK_HOME of a test without the mark: PySpark looks there for its launcher, and its error names
this path. Processes that the test starts inherit it."""

# Flink runs this file in an environment of its own: nothing else can import it.
collect_ignore = ["lab/src/querymesh_lab/bench/joins/flink/serve_jobs.py"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the session, give it to one process, and run it first: it takes longest.

    First of all hooks, so that `-m` and xdist's groups see the marks.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        mark = item.get_closest_marker("spark")
        if mark is not None and not mark.kwargs.get("own_process", False):
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let no test without the mark start Spark; fixtures of any scope are made within."""
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("spark") is None:
            patch.setenv("SPARK_HOME", NO_SPARK_HOME)
        return (yield)


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
