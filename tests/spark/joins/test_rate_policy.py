"""Policy "rate" on Spark: orders chosen by output rates, while the query runs and before."""

from collections import Counter

import numpy as np
import pytest

import querymesh as qm
from join_feed import SCHEMA, Feed, Ran
from querymesh.errors import OptionError, QueryError
from swapping_feed import CHAIN, CHAIN_IN_DUCKDB, rows_of, swapping

SMALL = {"sample_rows": 100}
GOALS = [None, qm.policies.MostBy(10), qm.policies.First(20), qm.policies.Last()]


def stretch(a=300, b=90, c=30, seconds=20):
    """Rows of all three streams, as tables."""
    rng = np.random.default_rng(3)
    return {
        n: rows_of(rng, count, 0, seconds, 0) for n, count in zip("ABC", (a, b, c), strict=True)
    }


def in_duckdb(feed):
    return Counter(feed.registered().sql(CHAIN_IN_DUCKDB).fetchall())


def one_batch(spark, tmp_path, tables=None):
    """DataFrames, and a feed that knows DuckDB's answer."""
    feed = Feed(spark, tmp_path / "in", "ABC")
    tables = tables or stretch()
    feed.add(**tables)
    return {name: spark.createDataFrame(table) for name, table in tables.items()}, feed


def collected(out):
    return Counter(map(tuple, out.collect()))


def test_a_running_join_goes_over_to_another_order_when_rates_swap(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "ABC")
    swapping(feed)

    def watched(number, live):
        assert live.plan_loop.wait(60)

    ran = Ran(
        feed, CHAIN, tmp_path / "checkpoint", watched,
        policy=qm.policies.Rate(goal=qm.policies.MostBy(60), **SMALL),
    )  # fmt: skip
    live = ran.live
    assert live.problems == []
    assert ran.rows == in_duckdb(feed)
    assert sum(ran.rows.values()) > 100
    swaps = [switch for switch in live.switches if switch.stream == "b" and switch.batch >= 5]
    assert len(swaps) == 1, "once, after the rates swapped in batch 5"
    assert "(a ⋈ b) ⋈ c does" in swaps[0].reason
    assert "(b ⋈ c) ⋈ a would do" in swaps[0].reason
    assert len({batch.query_id for batch in live.batches}) == 1, "one run, with no restart"
    used = [max(batch.versions["b"]) for batch in live.batches if batch.versions["b"]]
    assert used == sorted(used)
    assert used[-1] > used[3], "later batches ran on the new order"
    text = live.plan_loop.explain()
    assert 'policy rate, goal "most by 60s", 10 rounds seen' in text
    assert "(a ⋈ b) ⋈ c, chosen in round" in text
    assert "b  probes a > c" in text
    assert f"{swaps[0].reason}" in text


DEAR = {
    "dear": qm.predicate(
        lambda x: [sum(range(2000)) > 0 and v >= 0 for v in x.to_pylist()], name="dear"
    )
}


def test_a_dear_condition_comes_behind_a_cheap_one_that_drops_much(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "ABC")
    swapping(feed, 3)
    first_dear = CHAIN.replace("a.y < 4", "dear(a.x) AND a.y < 4")

    def watched(number, live):
        assert live.plan_loop.wait(60)

    ran = Ran(
        feed, first_dear, tmp_path / "checkpoint", watched,
        policy=qm.policies.Rate(**SMALL), functions=DEAR,
    )  # fmt: skip
    assert ran.live.problems == []
    assert ran.rows == in_duckdb(feed)
    assert ran.live.mesh.meshes["a"].routes[0][:2] == (2, 1)
    frames = {name: spark.read.parquet(str(feed.folder / name)) for name in "ABC"}
    asked = qm.query(first_dear, time="ts", functions=DEAR)
    out = qm.run(asked, frames, policy=qm.policies.Chart(**SMALL))
    assert collected(out) == ran.rows
    assert qm.inspect(out).mesh.meshes["a"].routes[0][:2] == (2, 1)


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_a_batch_gives_what_duckdb_gives_whatever_its_goal(spark, tmp_path, goal):
    frames, feed = one_batch(spark, tmp_path)
    out = qm.run(
        qm.query(CHAIN, time="ts"),
        frames,
        policy=qm.policies.Rate(goal=goal, **SMALL),
        shards=2,
    )
    assert collected(out) == in_duckdb(feed)
    text = qm.inspect(out).plan_loop.explain()
    expected = {None: "most by 60s", GOALS[1]: "most by 10s", GOALS[2]: "first 20"}
    assert f'goal "{expected.get(goal, "last")}"' in text
    assert "(b ⋈ c) ⋈ a, chosen in round 0" in text
    assert "300" in text


def test_a_stream_with_a_sample_starts_with_the_planned_order(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "ABC")
    tables = stretch()
    feed.add(**tables)
    ran = Ran(
        feed, CHAIN, tmp_path / "checkpoint",
        policy=qm.policies.Rate(**SMALL), sample=tables,
    )  # fmt: skip
    assert ran.rows == in_duckdb(feed)
    assert ran.live.plan_loop.planner.orders["b"] == ("c", "a")
    assert "(b ⋈ c) ⋈ a" in ran.live.plan_loop.explain()


def asked(spark, tables=None, engine="auto", **options):
    """A run of policy "rate" with these options."""
    tables = tables or stretch()
    frames = {name: spark.createDataFrame(table) for name, table in tables.items()}
    policy = qm.policies.Rate(**SMALL, **options)
    return qm.run(qm.query(CHAIN, time="ts"), frames, policy=policy, engine=engine)


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        ({"goal": "most by 5s"}, OptionError, r"goal is querymesh\.policies\.MostBy"),
        (
            {"goal": qm.policies.First(1e9)},
            QueryError,
            r"first 1e\+09 results are not reached: [\d.]+ are expected in all",
        ),
        (
            {"goal": qm.policies.First(1e9), "engine": "native"},
            QueryError,
            "are not reached",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_goal_that_makes_no_sense_is_refused_before_anything_runs(spark, how, error, said):
    with pytest.raises(error, match=said):
        asked(spark, **how)


def test_a_goal_is_of_policy_rate_alone():
    for policy in (qm.policies.Mesh, qm.policies.Chart):
        with pytest.raises(TypeError, match="unexpected keyword argument 'goal'"):
            policy(goal=qm.policies.MostBy(5))


@pytest.mark.parametrize("engine", ["auto", "native"])
def test_an_endless_stream_has_no_last_result(spark, tmp_path, engine):
    feed = Feed(spark, tmp_path / "in", "ABC")
    rate = qm.policies.Rate(goal=qm.policies.Last())
    with pytest.raises(QueryError, match=r"no last result: a, b, c has no end.*First\(1000\)"):
        qm.run(
            qm.query(CHAIN, time="ts"), feed.streams(), policy=rate, engine=engine,
            sample=stretch(), checkpoint=str(tmp_path / "checkpoint"),
        )  # fmt: skip


@pytest.mark.parametrize("engine", ["auto", "native"])
def test_what_is_not_known_is_assumed_and_said(spark, engine):
    tables = {**stretch(), "C": SCHEMA.empty_table()}
    out = asked(spark, tables=tables, engine=engine)
    assert collected(out) == Counter()
    text = qm.inspect(out).plan_loop.explain()
    assert "assumed\n" in text
    assert "how often b ⋈ c match is not known: assumed" in text
    assert "the geometric mean of the known ones" in text
