"""Streaming joins on Spark: what is late, what is kept, and what is told."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

import querymesh as qm
from join_feed import (
    EPOCH_US,
    PAIR,
    SCHEMA,
    Feed,
    Ran,
    pairs_of,
    query_of,
    random_rows,
    rows_at,
    to_end,
)


def test_late_tuples_are_dropped_and_counted_and_no_others(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "AB")
    feed.add(A=rows_at(0, 10), B=rows_at(10))
    # The horizon is 8 s: the older of the newest, less the delay.
    feed.add(A=rows_at(8, 7.999999, first_id=2), B=rows_at(15, first_id=1))
    # It still is: a has not gone on, b counts for nothing alone.
    feed.add(A=rows_at(7, 14, first_id=4), B=rows_at(9, first_id=2))
    # Now 12 s.
    feed.add(A=rows_at(None, 12, first_id=6), B=rows_at(11.5, 13, first_id=3))
    ran = Ran(feed, PAIR, tmp_path / "checkpoint", watermark="2 seconds")
    assert ran.live.late == {"a": 2, "b": 1}
    assert ran.live.untimed == {"a": 1, "b": 0}
    assert ran.horizons_s == [8, 8, 12]
    late = {("a", 3), ("a", 4), ("b", 3)}
    taken = {(a, b): n for (a, b), n in pairs_of(feed).items() if not {("a", a), ("b", b)} & late}
    assert ran.rows == taken
    assert [batch.late for batch in ran.live.batches] == [0, 1, 1, 1]


def test_a_late_tuple_that_goes_to_several_shards_is_counted_once(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "ABC")
    feed.add(A=rows_at(10), B=rows_at(10), C=rows_at(10))
    feed.add(A=rows_at(3, 4, 10, first_id=1), B=rows_at(5, first_id=1), C=rows_at(6, first_id=1))
    sql = (
        "SELECT a.id AS a, b.id AS b, c.id AS c FROM A a [RANGE 5 SECONDS], B b [RANGE 5 SECONDS], "
        "C c [RANGE 5 SECONDS] WHERE a.x = b.x AND b.y = c.y"
    )
    ran = Ran(feed, sql, tmp_path / "checkpoint", shards=4)
    assert max(ran.live.cube.shares) < 4, "some stream is copied to several shards"
    assert ran.live.late == {"a": 2, "b": 1, "c": 1}
    assert ran.rows == {(0, 0, 0): 1, (3, 0, 0): 1}


def idle_feed(spark, folder: Path) -> Feed:
    """Stream b falls silent after the first batch, and wakes up in the last."""
    feed = Feed(spark, folder, "AB")
    feed.add(A=rows_at(0), B=rows_at(0))
    for second in (10, 20, 30, 40):
        feed.add(A=rows_at(second, second + 1, first_id=second))
    feed.add(A=rows_at(42, first_id=42), B=rows_at(20, 41, first_id=1))
    return feed


def test_an_idle_stream_no_longer_holds_the_state(spark, tmp_path):
    feed = idle_feed(spark, tmp_path / "in")
    states = []
    ran = Ran(
        feed, PAIR, tmp_path / "checkpoint", lambda _, live: states.append(live.states["a"].rows),
        idle_timeout="0 seconds",
    )  # fmt: skip
    assert ran.horizons_s == [0, 11, 21, 31, 41]
    assert states == [1, 3, 4, 4, 4, 3], "five seconds before the horizon, and the batch's own"
    assert ran.live.late == {"a": 0, "b": 1}
    assert ran.rows == Counter({(0, 0): 1, (40, 2): 1, (41, 2): 1, (42, 2): 1})


def test_a_silent_stream_that_is_waited_for_holds_the_state(spark, tmp_path):
    feed = idle_feed(spark, tmp_path / "in")
    ran = Ran(feed, PAIR, tmp_path / "checkpoint", idle_timeout="1 hour")
    assert set(ran.horizons_s) == {0}
    assert ran.live.late == {"a": 0, "b": 0}
    assert ran.live.states["a"].rows == 10
    assert ran.rows == pairs_of(feed)
    assert (20, 1) in ran.rows


def test_the_state_stays_bounded(spark, tmp_path):
    rng = np.random.default_rng(1)
    feed = Feed(spark, tmp_path / "in", "AB")
    for number in range(19):
        feed.add(**{n: random_rows(rng, 10, 1.0, number, 10 * number) for n in "AB"})
    rows, files = [], []

    def watch(number, live):
        rows.append(sum(state.rows for state in live.states.values()))
        folder = tmp_path / "checkpoint/querymesh/join-state"
        files.append(sum(path.is_file() for path in folder.rglob("*")))

    ran = Ran(feed, PAIR, tmp_path / "checkpoint", watch, shards=1)
    assert ran.rows == pairs_of(feed)
    # Ten rows a second and stream, windows of five seconds; tiny partitions are merged although
    # some of their rows have expired.
    assert max(rows) <= 2 * 10 * 12
    assert max(rows[12:]) <= max(rows[5:12]) + 2 * 10
    assert max(files[12:]) <= max(files[5:12]) + 3
    assert max(files) < 40


def test_an_aggregate_on_top_makes_batches_without_rows(spark, tmp_path):
    rng = np.random.default_rng(3)
    feed = Feed(spark, tmp_path / "in", "AB")
    sql = PAIR.replace("a.id AS a,", "a.ts AS ts, a.id AS a,")
    found, without_rows = {}, 0
    checkpoint = tmp_path / "checkpoint"
    for start in (0, 20):
        for second in range(start, start + 20, 10):
            feed.add(**{n: random_rows(rng, 60, 10.0, second, 10 * second) for n in "AB"})
        out = qm.run(
            query_of(sql),
            feed.streams(),
            shards=2,
            watermark="0 seconds",
            checkpoint=str(checkpoint),
        )
        # A result's ts is that of a, which may be five seconds older than the result.
        counts = out.withWatermark("ts", "5 seconds").groupBy(F.window("ts", "10 seconds")).count()

        def sink(batch, _):
            for row in batch.collect():
                assert row.window.start not in found, "each window is told once"
                found[row.window.start] = row["count"]

        query = to_end(counts.writeStream.outputMode("append").foreachBatch(sink), checkpoint)
        without_rows += sum(each["numInputRows"] == 0 for each in query.recentProgress)
    assert without_rows > 0
    joined = feed.registered().sql(
        f"SELECT (epoch_us(a.ts) - {EPOCH_US}) // 10000000, count(*) FROM A a, B b "
        "WHERE a.k = b.k AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000000 GROUP BY ALL"
    )
    by_tens = dict(joined.fetchall())
    # The last ten seconds are not closed.
    assert sorted(found.values()) == sorted(n for tens, n in by_tens.items() if tens < 3)
    assert len(found) == 3


def test_progress_tells_what_was_done(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "AB")
    ones, twos = rows_at(1, 2, k=1), rows_at(1, 2, 3, k=2, first_id=2)
    feed.add(A=pa.concat_tables([ones, twos]), B=rows_at(2, k=1))
    # Horizon 2 s. Two tuples of a with the key 1 are met, and three with the key 2.
    feed.add(
        A=rows_at(1, first_id=9),
        B=pa.concat_tables([rows_at(3, k=1, first_id=1), rows_at(3, k=2, first_id=2)]),
    )
    ran = Ran(feed, PAIR, tmp_path / "checkpoint", policy="single")
    assert ran.rows == pairs_of(feed) - Counter({(9, 0): 1, (9, 1): 1})
    told = ran.live.progress_with(ran.query.lastProgress)
    assert told["batchId"] == 1
    assert told["numInputRows"] == 3
    ours = told["querymesh"]
    assert ours["shards"] == 2
    assert ours["policy"] == "single"
    assert ours["probes"] == 6 + 2, "every tuple that was not late, once"
    assert ours["comparisons"] >= 2 + 2 + 3
    for alias, rows in {"a": 5, "b": 3}.items():
        stream = ours["streams"][alias]
        assert stream["stateRows"] == rows
        assert stream["stateBytes"] > 0
        assert stream["lateRows"] == (alias == "a")
        assert stream["routeShares"] == {{"a": "b", "b": "a"}[alias]: 1.0}
    first, second = ran.live.batches
    assert (first.rows_in, first.rows_out, first.probes, first.late) == (6, 2, 6, 0)
    assert (second.rows_in, second.rows_out, second.probes, second.late) == (3, 5, 2, 1)
    assert second.state_rows == 8


def test_a_join_learns_its_meshes_while_it_runs(spark, tmp_path):
    rng = np.random.default_rng(4)
    feed = Feed(spark, tmp_path / "in", "ABC")
    for number in range(6):
        feed.add(**{n: random_rows(rng, 150, 10.0, 10 * number, 150 * number) for n in "ABC"})
    odd = qm.predicate(lambda x: x.cast(pa.int64()).to_numpy() % 2 == 1, name="odd")
    sql = (
        "SELECT a.id AS a, b.id AS b, c.id AS c FROM A a [RANGE 3 SECONDS], B b [RANGE 2 SECONDS], "
        "C c [RANGE 3 SECONDS] WHERE a.k = b.k AND b.k = c.k AND odd(a.x) AND b.x < c.y"
    )
    ran = Ran(
        feed, sql, tmp_path / "checkpoint",
        lambda number, live: number == 3 and live.wait_until_learned(60),
        policy=qm.policies.Mesh(sample_rows=200), functions={"odd": odd},
    )  # fmt: skip
    for alias, live in ran.live.views.items():
        assert [version for version, _ in live.versions[:2]] == [0, 1], alias
        assert live.mesh.sample_rows >= 200
        assert {version for version, _ in live.counts.leaf_rows} >= {0, 1}
    assert ran.live.problems == []
    newest = "greatest(epoch_us(a.ts), epoch_us(b.ts), epoch_us(c.ts))"
    found = feed.registered().sql(
        "SELECT a.id, b.id, c.id FROM A a, B b, C c WHERE a.k = b.k AND b.k = c.k AND a.x % 2 = 1 "
        f"AND b.x < c.y AND {newest} - epoch_us(a.ts) <= 3000000 AND {newest} - epoch_us(b.ts) <= "
        f"2000000 AND {newest} - epoch_us(c.ts) <= 3000000"
    )
    assert ran.rows == Counter(found.fetchall())


def test_damaged_meshes_of_a_join_are_set_aside_and_learned_again(spark, tmp_path):
    rng = np.random.default_rng(4)
    feed = Feed(spark, tmp_path / "in", "AB")
    found: Counter = Counter()
    for begin in (0, 3):
        for number in range(begin, begin + 3):
            feed.add(**{n: random_rows(rng, 150, 10.0, 10 * number, 150 * number) for n in "AB"})
        ran = Ran(
            feed, f"{PAIR} AND a.x < 3 AND b.x < 5", tmp_path / "checkpoint",
            lambda number, live, last=begin + 2: number == last and live.wait_until_learned(60),
            policy=qm.policies.Mesh(sample_rows=100, adapt=False),
        )  # fmt: skip
        assert [view.version for view in ran.live.views.values()] == [1, 1]
        assert all(view.mesh.sample_rows >= 100 for view in ran.live.views.values())
        assert len(ran.live.problems) == (0 if begin == 0 else 2)
        assert all("mesh-000001.json" in problem for problem in ran.live.problems)
        found += ran.rows
        for file in (tmp_path / "checkpoint/querymesh").glob("mesh-*/mesh-*.json"):
            file.write_text("{")
    assert len([*tmp_path.glob("checkpoint/querymesh/mesh-*/mesh-000001.json.damaged")]) == 2
    oracle = feed.registered().sql(
        "SELECT a.id, b.id FROM A a, B b WHERE a.k = b.k AND a.x < 3 AND b.x < 5 AND "
        "abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000000"
    )
    assert found == Counter(oracle.fetchall())


def by_rows(batches, sizes):
    """[ROWS n] by a plain loop: batch by batch, by time, place and stream."""
    seen = {name: [] for name in sizes}
    found = Counter()
    for tables in batches:
        arrivals = [
            (row["ts"], place, name, row)
            for name in sizes
            for place, row in enumerate(tables.get(name, SCHEMA.empty_table()).to_pylist())
        ]
        for _, _, name, row in sorted(
            arrivals, key=lambda each: (each[:2], list(sizes).index(each[2]))
        ):
            (other,) = set(sizes) - {name}
            for met in seen[other][-sizes[other] :]:
                if met["k"] == row["k"]:
                    found[(row["id"], met["id"]) if name == "A" else (met["id"], row["id"])] += 1
            seen[name].append(row)
    return found


def test_windows_that_count_rows_run_on_a_stream(spark, tmp_path):
    rng = np.random.default_rng(5)
    feed = Feed(spark, tmp_path / "in", "AB")
    batches = [
        {name: random_rows(rng, 12, 5.0, 5 * number, 100 * number) for name in names}
        for number, names in enumerate(["AB", "A", "AB", "B", "AB"])
    ]
    for tables in batches:
        feed.add(**tables)
    sql = "SELECT a.id AS a, b.id AS b FROM A a [ROWS 3], B b [ROWS 4] WHERE a.k = b.k"
    ran = Ran(feed, sql, tmp_path / "checkpoint", shards=1, watermark="1 hour")
    assert ran.rows == by_rows(batches, {"A": 3, "B": 4})
    assert sum(ran.rows.values()) > 20


def test_an_aggregate_by_time_counts_results_as_old_as_a_window(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "AB")
    feed.add(A=rows_at(1, 2), B=rows_at(1))
    feed.add(A=rows_at(200, first_id=5), B=rows_at(200, first_id=5))
    feed.add(B=rows_at(201, first_id=6))
    asked = query_of(
        "SELECT window(a.ts, '1 minute') AS minute, count(*) AS n "
        "FROM A a [RANGE 1 HOUR], B b [RANGE 1 HOUR] WHERE a.k = b.k "
        "GROUP BY window(a.ts, '1 minute')"
    )
    checkpoint = tmp_path / "checkpoint"
    out = qm.run(
        asked,
        feed.streams(),
        shards=2,
        watermark="0 seconds",
        checkpoint=str(checkpoint),
        policy=qm.policies.Mesh(adapt=False),
    )
    newest = {}

    def sink(batch, _):
        newest.update({row.minute.start: row.n for row in batch.collect()})

    to_end(out.writeStream.outputMode("update").foreachBatch(sink), checkpoint)
    assert sorted(newest.values()) == [3, 6], "a of the first minute meets three of b, twice"
