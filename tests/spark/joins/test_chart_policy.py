"""Policy "chart" on Spark: orders chosen by charts of plans, while the query runs and before."""

from collections import Counter

import numpy as np
import pytest

import querymesh as qm
from join_feed import Feed, Ran, query_of
from querymesh.cost.utility import Weights
from querymesh.errors import QueryMeshError, UnsupportedError
from querymesh.spark.joins.source_waiting import left_behind, source_places, waiting_of
from swapping_feed import CHAIN, CHAIN_IN_DUCKDB, rows_of, swapping

A_FIRST, C_FIRST = ("a", "b", "c"), ("b", "c", "a")
BATCHES = 8


def planned(feed, checkpoint, batches_to_plan=lambda number, live: live.plan_loop.wait(60), **how):
    policy = qm.policies.Chart(weights=(0.4, 0.6), sample_rows=100)
    return Ran(feed, CHAIN, checkpoint, batches_to_plan, policy=policy, **how)


@pytest.fixture(scope="module")
def swapped(spark, tmp_path_factory):
    """A run in the middle of which the rates swap, and all it left behind."""
    folder = tmp_path_factory.mktemp("swapped")
    feed = swapping(Feed(spark, folder / "in", "ABC"), BATCHES)
    return feed, planned(feed, folder / "checkpoint"), folder


def answer(feed):
    return Counter(feed.registered().sql(CHAIN_IN_DUCKDB).fetchall())


def test_results_are_duckdbs_whatever_plans_were_taken(swapped):
    feed, ran, _ = swapped
    assert ran.live.problems == []
    assert ran.rows == answer(feed)
    assert sum(ran.rows.values()) > 1000


def test_the_point_moves_and_the_running_query_takes_the_plan_of_its_region(swapped):
    _, ran, _ = swapped
    planner = ran.live.plan_loop.planner
    rates = dict(zip("abc", zip(*(step.point for step in planner.steps), strict=True), strict=True))
    assert rates["a"][0] > 5 * rates["c"][0]
    assert rates["c"][-1] > 2 * rates["a"][-1], "the point has crossed the chart"
    orders = [step.order for step in planner.steps]
    assert orders[0] == C_FIRST, "c is rare: join it first"
    assert orders[-1] == A_FIRST, "then a is"
    switch = orders.index(A_FIRST)
    assert planner.steps[switch].switched
    number = planner.steps[switch].after_round
    meshes = {batch.batch_id: batch.versions["b"] for batch in ran.live.batches}
    before, after = meshes[number], meshes[number + 1]
    assert max(before) < max(after), "another route from the next micro-batch on"
    assert len({batch.query_id for batch in ran.live.batches}) == 1, "and no restart"
    assert len({progress["runId"] for progress in ran.query.recentProgress}) == 1


def test_moves_switches_and_hits_are_counted(swapped):
    _, ran, _ = swapped
    planner = ran.live.plan_loop.planner
    rounds = planner.rounds
    assert rounds.rounds == len(planner.steps) == BATCHES - 1, "the first is only observed"
    assert rounds.judged == rounds.rounds - 1, "the last is not over"
    assert rounds.switches == sum(step.switched for step in planner.steps) == 1
    assert rounds.switches <= rounds.moves == sum(step.moved for step in planner.steps)
    assert 0 < rounds.hits <= rounds.judged
    assert rounds.fidelity == rounds.hits / rounds.judged


def test_what_waited_at_the_sources_is_what_spark_told(swapped):
    _, ran, _ = swapped
    ran.live.plan_loop.explain()
    buffered = ran.live.plan_loop.planner.buffered
    assert {alias: each.taken for alias, each in buffered.items()} == {"a": 20, "b": 60, "c": 200}
    assert {each.batch for each in buffered.values()} == {BATCHES - 1}
    assert {each.left for each in buffered.values()} == {None}, "files do not tell"
    told = ran.query.lastProgress["sources"][2]
    assert buffered["c"].processed == pytest.approx(told["processedRowsPerSecond"])
    watch = ran.live.plan_loop._sources
    assert watch._queries == {}, "the query that has ended is let go"


def test_explain_prints_the_chart_with_the_path(swapped):
    _, ran, _ = swapped
    text = ran.live.plan_loop.explain()
    assert "policy chart: w_r 0.4 / output rate + w_m 0.6 * memory, k 40" in text
    assert "λ-λ chart: 64,000 regions" in text
    assert "@" in text
    assert "rate of a at the joins" in text, "an axis; by measured costs b's rate may matter or not"
    assert "(b ⋈ c) ⋈ a  switched" not in text
    assert "switched" in text
    assert "1 switch," in text
    waited = text[text.index("rows that waited at the sources") :]
    assert waited.splitlines()[2].split()[:3] == ["a", str(BATCHES - 1), "20"]
    assert "not told" in waited


def test_the_chart_is_drawn_by_one_call(swapped):
    _, ran, folder = swapped
    ran.live.plan_loop.draw(folder / "chart.svg")
    drawn = (folder / "chart.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg ")
    assert "<polyline" in drawn
    ran.live.plan_loop.explain(html=folder / "chart.html")
    page = (folder / "chart.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<polyline" in page
    assert "(a ⋈ b) ⋈ c" in page
    with pytest.raises(QueryMeshError, match=r"cannot write the chart to .*nowhere"):
        ran.live.plan_loop.draw(folder / "nowhere" / "chart.svg")


def test_a_restarted_query_goes_on_with_its_plan_and_plans_again(swapped, spark):
    feed, ran, folder = swapped
    rng = np.random.default_rng(12)
    for number in range(BATCHES, BATCHES + 3):
        counts = {"A": 20, "B": 60, "C": 200}
        feed.add(
            **{n: rows_of(rng, count, 2 * number, 2, 1000 * number) for n, count in counts.items()}
        )
    again = planned(feed, folder / "checkpoint")
    assert {max(b.versions["b"]) for b in again.live.batches} == {
        max(ran.live.batches[-1].versions["b"])
    }, "the plan it ended with is the plan it goes on with"
    planner = again.live.plan_loop.planner
    assert planner.rounds is not None, "charts are built anew"
    assert planner.steps[-1].order == A_FIRST
    assert again.live.problems == []
    both = ran.rows + again.rows
    assert both == answer(feed)


def test_a_batch_is_planned_from_a_sample_before_it_runs(spark, tmp_path):
    feed = swapping(Feed(spark, tmp_path / "in", "ABC"), 3, swap=3)
    frames = {name: spark.read.parquet(str(tmp_path / "in" / name)) for name in "ABC"}
    charting = qm.policies.Charting(weights=(0, 1), k=16, adaptive=True)
    policy = qm.policies.Chart(charting=charting)
    out = qm.run(query_of(CHAIN), frames, shards=2, policy=policy)
    found = Counter(map(tuple, out.collect()))
    assert found == answer(feed)
    live = qm.inspect(out)
    assert live.plan_loop.planner.steps[-1].order == C_FIRST
    text = live.plan_loop.explain(html=tmp_path / "chart.html")
    assert "w_r 0 / output rate + w_m 1 * memory, k 16, split along borders" in text
    assert "rows that waited" not in text, "of a batch nothing waits"
    assert "<polyline" in (tmp_path / "chart.html").read_text(encoding="utf-8")


def test_before_anything_is_known_explain_says_so(spark, tmp_path):
    feed = swapping(Feed(spark, tmp_path / "in", "ABC"), 1, swap=1)
    out = qm.run(
        query_of(CHAIN), feed.streams(), policy="chart", checkpoint=str(tmp_path / "checkpoint")
    )
    plan_loop = qm.inspect(out).plan_loop
    text = plan_loop.explain()
    assert "no charts yet: 0 rounds of 2 observed, the orders are as written" in text
    assert "selectivity between a and b: no tuple has probed for it yet, assumed" in text
    with pytest.raises(QueryMeshError, match="no chart to draw: 0 of 2 rounds were observed"):
        plan_loop.draw(tmp_path / "chart.svg")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            {"weights": (-0.1, 0.6)},
            "the weight of rate must be a finite number from 0 on, not -0.1",
        ),
        ({"weights": (0, 0)}, "weights of rate and memory are both 0"),
        ({"weights": (0.4,)}, r"weights are two numbers, .* such as weights=\(0.4, 0.6\)"),
        ({"weights": "much"}, r"weights are two numbers"),
        ({"charting": 40}, "charting is a querymesh.policies.Charting, not int"),
    ],
)
def test_wrong_weights_are_refused_with_the_remedy(how, said):
    with pytest.raises(QueryMeshError, match=said):
        qm.run(query_of(CHAIN), {}, policy=qm.policies.Chart(**how))


@pytest.mark.parametrize("how", [{"weights": (1, 1)}, {"charting": qm.policies.Charting()}])
def test_weights_and_charting_are_of_policy_chart_alone(how):
    (name,) = how
    for policy in (qm.policies.Rate, qm.policies.Mesh):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            policy(**how)


def test_weights_go_before_those_of_charting():
    charting = qm.policies.Charting(weights=(0.5, 0.5), k=16)
    chosen = qm.policies.Chart(weights=(1, 3), charting=charting).charting
    assert (chosen.w, chosen.k) == (Weights(1.0, 3.0), 16)


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_a_chart_needs_a_partition_at_least(k):
    with pytest.raises(QueryMeshError, match="partitions of a dimension, must be a whole number"):
        qm.policies.Charting(k=k)


def test_a_query_of_one_stream_is_pointed_to_another_policy(spark):
    asked = qm.query("SELECT id FROM A WHERE k > 1")
    with pytest.raises(UnsupportedError, match="that is policy='single'"):
        qm.run(asked, {"A": spark.range(1).selectExpr("id", "id AS k")}, policy="chart")


def source(rows, end=None, latest=None, description="FileStreamSource[in]", **metrics):
    return {
        "description": description,
        "endOffset": end,
        "latestOffset": latest,
        "numInputRows": rows,
        "inputRowsPerSecond": 2.0 * rows,
        "processedRowsPerSecond": 4.0 * rows,
        "metrics": metrics,
    }


def test_what_is_left_behind_is_told_in_rows_or_not_at_all():
    kafka = "KafkaV2[Subscribe[t]]"
    end, latest = '{"t":{"0":5,"1":7}}', '{"t":{"0":15,"1":8}}'
    assert left_behind(source(3, end, latest, kafka)) == 11
    assert left_behind(source(3, latest, latest, kafka)) == 0
    assert left_behind(source(3, "4", "4", "RateStreamV2[]")) == 0, "it took all there was"
    assert left_behind(source(3, "4", "9", "RateStreamV2[]")) is None, "its offsets are seconds"
    assert left_behind(source(3, '{"logOffset":1}', "null")) is None
    assert left_behind(source(3, '{"logOffset":1}', "None")) is None


def test_streams_share_what_a_common_source_told():
    kafka = source(30, "1", "1", "KafkaV2[Subscribe[t]]", avgOffsetsBehindLatest="0.0")
    told = {"batchId": 4, "sources": [kafka, source(5)]}
    found = waiting_of(told, {"a": (0,), "b": (0,), "c": (1,)})
    assert [(each.taken, each.left, each.rows) for each in found.values()] == [
        (15, 0, 15),
        (15, 0, 15),
        (5, None, 5),
    ]
    assert found["a"].told == {"avgOffsetsBehindLatest": "0.0"}
    assert (found["c"].arriving, found["c"].processed) == (10.0, 20.0)
    assert waiting_of(told, {"a": (0,)}) == {}, "sources that cannot be told apart"


def test_a_source_that_two_streams_read_is_one_source_to_spark(spark, tmp_path):
    one, other = (spark.readStream.format("rate").option("rowsPerSecond", n).load() for n in (1, 2))
    some = one.selectExpr("value AS v", "timestamp AS t")
    frames = {"a": one, "b": other.withWatermark("timestamp", "1 second"), "c": some}
    assert source_places(frames) == {"a": (0,), "b": (1,), "c": (0,)}
    assert source_places({"a": one.union(other), "b": spark.range(1)}) == {"a": (0, 1), "b": ()}


def test_a_source_that_is_read_to_its_end_leaves_nothing_behind(spark, tmp_path):
    ticks = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    frames = {
        "A": ticks.selectExpr("timestamp AS ts", "value AS id", "value % 3 AS k"),
        "B": ticks.selectExpr("timestamp AS ts", "value AS id", "value % 5 AS k"),
    }
    checkpoint = str(tmp_path / "checkpoint")
    asked = qm.query(
        "SELECT a.id AS a, b.id AS b FROM A a [RANGE 1 SECONDS], B b [RANGE 1 SECONDS] "
        "WHERE a.k = b.k",
        time="ts",
    )
    out = qm.run(asked, frames, policy="chart", checkpoint=checkpoint, shards=1)
    live = qm.inspect(out)
    running = out.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        while len(running.recentProgress) < 3 or not live.plan_loop.planner.seen:
            assert running.isActive
            running.awaitTermination(0.3)
        text = live.plan_loop.explain()
        buffered = live.plan_loop.planner.buffered
    finally:
        running.stop()
    assert set(buffered) == {"a", "b"}
    assert {each.left for each in buffered.values()} == {0}
    assert "the only order is a ⋈ b" in text or "no charts yet" in text
