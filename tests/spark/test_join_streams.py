"""Streaming joins on Spark: what is late, what is kept, what is told, and what is refused."""

import os
import shutil
import threading
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

import querymesh as qm

PAIR = (
    "SELECT a.id AS a, b.id AS b FROM A a [RANGE 5 SECONDS], B b [RANGE 5 SECONDS] WHERE a.k = b.k"
)
EPOCH_US = 1_700_000_000_000_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("id", pa.int64()),
        ("k", pa.int64()),
        ("x", pa.int64()),
        ("y", pa.int64()),
    ]
)


def rows_at(*seconds, k=1, first_id=0, x=0, y=0) -> pa.Table:
    """Rows at these seconds, in this order; no time where there is None."""
    times = [None if s is None else EPOCH_US + round(s * 1e6) for s in seconds]
    count = len(seconds)
    ids = range(first_id, first_id + count)
    columns = [pa.array(times, SCHEMA.field("ts").type), pa.array(ids)]
    return pa.Table.from_arrays(
        [*columns, *(pa.array([value] * count, pa.int64()) for value in (k, x, y))], schema=SCHEMA
    )


def random_rows(rng, count: int, seconds: float, start: float = 0.0, first_id: int = 0) -> pa.Table:
    """Rows in the order of their times."""
    times = np.sort(rng.integers(round(start * 1e6), round((start + seconds) * 1e6), count))
    return pa.table(
        {
            "ts": pa.array(EPOCH_US + times, SCHEMA.field("ts").type),
            "id": np.arange(first_id, first_id + count),
            **{name: rng.integers(0, 6, count) for name in "kxy"},
        }
    )


class Feed:
    """Streams from files, one of each in every micro-batch; an empty one leaves a stream silent."""

    def __init__(self, spark, folder: Path, names: str) -> None:
        self.spark, self.folder, self.names = spark, folder, names
        self.batches = 0
        self.schema = spark.createDataFrame(SCHEMA.empty_table()).schema
        for name in names:
            (folder / name).mkdir(parents=True)

    def add(self, **tables: pa.Table) -> None:
        """The rows of one more micro-batch, by stream."""
        for name in self.names:
            path = self.folder / name / f"{self.batches:03d}.parquet"
            pq.write_table(tables.get(name, SCHEMA.empty_table()), path)
            os.utime(path, (1_000_000_000 + self.batches,) * 2)
        self.batches += 1

    def streams(self) -> dict:
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return {name: reader.parquet(str(self.folder / name)) for name in self.names}

    def registered(self) -> duckdb.DuckDBPyConnection:
        """DuckDB with the whole data."""
        oracle = duckdb.connect()
        oracle.execute("SET TimeZone = 'UTC'; SET threads = 1")
        for name in self.names:
            oracle.register(name, pq.read_table(self.folder / name))
        return oracle


class Ran:
    """A run to the end of the files."""

    def __init__(self, feed: Feed, sql: str, checkpoint: Path, sink=None, **how) -> None:
        how = {"shards": 2, "delay": "0 seconds", **how}
        asked = qm.query(sql, time="ts", functions=how.pop("functions", None))
        self.out = qm.run(asked, feed.streams(), checkpoint=str(checkpoint), **how)
        self.live = qm.metrics(self.out)
        self.tables: dict[int, pa.Table] = {}
        self.sink = sink
        self.query = to_end(self.out.writeStream.foreachBatch(self._keep), checkpoint)

    def _keep(self, batch, number) -> None:
        self.tables[number] = batch.toArrow()
        if self.sink is not None:
            self.sink(number, self.live)

    @property
    def rows(self) -> Counter:
        together = pa.concat_tables(self.tables.values())
        return Counter(zip(*(column.to_pylist() for column in together.columns), strict=True))

    @property
    def horizons_s(self) -> list[float]:
        """Those of the second batch and later: the first has none."""
        first, *later = [batch.horizon_us for batch in self.live.batches]
        assert first is None
        return [(horizon_us - EPOCH_US) / 1e6 for horizon_us in later]


def to_end(writer, checkpoint: Path):
    running = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    running = running.start()
    try:
        assert running.awaitTermination(240)
    finally:
        running.stop()
    return running


def query_of(sql: str = PAIR, **how) -> qm.Query:
    return qm.query(sql, time="ts", **how)


def pairs_of(feed: Feed, window_s: float = 5) -> Counter:
    """DuckDB's answer to PAIR."""
    found = feed.registered().sql(
        "SELECT a.id, b.id FROM A a, B b WHERE a.k = b.k AND "
        f"abs(epoch_us(a.ts) - epoch_us(b.ts)) <= {round(window_s * 1e6)}"
    )
    return Counter(found.fetchall())


def test_late_tuples_are_dropped_and_counted_and_no_others(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "AB")
    feed.add(A=rows_at(0, 10), B=rows_at(10))
    # The horizon is 8 s: the older of the newest, less the delay.
    feed.add(A=rows_at(8, 7.999999, first_id=2), B=rows_at(15, first_id=1))
    # It still is: a has not gone on, b counts for nothing alone.
    feed.add(A=rows_at(7, 14, first_id=4), B=rows_at(9, first_id=2))
    # Now 12 s.
    feed.add(A=rows_at(None, 12, first_id=6), B=rows_at(11.5, 13, first_id=3))
    ran = Ran(feed, PAIR, tmp_path / "checkpoint", delay="2 seconds")
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
        idle="0 seconds",
    )  # fmt: skip
    assert ran.horizons_s == [0, 11, 21, 31, 41]
    assert states == [1, 3, 4, 4, 4, 3], "five seconds before the horizon, and the batch's own"
    assert ran.live.late == {"a": 0, "b": 1}
    assert ran.rows == Counter({(0, 0): 1, (40, 2): 1, (41, 2): 1, (42, 2): 1})


def test_a_silent_stream_that_is_waited_for_holds_the_state(spark, tmp_path):
    feed = idle_feed(spark, tmp_path / "in")
    ran = Ran(feed, PAIR, tmp_path / "checkpoint", idle="1 hour")
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


class Base:
    """A checkpoint after two batches, with rows for a third waiting."""

    def __init__(self, spark, folder: Path, sql: str = PAIR) -> None:
        self.spark, self.folder, self.sql = spark, folder, sql
        self.feed = Feed(spark, folder / "in", "AB")
        rng = np.random.default_rng(2)
        for number in range(2):
            self.feed.add(**{n: random_rows(rng, 30, 3.0, 3 * number) for n in "AB"})
        Ran(self.feed, sql, folder / "checkpoint")
        self.feed.add(A=rows_at(6), B=rows_at(6))
        self.copies = 0

    def copy(self) -> "Copy":
        self.copies += 1
        checkpoint = self.folder / f"copy-{self.copies}"
        shutil.copytree(self.folder / "checkpoint", checkpoint)
        return Copy(self, checkpoint)


class Copy:
    """A copy of the checkpoint, to be spoilt."""

    def __init__(self, base: Base, checkpoint: Path) -> None:
        self.base, self.checkpoint = base, checkpoint

    @property
    def state(self) -> Path:
        (folder,) = self.checkpoint.glob("querymesh/join-state/*/")
        return folder

    def run(self, sql: str | None = None, **how):
        return Ran(self.base.feed, sql or self.base.sql, self.checkpoint, **how)

    def refused(self, *names: str) -> None:
        """The query stops with an error that tells all these."""
        with pytest.raises(StreamingQueryException) as caught:
            self.run()
        for name in ("StateError", *names):
            assert name in str(caught.value)


@pytest.fixture(scope="module")
def base(spark, tmp_path_factory) -> Base:
    return Base(spark, tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def stranger(spark, tmp_path_factory) -> Base:
    """Another query."""
    sql = PAIR.replace("a.k = b.k", "a.x = b.x")
    return Base(spark, tmp_path_factory.mktemp("stranger"), sql)


def test_a_checkpoint_that_was_moved_goes_on(base):
    copy = base.copy()
    copy.run()
    again = copy.run()
    assert again.tables == {}, "nothing is left to do"


def test_a_damaged_block_stops_the_query_with_its_name(base):
    copy = base.copy()
    # One of the last batch: what is older may have expired.
    block = next(iter(sorted(copy.state.glob("shard-*/blocks/*-00000001-*.block"))))
    content = bytearray(block.read_bytes())
    content[len(content) // 2] ^= 1
    block.write_bytes(content)
    copy.refused(str(block), "is damaged: its checksum does not fit")


def test_a_missing_manifest_stops_the_query_with_its_name(base):
    copy = base.copy()
    manifest = copy.state / "shard-0001/manifest-00000001.json"
    manifest.unlink()
    copy.refused(str(manifest), "is missing")


def test_a_foreign_manifest_stops_the_query_with_its_name(base, stranger):
    copy, manifest = base.copy(), "shard-0000/manifest-00000001.json"
    shutil.copy(stranger.copy().state / manifest, copy.state / manifest)
    copy.refused(str(copy.state / manifest), "does not belong here")


def test_a_foreign_block_stops_the_query_with_its_name(base):
    copy = base.copy()
    one, other = sorted(copy.state.glob("shard-0000/blocks/*-00000001-*.block"))[:2]
    shutil.copy(other, one)
    copy.refused(str(one))


def test_state_that_was_deleted_is_missed(base):
    copy = base.copy()
    shutil.rmtree(copy.state)
    copy.refused(str(copy.checkpoint), "it was deleted")
    shutil.rmtree(copy.checkpoint / "querymesh")
    with pytest.raises(qm.QueryMeshError, match="though Spark has committed batch 1"):
        copy.run()


@pytest.mark.parametrize(
    ("sql", "how", "told"),
    [
        (PAIR.replace("a.k = b.k", "a.x = b.x"), {}, "the query was .*a.k = b.k, now .*a.x = b.x"),
        (PAIR.replace("B b [RANGE 5", "B b [RANGE 6"), {},
         r"the window of b was \[RANGE 5 SECONDS\], now \[RANGE 6 SECONDS\]"),
        (PAIR, {"shards": 3}, 'shards was 2, now 3'),
    ],
)  # fmt: skip
def test_another_query_on_the_checkpoint_is_refused_with_what_changed(base, sql, how, told):
    with pytest.raises(qm.QueryMeshError, match=told):
        base.copy().run(sql, **how)


def test_a_checkpoint_must_be_given_and_be_that_of_the_query(base, tmp_path):
    with pytest.raises(qm.QueryMeshError, match="give checkpoint=, the directory you also give"):
        qm.run(query_of(), base.feed.streams(), shards=2)
    out = qm.run(query_of(), base.feed.streams(), shards=2, checkpoint=str(tmp_path / "one"))
    with pytest.raises(StreamingQueryException, match="give the checkpointLocation of writeStream"):
        to_end(out.writeStream.format("noop"), tmp_path / "other")


def test_a_second_sink_needs_a_run_of_its_own(base, tmp_path):
    def counted(out, checkpoint):
        counts = []
        writer = out.writeStream.foreachBatch(lambda batch, _: counts.append(batch.count()))
        to_end(writer, tmp_path / checkpoint)
        return sum(counts)

    outs = [
        qm.run(query_of(), base.feed.streams(), shards=2, checkpoint=str(tmp_path / checkpoint))
        for checkpoint in ("one", "two")
    ]
    expected = sum(pairs_of(base.feed).values())
    assert counted(outs[0], "one") == expected
    with pytest.raises(StreamingQueryException, match="is of the query"):
        counted(outs[0], "three")
    assert counted(outs[1], "two") == expected


def test_a_batch_is_read_by_a_job_that_knows_it(base):
    """Else its rows would be stored as those of another batch."""
    copy, told = base.copy(), []

    def read_in_a_thread(batch, _):
        def read():
            try:
                batch.count()
            except Exception as problem:
                told.append(str(problem))

        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        batch.count()

    out = qm.run(query_of(), base.feed.streams(), shards=2, checkpoint=str(copy.checkpoint))
    to_end(out.writeStream.foreachBatch(read_in_a_thread), copy.checkpoint)
    assert "start others as pyspark.InheritableThread" in told[0]


def test_a_batch_that_was_kept_is_not_read_in_a_later_one(base, tmp_path):
    kept = []

    def read_the_first_again(batch, _):
        kept.append(batch)
        batch.count()
        kept[0].count()

    out = qm.run(query_of(), base.feed.streams(), shards=2, checkpoint=str(tmp_path / "one"))
    with pytest.raises(StreamingQueryException, match="rows of an earlier micro-batch were read"):
        to_end(out.writeStream.foreachBatch(read_the_first_again), tmp_path / "one")


def test_batch_and_streaming_inputs_do_not_mix(base):
    streams = base.feed.streams()
    streams["B"] = base.spark.read.parquet(str(base.feed.folder / "B"))
    with pytest.raises(qm.QueryMeshError, match="b is a batch DataFrame, but the other"):
        qm.run(query_of(), streams, checkpoint=str(base.folder / "mixed"))


def test_windows_that_count_rows_take_one_shard(base):
    rows = query_of(PAIR.replace("RANGE 5 SECONDS", "ROWS 5"))
    with pytest.raises(qm.UnsupportedError, match=r"\[ROWS n\] counts arrivals, .*one shard"):
        qm.run(rows, base.feed.streams(), shards=2, checkpoint=str(base.folder / "rows"))


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
            query_of(sql), feed.streams(), shards=2, delay="0 seconds", checkpoint=str(checkpoint)
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
    told = ran.live.progress(ran.query.lastProgress)
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
        training=qm.Training(sample_rows=200), functions={"odd": odd},
    )  # fmt: skip
    for alias, live in ran.live.views.items():
        assert [version for version, _ in live.versions[:2]] == [0, 1], alias
        assert live.mesh.sample_rows >= 200
        assert {version for version, _ in live.metrics.leaf_rows} >= {0, 1}
    assert ran.live.problems == []
    newest = "greatest(epoch_us(a.ts), epoch_us(b.ts), epoch_us(c.ts))"
    found = feed.registered().sql(
        "SELECT a.id, b.id, c.id FROM A a, B b, C c WHERE a.k = b.k AND b.k = c.k AND a.x % 2 = 1 "
        f"AND b.x < c.y AND {newest} - epoch_us(a.ts) <= 3000000 AND {newest} - epoch_us(b.ts) <= "
        f"2000000 AND {newest} - epoch_us(c.ts) <= 3000000"
    )
    assert ran.rows == Counter(found.fetchall())


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
    ran = Ran(feed, sql, tmp_path / "checkpoint", shards=1, delay="1 hour")
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
        asked, feed.streams(), shards=2, delay="0 seconds", checkpoint=str(checkpoint), adapt=False
    )
    newest = {}

    def sink(batch, _):
        newest.update({row.minute.start: row.n for row in batch.collect()})

    to_end(out.writeStream.outputMode("update").foreachBatch(sink), checkpoint)
    assert sorted(newest.values()) == [3, 6], "a of the first minute meets three of b, twice"
