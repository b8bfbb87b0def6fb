"""The driver's side of index tuning, fed with what tasks would report."""

from collections import Counter

import pyarrow as pa

import querymesh as qm
from querymesh.index.tune.tuner import Load
from querymesh.query.bind.windowed_join import bind_join
from querymesh.runtime.channel import Channel
from querymesh.runtime.loops.index_loop import EVERYWHERE, IndexLoop
from querymesh.runtime.task.index_source import IndexPlans, IndexSource
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.task_report import IndexUse, TaskReport

SETTINGS = qm.indices.Indexing(first=100, window=1000, every=1000, steps=1, schedule="continuous")
SCHEMA = pa.schema({"id": pa.int64(), "ts": pa.timestamp("us"), "k": pa.int64(), "x": pa.int64()})


def join():
    asked = qm.query(
        "SELECT a.id FROM A a [RANGE 9 SECONDS], B b [RANGE 9 SECONDS] "
        "WHERE a.k = b.k AND a.x = b.x",
        time="ts",
    )
    return bind_join(asked, {"A": SCHEMA, "B": SCHEMA})


def report(shard, batch, requests):
    load = Load(Counter(requests), 100, 10_000, 4096)
    uses = {(shard, alias): IndexUse(load, probes=10, comparisons=30) for alias in "ab"}
    return TaskReport({}, TaskPlace(shard, batch, "q"), indices=uses)


def tuning_of(folder, source=None):
    source = source or IndexSource("amri", SETTINGS, Channel(str(folder)))
    tuning = IndexLoop(join(), source)
    tuning.open()
    assert tuning.problems == []
    return tuning


def told(folder):
    channel = Channel(str(folder))
    return IndexPlans.from_json(channel.indices(channel.state().index_number))


def feed(tuning, requests_by_shard, batches=3):
    for batch in range(batches):
        for shard, requests in requests_by_shard.items():
            tuning.receive(report(shard, batch, requests))
        assert tuning.wait(60)


def test_shards_that_are_asked_alike_have_one_plan(tmp_path):
    tuning = tuning_of(tmp_path)
    feed(tuning, {0: {(0,): 600}, 1: {(0,): 600}})
    handed = told(tmp_path)
    assert handed.shards == {}
    assert handed.common["a"].configuration.bits == (12, 0)
    assert handed.for_shard(7) == handed.common
    assert {shard for shard, _ in tuning.changes} == {EVERYWHERE}


def test_a_shard_that_is_asked_otherwise_has_its_own(tmp_path):
    tuning = tuning_of(tmp_path)
    feed(tuning, {0: {(0,): 900}, 1: {(0,): 900}, 2: {(1,): 600}})
    handed = told(tmp_path)
    assert handed.for_shard(2)["a"].configuration.bits == (0, 12)
    assert handed.for_shard(0)["a"].configuration.bits[0] > 6


def test_a_new_driver_goes_on_with_the_newest_plans(tmp_path):
    feed(tuning_of(tmp_path), {0: {(0,): 600}})
    again = tuning_of(tmp_path)
    assert again.streams["a"].plan == told(tmp_path).common["a"]
    feed(again, {0: {(0,): 10}}, batches=1)
    assert again.streams["a"].plan == told(tmp_path).common["a"]
    assert again.changes == []


def test_comparisons_and_bytes_are_of_all_shards(tmp_path):
    tuning = tuning_of(tmp_path)
    feed(tuning, {0: {(0,): 600}, 1: {(0,): 600}}, batches=2)
    assert tuning.streams["a"].probes == 40
    assert tuning.streams["a"].comparisons_per_probe == 3


def test_hash_indices_for_each_pattern_are_told_and_not_tuned(tmp_path):
    tuning = IndexLoop(join(), IndexSource())
    tuning.receive(report(0, None, {(0,): 10_000}))
    assert tuning.wait(5)
    assert tuning.changes == []
    assert "a hash index for each access pattern" in tuning.explain()
