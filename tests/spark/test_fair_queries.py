"""Many queries on one session: a heavy one and nine light ones, OM § 5.4."""

import os
import time
from collections import Counter
from itertools import pairwise
from threading import Barrier, Lock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import querymesh as qm
from join_feed import PAIR, Feed, pairs_of, query_of, random_rows
from querymesh.errors import QueryError, QueryMeshError, SetupError
from querymesh.spark.context import POOL, pool
from querymesh.spark.fair import MODE, _check_mode

TASKS, TASK_SECONDS, LIGHT, LIGHT_JOBS, CORES = 20, 0.5, 9, 1, 2


class Served:
    """How long each query's jobs took from when they were asked for, and in which pool.

    The heavy query's batch is one job of tasks that only take their time; a light one's are jobs of
    a task with nothing to do, so that their time is what they waited. The heavy job begins when
    the batches of all are ready, and the light ones when its tasks have been given all cores.
    """

    def __init__(self, spark, folder) -> None:
        self.spark, self.folder = spark, folder
        self.seconds: dict[str, list[float]] = {}
        self.pools: dict[str, str | None] = {}
        self._lock, self._ready = Lock(), Barrier(LIGHT + 1)
        sleeping = f"reflect('java.lang.Thread', 'sleep', bigint({1000 * TASK_SECONDS:.0f}))"
        # As RDDs they are planned by now, and planning is not counted as waiting.
        self._heavy = spark.range(0, TASKS, 1, TASKS).selectExpr(sleeping)._jdf.rdd()
        self._light = spark.range(0, 1, 1, 1)._jdf.rdd()
        for _ in range(20):
            self.light()  # a JVM that has just started is slow
        spark.range(1).selectExpr(sleeping)._jdf.rdd().count()

    def heavy(self) -> None:
        self._heavy.count()

    def light(self) -> None:
        self._light.count()

    def writer(self, name: str, jobs: int, work):
        """A stream of one file, whose batch has so many jobs."""
        source = self.folder / "in"
        if not source.exists():
            source.mkdir(parents=True)
            pq.write_table(pa.table({"x": range(8)}), source / "0.parquet")

        def serve(batch, _):
            self._ready.wait(60)
            time.sleep(0 if name == "heavy" else 2 * TASK_SECONDS)
            for _ in range(jobs):
                started = time.monotonic()
                work()
                took = time.monotonic() - started
                with self._lock:
                    self.seconds.setdefault(name, []).append(took)
            self.pools[name] = self.spark.sparkContext.getLocalProperty(POOL)

        return (
            self.spark.readStream.schema("x bigint")
            .parquet(str(source))
            .writeStream.foreachBatch(serve)
            .option("checkpointLocation", str(self.folder / "checkpoints" / name))
            .trigger(availableNow=True)
        )

    def run(self, start) -> None:
        heavy = self.writer("heavy", 1, self.heavy)
        light = {
            f"light{number}": self.writer(f"light{number}", LIGHT_JOBS, self.light)
            for number in range(LIGHT)
        }
        running = start({"heavy": heavy, **light})
        for query in running.values():
            assert query.awaitTermination(120)

    def figures(self) -> tuple[float, float]:
        """Seconds of the heavy job, and the longest that a light one waited."""
        light = [max(served) for name, served in self.seconds.items() if name != "heavy"]
        assert len(light) == LIGHT
        return self.seconds["heavy"][0], max(light)


def test_light_queries_wait_for_a_task_of_the_heavy_one_and_not_for_its_batch(spark, tmp_path):
    together = Served(spark, tmp_path / "together")
    with pool(spark, "shared"):
        together.run(lambda writers: {name: writer.start() for name, writer in writers.items()})
    apart = Served(spark, tmp_path / "apart")
    apart.run(lambda writers: qm.fair(spark, writers))
    for how, served in (("one pool", together), ("a pool each", apart)):
        heavy, light = served.figures()
        print(f"{how}: the heavy job {heavy:.2f} s, the longest wait of a light one {light:.2f} s")
    assert {len(served) for served in apart.seconds.values()} == {1, LIGHT_JOBS}, "none left out"
    assert apart.pools == {name: name for name in apart.seconds}
    assert set(together.pools.values()) == {"shared"}
    heavy, light = apart.figures()
    assert heavy > TASKS / CORES * TASK_SECONDS
    assert light < heavy / 2, "waits for tasks, of which it takes turns, not for the batch"
    assert together.figures()[1] > 1.5 * light


def test_a_join_runs_in_a_pool_as_well_and_gives_the_same(spark, tmp_path):
    rng = np.random.default_rng(0)
    feed = Feed(spark, tmp_path / "in", "AB")
    for number in range(2):
        feed.add(**{n: random_rows(rng, 20, 1.0, number, 20 * number) for n in "AB"})
    found: Counter = Counter()
    checkpoint = str(tmp_path / "checkpoint")
    out = qm.run(query_of(PAIR), feed.streams(), watermark="0 seconds", checkpoint=checkpoint)
    writer = (
        out.writeStream.foreachBatch(lambda b, _: found.update(map(tuple, b.collect())))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
    )
    assert qm.fair(spark, {"join": writer})["join"].awaitTermination(120)
    assert found == pairs_of(feed)


def test_strict_rounds_serve_each_query_in_turn_and_go_on_from_where_it_was(spark, tmp_path):
    counts: Counter = Counter()
    folders = {name: tmp_path / name for name in ("one", "two")}
    writers = {}
    for name, folder in folders.items():
        folder.mkdir()
        write(folder, 0)
        writers[name] = (
            spark.readStream.schema("x bigint")
            .parquet(str(folder))
            .writeStream.foreachBatch(lambda b, _, n=name: counts.update({n: b.count()}))
            .option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
        )
    turns = []
    for turn in qm.in_rounds(writers, 4):
        turns.append(turn)
        write(folders[turn.query], len(turns))
    assert [(turn.query, turn.round) for turn in turns] == [
        ("one", 1),
        ("two", 1),
        ("one", 2),
        ("two", 2),
    ]
    assert counts == {"one": 6, "two": 6}, "each row once"
    for before, turn in pairwise(turns):
        assert turn.waited_s == pytest.approx(before.took_s), "one waits for the other's turn"


def write(folder, number):
    pq.write_table(pa.table({"x": range(3)}), folder / f"{number}.parquet")
    os.utime(folder / f"{number}.parquet", (1_000_000_000 + number,) * 2)


class Writer:
    """Stands for a stream's writer; its query fails in some of its turns."""

    def __init__(self, fails_in=()):
        self.fails_in, self.turns, self.stopped = fails_in, 0, 0

    def trigger(self, **how):
        assert how == {"availableNow": True}
        return self

    def start(self):
        self.turns += 1
        return self

    def awaitTermination(self):
        if self.turns in self.fails_in:
            raise ZeroDivisionError(f"in turn {self.turns}")

    def stop(self):
        self.stopped += 1


def test_a_query_that_fails_leaves_the_rounds_and_the_others_go_on(caplog):
    writers = {"one": Writer(), "bad": Writer(fails_in={2}), "two": Writer()}
    served = []
    with pytest.raises(QueryMeshError, match=r"1 of 3 .*bad: in turn 2") as raised:
        served.extend(turn.query for turn in qm.in_rounds(writers, 9))
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert "query bad failed and leaves the rounds" in caplog.text
    assert {name: writer.turns for name, writer in writers.items()} == {
        "one": 4,
        "bad": 2,
        "two": 3,
    }, "nine turns in all"
    assert all(writer.stopped == writer.turns for writer in writers.values())


def test_rounds_end_when_every_query_has_failed():
    writers = {"one": Writer(fails_in={1}), "two": Writer(fails_in={2})}
    with pytest.raises(QueryMeshError, match=r"2 of 2 .*one: in turn 1; two: in turn 2"):
        list(qm.in_rounds(writers, 100))
    assert writers["two"].turns == 2


def test_a_session_that_serves_first_come_first_served_is_refused_with_the_remedy(spark):
    assert spark.sparkContext.getConf().get(MODE) == "FAIR"
    with pytest.raises(SetupError, match=r"start it with spark.scheduler.mode=FAIR"):
        _check_mode("FIFO")


def test_wrong_writers_are_refused_before_anything_starts(spark):
    for wrong in ({}, [1], None):
        with pytest.raises(QueryError, match="given by name, with their writers"):
            qm.fair(spark, wrong)
    with pytest.raises(QueryMeshError, match=r"query q is a DataFrame: give out\.writeStream"):
        qm.fair(spark, {"q": spark.range(1)})
    with pytest.raises(QueryMeshError, match="a query's name is text"):
        list(qm.in_rounds({3: None}, 1))
    assert not spark.streams.active


def test_a_pool_is_left_as_it_was_found(spark):
    context = spark.sparkContext
    with pool(spark, "outer"):
        with pytest.raises(ValueError, match="no"):  # noqa: PT012, SIM117
            with pool(spark, "inner"):
                assert context.getLocalProperty(POOL) == "inner"
                raise ValueError("no")
        assert context.getLocalProperty(POOL) == "outer"
    assert context.getLocalProperty(POOL) is None
