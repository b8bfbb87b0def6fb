"""Indices of join states on Spark: chosen on the driver, kept in the checkpoint, explained."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import querymesh as qm
from join_feed import Feed, Ran, random_rows
from querymesh.index.tune.kinds import KINDS
from querymesh.runtime.loops.index_loop import EVERYWHERE

CLIQUE = (
    "SELECT a.id AS a, b.id AS b, c.id AS c "
    "FROM A a [RANGE 20 SECONDS], B b [RANGE 20 SECONDS], C c [RANGE 20 SECONDS] "
    "WHERE a.k = b.k AND b.x = c.x AND a.y = c.y"
)
EAGER = qm.indices.Indexing(first=50, window=100, every=100, steps=1, schedule="continuous")


def fed(spark, folder, batches, seed=0):
    rng = np.random.default_rng(seed)
    feed = Feed(spark, folder, "ABC")
    add_to(feed, rng, batches)
    return feed


def add_to(feed, rng, batches):
    for number in range(feed.batches, feed.batches + batches):
        feed.add(**{n: random_rows(rng, 60, 5.0, 5.0 * number, 60 * number) for n in "ABC"})


def triples_of(feed, window_s=20):
    """DuckDB's answer to CLIQUE."""
    newest = "greatest(epoch_us(a.ts), epoch_us(b.ts), epoch_us(c.ts))"
    within = " AND ".join(f"{newest} - epoch_us({s}.ts) <= {window_s * 10**6}" for s in "abc")
    found = feed.registered().sql(
        "SELECT a.id, b.id, c.id FROM A a, B b, C c "
        f"WHERE a.k = b.k AND b.x = c.x AND a.y = c.y AND {within}"
    )
    return Counter(found.fetchall())


@pytest.mark.parametrize("migration", ["nothing", "all"])
def test_a_stream_is_tuned_while_it_runs_and_goes_on_after_a_restart(spark, tmp_path, migration):
    feed = fed(spark, tmp_path / "in", 4)
    how = {"index": qm.indices.Amri(indexing=replace(EAGER, migration=migration))}
    checkpoint = tmp_path / "checkpoint"
    ran = Ran(feed, CLIQUE, checkpoint, **how)
    tuning = ran.live.indexing
    assert tuning.wait(20)
    assert any(shard == EVERYWHERE for shard, _ in tuning.changes)
    assert all(use.frequencies for use in tuning.streams.values())
    (newest, *_) = sorted((checkpoint / "querymesh" / "index-amri").glob("index-*.json"))[::-1]
    told = json.loads(newest.read_text())
    assert set(told["common"]) == {"a", "b", "c"}

    add_to(feed, np.random.default_rng(1), 3)
    again = Ran(feed, CLIQUE, checkpoint, **how)
    assert ran.rows + again.rows == triples_of(feed)
    parts = [how for use in again.live.indexing.streams.values() for how in use.partitions.values()]
    assert any(text.startswith("bits") for each in parts for _, text in each)
    if migration == "all":
        assert again.live.indexing.moved_rows + tuning.moved_rows > 0


def test_explain_tells_what_states_are_asked_and_how_they_are_indexed(spark, tmp_path):
    feed = fed(spark, tmp_path / "in", 4)
    ran = Ran(feed, CLIQUE, tmp_path / "checkpoint", index=qm.indices.Amri(indexing=EAGER))
    tuning = ran.live.indexing
    assert tuning.wait(20)
    text = tuning.explain()
    assert "index (amri)" in text
    assert "comparisons a probe" in text
    assert "is asked by" in text
    assert "bits" in text
    assert "requests, " in text
    assert "the first choice" in text
    ours = ran.live.progress
    assert ours["index"] == "amri"
    assert ours["indexChanges"] == len(tuning.changes)
    for each in ours["streams"].values():
        assert each["indexBytes"] > 0
        assert each["comparisonsPerProbe"] > 0


def test_plans_that_cannot_be_read_are_told_and_chosen_anew(spark, tmp_path, caplog):
    feed = fed(spark, tmp_path / "in", 3)
    checkpoint = tmp_path / "checkpoint"
    first = Ran(feed, CLIQUE, checkpoint, index=qm.indices.Amri(indexing=EAGER))
    assert first.live.indexing.wait(20)
    for file in (checkpoint / "querymesh" / "index-amri").glob("index-*.json"):
        file.write_text('{"common": {"a": 7}}')
    add_to(feed, np.random.default_rng(1), 2)
    again = Ran(feed, CLIQUE, checkpoint, index=qm.indices.Amri(indexing=EAGER))
    assert "indices are chosen anew" in caplog.text
    assert first.rows + again.rows == triples_of(feed)


def test_a_batch_job_tunes_itself(spark):
    rng = np.random.default_rng(3)
    tables = {name: random_rows(rng, 3000, 60.0) for name in "ABC"}
    frames = {name: spark.createDataFrame(table) for name, table in tables.items()}
    sql = CLIQUE.replace("20 SECONDS", "1 SECONDS")
    asked = qm.query(sql, time="ts")
    eager = qm.indices.Indexing(first=50, window=500, every=500, steps=1)
    counts = {}
    for index in ("hash", "bitmap", "amri", "auto"):
        out = qm.run(asked, frames, index=KINDS[index](indexing=eager), shards=2, policy="single")
        counts[index] = out.count()
        indexing = qm.inspect(out).indexing
        assert indexing.kind == index
        if index != "auto":  # which stays with hashes where these are cheaper
            assert bool(indexing.changes) == (index != "hash")
    assert len(set(counts.values())) == 1


def test_indices_are_refused_where_there_are_no_states(spark):
    data = spark.range(10)
    with pytest.raises(qm.QueryMeshError, match="no windowed streams"):
        qm.run(qm.query("SELECT id FROM t WHERE id > 3"), {"t": data}, index="amri")
    with pytest.raises(qm.QueryMeshError, match="amri, auto, bitmap, hash"):
        qm.run(qm.query("SELECT id FROM t WHERE id > 3"), {"t": data}, index="btree")
    with pytest.raises(qm.QueryMeshError, match=r"querymesh\.indices\.Indexing"):
        qm.indices.Amri(indexing={"bits": 3})
