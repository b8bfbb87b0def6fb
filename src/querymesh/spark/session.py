"""An embedded Spark session, for those who have no cluster at hand."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping

from pyspark.sql import SparkSession

from querymesh.spark.context import set_log_level
from querymesh.spark.java import use_java


def local_session(
    cores: int = 2,
    app_name: str = "querymesh",
    memory: str = "2g",
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """A local Spark session with small-machine settings; a session that runs already is reused.

    `conf` are further Spark settings, by their full names.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    use_java()
    # Only Arrow passes between Spark and QueryMesh, so PySpark's doubts about pandas 3 are moot.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Tasks import what this program imports: functions in modules beside a script, for example.
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.driver.memory": memory,
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
        # For `fair`: within one pool jobs are served as they come, as always.
        "spark.scheduler.mode": "FAIR",
        **(conf or {}),
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName(app_name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    set_log_level(session, settings["spark.log.level"])
    return session
