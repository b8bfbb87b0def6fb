"""The Catalyst trap: the optimizer must not fold routes that hold the same predicates."""

import re
from dataclasses import replace

import pytest

import querymesh as qm
from querymesh.classify.tree import Leaf, Member, Split

COLUMNS = ("id % 3 AS k", "CAST(id AS STRING) AS p", "CAST(id + 1 AS STRING) AS q")


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(
    "conditions",
    [
        "p RLIKE 'one' AND q RLIKE 'two'",
        "(p IS NULL OR lower(p) = 'one') AND coalesce(q, 'b') = 'two'",
    ],
)
def test_each_leaf_keeps_its_own_order_in_the_optimized_plan(spark, tmp_path, nullable, conditions):
    df = spark.range(1000).selectExpr(*COLUMNS)
    if nullable:  # a file's columns are, and Catalyst cannot see through it
        df.write.parquet(str(tmp_path / "rows"))
        df = spark.read.parquet(str(tmp_path / "rows"))
    query = qm.query(f"SELECT * FROM t WHERE {conditions}")
    mesh = replace(
        qm.train(query, df),
        tree=Split(Member("k", (1,)), Leaf(0), Split(Member("k", (2,)), Leaf(1), Leaf(0))),
        routes=((1, 2), (2, 1)),
    )
    plan = qm.run(mesh, df, engine="native")._jdf.queryExecution().optimizedPlan().toString()
    (condition,) = [line for line in plan.splitlines() if "Filter" in line]
    assert re.findall("one|two", condition) == ["one", "two", "two", "one", "one", "two"], condition
