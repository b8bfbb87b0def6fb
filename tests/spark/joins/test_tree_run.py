"""Policy "rate" with engine "native": a tree of Spark's own joins, in the shape that was chosen."""

import re
from collections import Counter

import pyarrow as pa
import pytest
from test_rate_policy import CHAIN, GOALS, SMALL, collected, in_duckdb, one_batch, stretch

import querymesh as qm
from join_feed import Feed, rows_at, to_end
from querymesh.errors import QueryMeshError, SchemaError, UnsupportedError
from querymesh.spark.joins.tree_run import without

NATIVE = {"policy": qm.policies.Rate(**SMALL), "engine": "native"}


def query(sql=CHAIN, **how):
    return qm.query(sql, time="ts", **how)


def joined_columns(out):
    """What the joins of Spark's plan compare, topmost first."""
    plan = out._jdf.queryExecution().optimizedPlan().toString()
    return [
        re.findall(r"(\d)_(?:k|x)#", line) for line in plan.splitlines() if "Join Inner" in line
    ]


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_a_batch_as_a_tree_gives_what_duckdb_gives(spark, tmp_path, goal):
    frames, feed = one_batch(spark, tmp_path)
    policy = qm.policies.Rate(goal=goal, **SMALL)
    out = qm.run(query(), frames, policy=policy, engine="native")
    assert collected(out) == in_duckdb(feed)
    live = qm.inspect(out)
    assert isinstance(live, qm.Run)
    assert (live.engine, live.policy, live.tree) == ("native", "rate", (("b", "c"), "a"))
    top, below = joined_columns(out)
    assert set(top) == {"0", "1"}, "a is joined to b last"
    assert set(below) == {"1", "2"}


def test_the_tree_is_drawn_and_says_what_it_was_chosen_by(spark, tmp_path):
    frames, _ = one_batch(spark, tmp_path)
    text = qm.inspect(qm.run(query(), frames, **NATIVE)).explain()
    assert "as a tree of Spark's own joins" in text
    assert "tree\n  ⋈\n  ├─ ⋈\n  │  ├─ b\n  │  └─ c\n  └─ a" in text
    assert "orders" not in text
    stored_us = float(re.search(r"([\d.]+) µs to store a row", text)[1])
    assert stored_us > 0


@pytest.mark.parametrize("counts", [{"a": 300, "c": 30}, {"a": 30, "c": 300}], ids=str)
def test_a_stream_as_a_tree_is_planned_by_its_sample_and_gives_what_duckdb_gives(
    spark, tmp_path, counts
):
    feed = Feed(spark, tmp_path / "in", "ABC")
    tables = stretch(**counts)
    feed.add(**tables)
    feed.add()
    out = qm.run(query(), feed.streams(), sample=tables, watermark="0 seconds", **NATIVE)
    assert out.isStreaming
    found: Counter = Counter()
    to_end(
        out.writeStream.foreachBatch(lambda batch, _: found.update(map(tuple, batch.collect()))),
        tmp_path / "checkpoint",
    )
    assert found == in_duckdb(feed)
    assert found.total() > 20
    seldom = "c" if counts["a"] > counts["c"] else "a"
    assert set(qm.inspect(out).tree[0]) == {"b", seldom}


def test_aggregates_of_a_batch_are_on_top_of_the_tree(spark, tmp_path):
    frames, feed = one_batch(spark, tmp_path)
    sql = CHAIN.replace("a.id AS a, b.id AS b, c.id AS c", "c.id AS c, count(*) AS n")
    out = qm.run(query(f"{sql} GROUP BY c.id"), frames, **NATIVE)
    expected: Counter = Counter()
    for (_, _, c), times in in_duckdb(feed).items():
        expected[c] += times
    assert dict(map(tuple, out.collect())) == expected
    assert qm.inspect(out).tree == (("b", "c"), "a")


def test_a_table_is_looked_up_by_the_tree_and_not_part_of_its_shape(spark):
    sql = CHAIN.replace(" WHERE", ", T t WHERE t.k = b.k AND")
    tables = stretch()
    t = pa.table({"k": [1, 2, 3], "name": ["x", "y", "z"]})
    frames = {name: spark.createDataFrame(table) for name, table in tables.items()}
    native = qm.run(query(sql), {**frames, "T": t}, **NATIVE)
    states = qm.run(query(sql), {**frames, "T": t}, policy=qm.policies.Single(**SMALL))
    assert collected(native) == collected(states) != Counter()
    assert set("abc") == set(qm.inspect(native).plan_loop.planner.orders)
    assert "t" not in str(qm.inspect(native).tree)


def test_a_shape_without_its_tables_keeps_the_streams_together():
    assert without((("t", "u"), "a"), {"t", "u"}) == "a"
    assert without(((("a", "t"), "b"), "c"), {"t"}) == (("a", "b"), "c")


def test_a_stream_without_a_sample_cannot_be_a_tree(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "ABC")
    with pytest.raises(UnsupportedError, match=r"of A, B, C: give sample=.*leave engine= out"):
        qm.run(query(), feed.streams(), **NATIVE)
    grouped = query(CHAIN.replace("a.id AS a, b.id AS b, c.id AS c", "count(*) AS n"))
    with pytest.raises(UnsupportedError, match=r"does not aggregate a stream.*foreachBatch"):
        qm.run(grouped, feed.streams(), sample=stretch(), **NATIVE)


PAIR = "SELECT a.id FROM A a [RANGE 5 SECONDS], B b [RANGE 2 SECONDS] WHERE a.k = b.k"


@pytest.mark.parametrize(
    ("sql", "how", "error", "said"),
    [
        (
            PAIR,
            {"index": "amri"},
            QueryMeshError,
            "index= is of a join on states.*leave out index=",
        ),
        (PAIR, {"shards": 2}, QueryMeshError, "shards= is of a join on states"),
        (
            PAIR,
            {"policy": qm.policies.Rate(budget=0.5)},
            QueryMeshError,
            "budget= is of a join on",
        ),
        (PAIR, {"policy": "mesh"}, UnsupportedError, "engine='auto'; or policy='rate'"),
        (PAIR, {"policy": "chart"}, UnsupportedError, "engine='auto'; or policy='rate'"),
        (PAIR, {"watermark": "soon"}, QueryMeshError, "watermark='soon' is no length of time"),
        (PAIR.replace("RANGE 2 SECONDS", "ROWS 3"), {}, UnsupportedError, "ROWS 3.* of b"),
        (f"{PAIR} AND odd(b.x) = 1", {}, UnsupportedError, "odd in the condition"),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_what_a_tree_cannot_be_is_said_before_it_is_planned(spark, sql, how, error, said):
    odd = qm.function(lambda values: values, returns=pa.int64(), name="odd")
    frames = {name: spark.createDataFrame(rows_at(0)) for name in "AB"}
    with pytest.raises(error, match=said):
        qm.run(query(sql, functions={"odd": odd}), frames, **{**NATIVE, **how})


def test_streams_must_be_dataframes(spark):
    with pytest.raises(SchemaError, match="A is a windowed stream and must be a Spark DataFrame"):
        qm.run(query(PAIR), {"A": rows_at(0), "B": rows_at(0)}, **NATIVE)
