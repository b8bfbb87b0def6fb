"""A streaming join whose processes are killed, whose tasks fail, whose batches run again.

Whatever happens, the files that the sink leaves hold what DuckDB makes of the whole data, each row
as often. `join_driver.py` is the process that is killed; a few kills are made in every run of the
tests, many more in a soak, whose number is also the seed.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark import InheritableThread

import join_driver
import querymesh as qm
from join_driver import DELAY_MS, POLICIES, STREAMS, WINDOWS_S
from querymesh.spark.java import find_java
from soak import SOAK, soak_only

SEED = SOAK or 20
PATIENCE_S = 240

MOMENTS = {
    "planning": ("checkpoint/offsets", r"(\d+)"),
    "tasks": ("checkpoint/querymesh/join-state/*", r"clock-(\d+)\.json"),
    "state": ("checkpoint/querymesh/join-state/*/shard-0001", r"manifest-(\d+)\.json"),
    "sink": ("out", r"batch-(\d+)\.parquet"),
    "commit": ("checkpoint/commits", r"(\d+)"),
}
"""By what is killed then: the folder and the file of a batch that say it has come so far."""


def expected(folder: Path) -> Counter:
    """What DuckDB makes of the whole data."""
    oracle = duckdb.connect()
    for stream in STREAMS:
        table = pq.read_table(folder / "in" / stream)
        oracle.register(stream, table.set_column(0, "us", table["ts"].cast(pa.int64())))
    oracle.register("T", pq.read_table(folder / "in/T.parquet"))
    times = {stream: f"{stream.lower()}.us" for stream in STREAMS}
    newest = f"greatest({', '.join(times.values())})"
    windows = [f"{newest} - {times[s]} <= {WINDOWS_S[s] * 1_000_000}" for s in STREAMS]
    # These follow, and DuckDB can use them after each join: it would make 10^9 rows without.
    windows += [
        f"abs({times[one]} - {times[other]}) <= {max(WINDOWS_S[one], WINDOWS_S[other]) * 1_000_000}"
        for one, other in combinations(STREAMS, 2)
    ]
    found = oracle.sql(
        "SELECT a.id, b.id, c.id, d.id, e.id, t.id "
        f"FROM {', '.join(f'{s} {s.lower()}' for s in STREAMS)}, T t WHERE a.k = b.k AND b.k = c.k "
        "AND c.k = d.k AND d.k = e.k AND t.g = c.g AND b.x > 1 AND a.x & 3 <> 0 AND "
        + " AND ".join(windows)
    )
    return Counter(found.fetchall())


def as_rows(table: pa.Table) -> Counter:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def expected_pairs(folder: Path) -> Counter:
    """What DuckDB makes of the second query, where two share a pass."""
    oracle = duckdb.connect()
    for stream in "AB":
        oracle.register(stream, pq.read_table(folder / "in" / stream))
    found = oracle.sql(
        "SELECT a.id, b.id FROM A a, B b WHERE a.k = b.k AND a.x > 1 "
        "AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 1000000"
    )
    return Counter(found.fetchall())


def stored(folder: Path, sink: str = "out") -> Counter:
    """The rows in the files of a sink."""
    rows = Counter()
    for path in sorted((folder / sink).glob("batch-*.parquet")):
        rows += as_rows(pq.ParquetFile(path).read())
    return rows


# Processes are read from /proc: only those below a driver that a test started are ever killed.


@dataclass
class Driver:
    """One incarnation of the driver."""

    folder: Path
    number: int
    settings: dict
    process: subprocess.Popen = field(init=False)

    def __post_init__(self) -> None:
        command = [sys.executable, join_driver.__file__, str(self.folder)]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, json.dumps(self.settings)],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def log(self) -> Path:
        return self.folder / f"driver-{self.number}.log"

    def newest(self, moment: str) -> int:
        """The newest batch that has come so far; -1 if none has."""
        folder, pattern = MOMENTS[moment]
        with suppress(FileNotFoundError):
            names = (path.name for path in self.folder.glob(f"{folder}/*"))
            found = filter(None, (re.fullmatch(pattern, name) for name in names))
            return max((int(match[1]) for match in found), default=-1)
        return -1

    def wait_for(self, moment: str, above: int) -> bool:
        """Wait until a batch above this one has come so far; False if the driver ended before."""
        until = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            if self.newest(moment) > above:
                return True
            if time.monotonic() > until:
                raise AssertionError(f"no batch after {above} came to {moment}\n{self.told()}")
            time.sleep(0.003)
        self.ended_well()
        return False

    def ended_well(self) -> None:
        assert self.process.wait(PATIENCE_S) == 0, self.told()

    def told(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        """Kill Python and the JVM; Spark's Python workers notice, some time later."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_a_worker(self, rng: random.Random) -> bool:
        """Kill one of the Python processes that run tasks; False if there is none."""
        workers = python_workers(self.process.pid)
        if not workers:
            return False
        with suppress(ProcessLookupError):
            os.kill(rng.choice(workers), signal.SIGKILL)
            return True
        return False


def python_workers(driver: int) -> list[int]:
    """The children of PySpark's daemons below a process."""
    parents, daemons = {}, set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, IndexError):
            pid = int(entry.name)
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            if stat[0] != "Z":
                parents[pid] = int(stat[1])
            if b"pyspark.worker" in (entry / "cmdline").read_bytes():
                daemons.add(pid)
    return sorted(
        pid for pid in daemons if parents.get(pid) in daemons and _is_below(pid, driver, parents)
    )


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid == ancestor:
            return True
        pid = parents[pid]
    return False


def made(folder: Path, files: int, seed: int = SEED) -> Counter:
    """Make the input; what is expected of it."""
    join_driver.write_inputs(folder, np.random.default_rng(seed), files)
    rows = expected(folder)
    assert sum(rows.values()) > 100 * files, "few results would prove little"
    return rows


@dataclass
class Killings:
    """Who was killed when."""

    rng: random.Random
    drivers: list[str] = field(default_factory=list)
    workers: int = 0

    def round(self, driver: Driver, moment: str, batches: int) -> bool:
        """Kill workers in so many batches, then the driver; False if it ended before."""
        if moment == "start-up":
            # Longer than Python needs to start, shorter than Spark does.
            time.sleep(self.rng.uniform(0.3, 4.0))
        else:
            seen = driver.newest("planning")
            for _ in range(batches):
                if not driver.wait_for(self.rng.choice(["tasks", "planning"]), seen):
                    return False
                seen = driver.newest("planning")
                self.kill_workers(driver)
            if not driver.wait_for(moment, driver.newest(moment)):
                return False
            time.sleep(self.rng.choice([0.0, self.rng.uniform(0.0, 0.3)]))
        if driver.process.poll() is not None:
            driver.ended_well()
            return False
        driver.kill()
        self.drivers.append(moment)
        return True

    def kill_workers(self, driver: Driver) -> None:
        """Two of a batch, each at any moment of it: a task may be tried four times."""
        for _ in range(2):
            time.sleep(self.rng.uniform(0.0, 0.3))
            self.workers += driver.kill_a_worker(self.rng)


@pytest.mark.spark(own_process=True)
@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize(
    "policy", ["mesh", *(pytest.param(p, marks=soak_only) for p in POLICIES if p != "mesh")]
)
def test_a_join_that_is_killed_again_and_again_gives_each_result_once(tmp_path, policy):
    # A start-up is what takes most of the time, unless it is cut short.
    longer = SOAK and policy == "mesh"
    files, least_workers = (150, 60) if longer else (14, 17)
    moments = ["start-up", "tasks", "commit"]
    moments = [*MOMENTS, *moments] * 3 if longer else moments
    rows = made(tmp_path, files)
    rng = random.Random(SEED)
    rng.shuffle(moments)
    killings = Killings(rng)
    settings = {"policy": policy, "function": {"seconds": 0.1, "raises_once": True}}
    driver = None
    try:
        for number, moment in enumerate(moments):
            driver = Driver(tmp_path, number, settings)
            if not killings.round(driver, moment, batches=3):
                break
        driver = Driver(tmp_path, len(moments), settings)
        seen = driver.newest("planning")
        while killings.workers < least_workers and driver.wait_for("tasks", seen):
            seen = driver.newest("planning")
            killings.kill_workers(driver)
        driver.ended_well()
    finally:
        if driver is not None:
            driver.kill()
    again = len(list((tmp_path / "marks").glob("again-*")))
    told = (
        f"seed {SEED}: drivers killed at {', '.join(killings.drivers)}; {killings.workers} workers "
        f"killed; {again} tasks tried again"
    )
    print(told)
    assert len(killings.drivers) + killings.workers >= 20, told
    assert again > 0, f"no kill hit a task: {told}"
    assert (tmp_path / "marks/raised").exists(), "a task also failed by itself"
    assert driver.newest("commit") == files - 1
    found = stored(tmp_path)
    assert found == rows, (
        f"{told}: missing {list((rows - found).items())[:3]}, "
        f"too many {list((found - rows).items())[:3]}"
    )


@pytest.mark.spark(own_process=True)
@soak_only
@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc")
def test_joins_that_share_a_pass_and_are_killed_give_each_result_of_each_once(tmp_path):
    files = 12
    rows, pairs = made(tmp_path, files), expected_pairs(tmp_path)
    killings = Killings(random.Random(SEED))
    settings = {"shares": True, "function": {"seconds": 0.1}}
    driver = None
    try:
        for number, moment in enumerate(["tasks", "state", "commit"]):
            driver = Driver(tmp_path, number, settings)
            if not killings.round(driver, moment, batches=1):
                break
        driver = Driver(tmp_path, len(killings.drivers), settings)
        driver.ended_well()
    finally:
        if driver is not None:
            driver.kill()
    told = f"seed {SEED}: {killings}"
    assert killings.drivers, told
    assert killings.workers > 0, told
    assert driver.newest("commit") == files - 1
    assert stored(tmp_path) == rows, told
    assert len(pairs) > 10 * files
    assert stored(tmp_path, "out-pairs") == pairs, told


@pytest.mark.spark(own_process=True)
@soak_only
def test_a_task_that_fails_is_tried_again_with_the_same_results(tmp_path):
    rows = made(tmp_path, 5)
    driver = Driver(tmp_path, 0, {"function": {"raises_once": True}})
    try:
        driver.ended_well()
    finally:
        driver.kill()
    assert (tmp_path / "marks/raised").exists()
    assert list((tmp_path / "marks").glob("again-2-*")), "the task was tried again"
    assert stored(tmp_path) == rows


@pytest.fixture
def cluster(tmp_path):
    """Spark's own cluster with a worker on each of two addresses, as speculation needs: it never
    starts a second attempt on the same host."""
    java_home, port = find_java().home, 17_000 + os.getpid() % 10_000
    java = f"{java_home}/bin/java" if java_home else "java"
    home = str(Path(pyspark.__file__).parent)
    head = [java, "-Xmx512m", "-cp", f"{home}/jars/*"]
    # Its Python workers import what this process can, whether or not it has a session itself.
    importable = os.pathsep.join(filter(None, sys.path))
    environment = {
        **os.environ,
        "SPARK_HOME": home,
        "SPARK_SCALA_VERSION": "2.13",
        "PYTHONPATH": importable,
    }
    master = f"spark://127.0.0.1:{port}"
    commands = [["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for number in (1, 2):
        size = ["-c", "1", "-m", "1g", "-d", str(tmp_path / f"worker-{number}")]
        to = ["--host", f"127.0.0.{number}", "--webui-port", "0", master]
        commands.append(["worker.Worker", *size, *to])
    with open(tmp_path / "cluster.log", "wb") as log:
        started = [
            subprocess.Popen(
                [*head, f"org.apache.spark.deploy.{name}", *options],
                stdout=log,
                stderr=log,
                env=environment,
            )
            for name, *options in commands
        ]
    yield master
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.spark(own_process=True)
@soak_only
def test_speculative_attempts_give_the_same_results(tmp_path, cluster):
    rows = made(tmp_path, 5)
    conf = {
        "spark.executor.memory": "512m",
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.2",
        "spark.speculation.minTaskRuntime": "50ms",
    }
    function = {"straggles_s": 30.0}
    driver = Driver(tmp_path, 0, {"master": cluster, "conf": conf, "function": function})
    try:
        driver.ended_well()
    finally:
        driver.kill()
    assert list((tmp_path / "marks").glob("again-2-1-*")), "a second attempt was started"
    assert stored(tmp_path) == rows


# What follows shares the session of the other tests, whose tasks are tried once.


def started(spark, folder, sink, asked=None, **how):
    """A run from wherever the checkpoint stands."""
    how = {"shards": 2, "watermark": f"{DELAY_MS} milliseconds", **how}
    checkpoint = str(folder / "checkpoint")
    asked = asked or join_driver.query(folder / "marks")
    out = qm.run(asked, join_driver.inputs(spark, folder), checkpoint=checkpoint, **how)
    (folder / "out").mkdir(exist_ok=True)
    writer = out.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
    return out, writer


def to_end(writer) -> None:
    running = writer.trigger(availableNow=True).start()
    try:
        assert running.awaitTermination(PATIENCE_S)
    finally:
        running.stop()


def test_a_batch_that_is_read_again_or_twice_at_the_same_time_gives_the_same_rows(spark, tmp_path):
    rows = made(tmp_path, 4)
    differing = []

    def sink(batch, number):
        count, tables = batch.count(), [None, None]

        def read(place):
            tables[place] = batch.toArrow()

        threads = [InheritableThread(target=read, args=(place,)) for place in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one, other = map(as_rows, tables)
        if one != other or count != sum(one.values()):
            differing.append(number)
        join_driver.keep(tmp_path / "out", number, tables[0])

    _, writer = started(spark, tmp_path, sink)
    to_end(writer)
    assert differing == []
    assert stored(tmp_path) == rows


def test_a_query_that_stops_goes_on_with_any_policy_mesh_and_index(spark, tmp_path):
    # An eddy's state is a part of cbr's, and rate's planner goes on as chart's does.
    others = [name for name in POLICIES if name not in ("mesh", "single")]
    others = others if SOAK else ["cbr", "chart"]
    rows = made(tmp_path, 9 + len(others))
    mesh = qm.train(
        join_driver.query(tmp_path / "marks"),
        {s: pq.read_table(tmp_path / "in" / s) for s in STREAMS}
        | {"T": pq.read_table(tmp_path / "in/T.parquet")},
        policy=qm.policies.Mesh(sample_rows=300),
    )
    runs = [
        (None, {}),
        (None, {"policy": "single", "index": "amri"}),
        (None, {"policy": qm.policies.Single(adapt=False), "index": "bitmap"}),
        (mesh, {"index": qm.indices.Hash(hashes=1)}),
        *((None, {"policy": POLICIES[name]}) for name in others),
        (mesh, {"shards": None}),
    ]
    for number, (asked, how) in enumerate(runs):
        before = len(list((tmp_path / "out").glob("batch-*.parquet")))

        def sink(batch, number):
            join_driver.keep(tmp_path / "out", number, batch.toArrow())

        _, writer = started(spark, tmp_path, sink, asked, **how)
        if number == len(runs) - 1:
            to_end(writer)
            continue
        running = writer.start()
        try:
            until = time.monotonic() + PATIENCE_S
            while len(list((tmp_path / "out").glob("batch-*.parquet"))) == before:
                assert running.exception() is None
                assert time.monotonic() < until
                time.sleep(0.01)
        finally:
            running.stop()
    assert stored(tmp_path) == rows
