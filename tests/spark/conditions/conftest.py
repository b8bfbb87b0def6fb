"""The events that conditions are tried on."""

import pytest

from odd_events import SCHEMA, event


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """Events, the same with other numbers, and a small table of users; also as views."""
    found = {}
    for name, first, rows in (("Event", 0, 300), ("Click", 100, 200)):
        folder = str(tmp_path_factory.mktemp(name))
        made = spark.createDataFrame([event(i) for i in range(first, first + rows)], SCHEMA)
        made.repartition(2).write.mode("overwrite").parquet(folder)
        found[name] = spark.read.parquet(folder)
    users = [(f"u{k}", k, {"quota": k * 2, "name": f"n{k}"}) for k in range(4)]
    found["Users"] = spark.createDataFrame(
        users, "user STRING, level INT, info STRUCT<quota: INT, name: STRING>"
    )
    for name, frame in found.items():
        frame.createOrReplaceTempView(name)
    spark.udf.register("even", lambda x: None if x is None else x % 2 == 0, "boolean")
    spark.udf.register("twice", lambda x: None if x is None else 2 * x, "bigint")
    return found
