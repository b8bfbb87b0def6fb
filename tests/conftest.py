from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from querymesh.spark.session import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One real local session for the whole run."""
    session = local_session(
        cores=2,
        app_name="querymesh-tests",
        conf={"spark.sql.session.timeZone": "UTC"},
    )
    yield session
    session.stop()
