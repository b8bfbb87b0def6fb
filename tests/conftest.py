from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from querymesh.spark.session import local_session


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
