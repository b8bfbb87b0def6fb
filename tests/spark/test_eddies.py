"""Policies that decide while tuples run, on Spark: batch and streams, filters, look-ups, joins."""

import json
import random
import re
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

import querymesh as qm
from drifting import Files, conditions
from equivalence import FUNCTIONS, SECTORS, as_multiset, rows_of, table_of
from join_feed import Feed, Ran, random_rows, to_end
from querymesh.fabric.routers.make_eddy import EDDIES
from simulated_stream import OPPOSITE
from window_cases import MOST_ROWS, case_of

QUICK = qm.policies.Routing(
    probability=0.5, sample=60, trial_rows=200, trial_by="calls", split_if_cheaper=False
)
PLAIN = "a % 2 = 0 AND s LIKE '%b%' AND (ok OR s LIKE '%zz%')"
LOOK_UP = """SELECT s.id, s.a, t.region, t.weight FROM Src s, Sectors t
             WHERE s.g = t.g AND is_even(s.a) AND t.weight < s.a AND s.ok"""
THREE = """SELECT a.id AS a, b.id AS b, c.id AS c
           FROM A a [RANGE 4 SECONDS], B b [RANGE 4 SECONDS], C c [RANGE 4 SECONDS]
           WHERE a.k = b.k AND b.x = c.x AND a.y < 4"""

each_policy = pytest.mark.parametrize("policy", EDDIES)


def quick(policy):
    """The policy of that name, learning from few tuples."""
    return {"eddy": qm.policies.Eddy, "cbr": qm.policies.Cbr}[policy](routing=QUICK)


@pytest.fixture(scope="module")
def people(spark, tmp_path_factory):
    """4,000 rows in four partitions."""
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    pq.write_table(rows_of(np.random.default_rng(0), 4000), path)
    return spark.read.parquet(str(path)).repartition(4).cache()


def where(policy, **how):
    last = "ok OR s LIKE '%zz%'"
    return qm.where(FUNCTIONS["is_even"], "s LIKE '%b%'", last, policy=policy, **how)


def drained(out, tmp_path, name="out"):
    writer = out.writeStream.format("parquet").option("path", str(tmp_path / name))
    to_end(writer, tmp_path / "checkpoint")
    live = qm.inspect(out)
    assert live.wait_until_learned(30)
    return live


def results(spark, tmp_path):
    return as_multiset(spark.read.parquet(str(tmp_path / "out")).toArrow())


def router_files(tmp_path):
    return sorted((tmp_path / "checkpoint" / "querymesh").glob("mesh-*/router-*.json"))


@each_policy
def test_a_batch_is_filtered_without_any_training(spark, people, policy):
    out = people.transform(where(quick(policy)))
    live = qm.inspect(out)
    assert live.counts.evaluations == 0, "no sample was looked at"
    assert live.router.routing_calls == {}
    assert as_multiset(out.toArrow()) == as_multiset(people.filter(PLAIN).toArrow())
    metrics = live.counts
    assert metrics.rows_in == 4000
    assert live.engine == "fabric"
    assert metrics.profiled_rows == 0
    assert live.routing_calls == metrics.routing_calls == metrics.evaluations
    known = live.router
    assert known.estimates.seen.keys() == {1, 2, 3}
    assert sum(known.routing_calls.values()) == live.routing_calls
    assert known.shards <= people.rdd.getNumPartitions()
    text = known.explain()
    assert text.startswith(f"policy {policy}")
    assert ("profiling" in text) == (policy == "cbr")


@each_policy
def test_look_ups_give_what_the_mesh_gives(spark, people, policy):
    sectors = spark.createDataFrame(table_of(SECTORS, 30, np.random.default_rng(3)))
    inputs = {"Src": people, "Sectors": sectors}
    query = qm.query(LOOK_UP, functions=FUNCTIONS)
    mesh = qm.run(query, inputs, policy="single")
    out = qm.run(query, inputs, policy=quick(policy))
    assert as_multiset(out.toArrow()) == as_multiset(mesh.toArrow())
    assert qm.inspect(out).routing_calls > 0


def test_only_the_columns_an_eddy_needs_are_sent(people):
    narrow = people.transform(qm.where(FUNCTIONS["is_even"], policy="eddy"))
    assert sent_in(narrow) == {"a"}
    whole = people.transform(qm.where(FUNCTIONS["is_even"], policy="cbr"))
    assert sent_in(whole) == set(people.columns), "any column may be a classifier attribute"


def sent_in(df):
    """The columns that the physical plan hands to the Arrow function of ours."""
    plan = df._jdf.queryExecution().executedPlan().toString()
    (sent,) = re.findall(r"ArrowEvalPython \[querymesh\((.*?)\)", plan)
    return {column.split("#")[0] for column in sent.split(", ")}


@each_policy
def test_a_stream_learns_on_and_a_restart_goes_on(spark, tmp_path, policy):
    files = Files(tmp_path / "in", [OPPOSITE] * 4, rows=3000)
    checkpoint = str(tmp_path / "checkpoint")

    def run():
        condition = qm.where(*conditions(cost=1.0), policy=quick(policy), checkpoint=checkpoint)
        return files.stream(spark).transform(condition)

    live = drained(run(), tmp_path)
    assert results(spark, tmp_path) == files.expected()
    assert [batch.batch_id for batch in live.batches] == [0, 1, 2, 3]
    assert all(b.routing_calls == b.evaluations > 3000 for b in live.batches)
    assert 1 <= len(router_files(tmp_path)) <= 8
    before = live.router
    if policy == "cbr":
        assert set(before.attributes.values()) == {("kind",)}
        assert "kind kept" in before.explain()
        assert "by kind" in before.explain()

    files.add(OPPOSITE, 3000)
    again = run()
    taken_up = qm.inspect(again).router
    assert taken_up.estimates.overall == before.estimates.overall
    assert taken_up.events == before.events
    live = drained(again, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    (batch,) = live.batches
    assert batch.batch_id == 4
    if policy == "cbr":
        assert live.router.routing_calls["classifier kind"] > 1000, "known from the first chunk on"
        assert batch.evaluations < 1.35 * files.oracle[-1]
        assert live.router.events[0] == before.events[0]
    seen = before.estimates.seen
    assert all(live.router.estimates.seen[k] > seen[k] for k in seen), "it went on counting"


def test_damaged_routers_are_told_and_learned_again(spark, tmp_path):
    files = Files(tmp_path / "in", [OPPOSITE] * 2, rows=1000)

    def run():
        how = {"policy": quick("cbr"), "checkpoint": str(tmp_path / "checkpoint")}
        return files.stream(spark).transform(qm.where(*conditions(cost=1.0), **how))

    out = run()
    (folder,) = (tmp_path / "checkpoint" / "querymesh").iterdir()
    (folder / "router-000001.json").write_text('{"shards": {"0": [3')
    live = drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    assert any("router-000001.json" in problem for problem in live.problems)

    files.add(OPPOSITE, 1000)
    newest = router_files(tmp_path)[-1]
    stored = json.loads(newest.read_text())
    for _, state in stored["shards"].values():
        state["estimates"]["pairs"] = {"7": {}}
    newest.write_text(json.dumps(stored))
    live = drained(run(), tmp_path)
    assert results(spark, tmp_path) == files.expected()
    assert any("cannot be read" in problem for problem in live.problems)


def test_where_no_folder_can_be_shared_each_worker_learns_by_itself(spark, tmp_path, caplog):
    files = Files(tmp_path / "in", [OPPOSITE] * 2, rows=500)
    condition = qm.where(*conditions(cost=1.0), policy="cbr", checkpoint="dbfs:/somewhere")
    live = drained(files.stream(spark).transform(condition), tmp_path)
    assert "each worker learns by itself" in caplog.text
    assert results(spark, tmp_path) == files.expected()
    assert live.router.estimates.seen


@each_policy
@pytest.mark.parametrize(("seed", "streams", "shards"), [(1, 2, 1), (2, 3, 4), (7, 4, 2)])
def test_a_batch_of_any_join_gives_what_duckdb_gives(spark, policy, seed, streams, shards):
    case, wanted = case_with_results(seed, streams)
    frames = {name: spark.createDataFrame(table) for name, table in case.inputs.items()}
    out = qm.run(case.query, frames, policy=quick(policy), shards=shards)
    assert as_multiset(out.toArrow()) == wanted, case.ours


def case_with_results(seed, streams):
    while True:
        case = case_of(random.Random(seed), streams, MOST_ROWS[streams], rows=False, plain=True)
        found = case.combinations(3000)
        if 5 < found.num_rows < 3000:
            return case, as_multiset(found.drop_columns([r.alias for r in case.relations]))
        seed += 1000


def test_a_join_of_streams_gives_what_duckdb_gives_and_goes_on(spark, tmp_path):
    policy = "cbr"  # whose state holds all that an eddy's does
    feed = Feed(spark, tmp_path / "in", "ABC")
    rng = np.random.default_rng(5)
    for step in range(3):
        feed.add(
            **{n: random_rows(rng, 150, 3, start=3 * step, first_id=150 * step) for n in "ABC"}
        )
    first = Ran(feed, THREE, tmp_path / "checkpoint", policy=quick(policy))
    assert first.live.wait_until_learned(30)
    known = first.live.routers
    assert all(router.estimates.seen for router in known.values())
    assert first.live.routing_calls == sum(batch.routing_calls for batch in first.live.batches) > 0
    assert first.live.counts.routing_calls == first.live.routing_calls
    assert first.live.progress["routingCalls"] == first.live.routing_calls

    feed.add(**{n: random_rows(rng, 150, 3, start=9, first_id=450) for n in "ABC"})
    second = Ran(feed, THREE, tmp_path / "checkpoint", policy=quick(policy))
    for alias, router in second.live.routers.items():
        before, now = known[alias].estimates.seen, router.estimates.seen
        assert all(now[k] >= before[k] for k in before)
        assert router.explain()
    assert first.rows + second.rows == triples(feed)


def triples(feed) -> Counter:
    """DuckDB's answer to THREE."""
    found = feed.registered().sql(
        "SELECT a.id, b.id, c.id FROM A a, B b, C c WHERE a.k = b.k AND b.x = c.x AND a.y < 4 AND "
        "greatest(epoch_us(a.ts), epoch_us(b.ts), epoch_us(c.ts)) "
        "- least(epoch_us(a.ts), epoch_us(b.ts), epoch_us(c.ts)) <= 4000000"
    )
    return Counter(found.fetchall())


@each_policy
def test_a_trained_mesh_gives_its_query_only(spark, people, policy):
    query = qm.query(f"SELECT id FROM P WHERE {PLAIN}")
    mesh = qm.train(query, people, policy="single")
    out = qm.run(mesh, {"P": people}, policy=policy)
    assert qm.inspect(out).engine == "fabric", "although all of it is SQL"
    assert as_multiset(out.toArrow()) == as_multiset(people.filter(PLAIN).select("id").toArrow())


def test_what_these_policies_cannot_do_is_refused_with_the_remedy(spark, people):
    query = qm.query("SELECT id FROM P WHERE a > 1 AND ok")
    with pytest.raises(qm.UnsupportedError, match="use engine='fabric' or 'auto'"):
        qm.run(query, people, policy="cbr", engine="native")
    with pytest.raises(qm.UnsupportedError, match="run each by itself"):
        qm.run_all([query, query], people, policy="eddy")
    with pytest.raises(TypeError, match="unexpected keyword argument 'routing'"):
        qm.run(query, people, policy=qm.policies.Mesh(routing=qm.policies.Routing()))
    with pytest.raises(qm.OptionError, match=r"routing is a .*policies\.Routing, not dict"):
        qm.run(query, people, policy=qm.policies.Cbr(routing={"chunk": 1}))
    with pytest.raises(TypeError, match="unexpected keyword argument 'adapt'"):
        qm.run(query, people, policy=qm.policies.Eddy(adapt=qm.policies.Adaptation()))
    with pytest.raises(qm.TrainingError, match="learns while it runs"):
        qm.train(query, people, policy="cbr")
    with pytest.raises(qm.QueryMeshError, match="did you mean 'eddy'"):
        qm.run(query, people, policy="edy")


def test_content_is_learned_of_the_columns_that_are_sent(spark):
    """Nested columns, and many others that no predicate reads, stay where they are."""
    others = {f"x{i}": f"id % {i + 2} AS x{i}" for i in range(14)}
    rows = spark.range(3_000).selectExpr("id", "array(id) AS nested", *others.values())
    third = qm.predicate(lambda i: i % 3 > 0, name="third", columns=["id"], vectorised=False)
    fifth = qm.predicate(lambda i: i % 5 > 0, name="fifth", columns=["id"], vectorised=False)
    routing = qm.policies.Routing(chunk=50, probability=0.5, sample=50)
    found = rows.transform(qm.where(third, fifth, policy=qm.policies.Cbr(routing=routing)))
    assert found.count() == sum(i % 3 > 0 and i % 5 > 0 for i in range(3_000))
