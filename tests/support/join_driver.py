"""A streaming join of five streams in a process of its own, to be killed; see test_join_crash.py.

    python join_driver.py FOLDER [SETTINGS]

FOLDER holds the input and everything the run writes, so the next process goes on from there::

    in/A/000.parquet ...     one file a micro-batch and stream; in/T.parquet is the static table
    checkpoint/              Spark's, with the join state in it
    out/batch-00000.parquet  the results of a batch: a batch that runs again replaces its own
    out-pairs/               the same of the second query, where two share a pass
    marks/                   what the user function saw: attempts that were not the first

SETTINGS are JSON: `master`, further Spark `conf`, the name of the `policy`, how the user
`function` behaves, and whether a second query `shares` the pass.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext

import querymesh as qm

STREAMS = "ABCDE"
WINDOWS_S = dict(zip(STREAMS, (2, 1, 3, 2, 1), strict=True))
DELAY_MS = 700
POLICIES = {
    "mesh": qm.policies.Mesh(sample_rows=400),
    "single": qm.policies.Single(sample_rows=400),
    "eddy": qm.policies.Eddy(chunk=20),
    "cbr": qm.policies.Cbr(chunk=20),
    "rate": qm.policies.Rate(sample_rows=100),
    "chart": qm.policies.Chart(sample_rows=100),
}
"""By name; those that learn do so within the few rows of a test."""
SCHEMA = "ts timestamp, id bigint, k string, g bigint, x bigint"
SQL = (
    "SELECT a.id AS a, b.id AS b, c.id AS c, d.id AS d, e.id AS e, t.id AS t FROM "
    + ", ".join(f"{s} {s.lower()} [RANGE {WINDOWS_S[s]} SECONDS]" for s in STREAMS)
    + ", T t WHERE a.k = b.k AND b.k = c.k AND c.k = d.k AND d.k = e.k AND t.g = c.g"
    " AND b.x > 1 AND unhurried(a.x)"
)

PAIRS = (
    "SELECT a.id AS a, b.id AS b FROM A a [RANGE 1 SECONDS], B b [RANGE 1 SECONDS] "
    "WHERE a.k = b.k AND a.x > 1"
)
"""A second query, which can share a pass with the first: other windows, and other conditions."""


def write_inputs(folder: Path, rng: np.random.Generator, files: int, rows: int = 12) -> None:
    """A second of each stream a file, `rows` rows each, out of order within the delay."""
    for stream in STREAMS:
        (folder / "in" / stream).mkdir(parents=True)
        arrival_ms = np.sort(rng.integers(0, 1000 * files, rows * files))
        time_ms = arrival_ms + rng.integers(0, DELAY_MS + 1, len(arrival_ms))
        table = pa.table(
            {
                "ts": pa.array(1_700_000_000_000_000 + time_ms * 1000, pa.timestamp("us", "UTC")),
                "id": np.arange(len(arrival_ms)),
                "k": [f"key-{k}" for k in rng.integers(0, 10, len(arrival_ms))],
                "g": rng.integers(0, 6, len(arrival_ms)),
                "x": rng.integers(0, 8, len(arrival_ms)),
            }
        )
        for number in range(files):
            path = folder / "in" / stream / f"{number:03d}.parquet"
            pq.write_table(table.slice(rows * number, rows), path)
            os.utime(path, (1_000_000_000 + number,) * 2)
    pq.write_table(pa.table({"g": [0, 1, 2, 2, 3, 4], "id": range(6)}), folder / "in/T.parquet")


def inputs(spark, folder: Path) -> dict:
    """The streams, a file of each in every micro-batch, and the table."""
    found = {}
    for stream in STREAMS:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        found[stream] = reader.parquet(str(folder / "in" / stream))
    return {**found, "T": pq.read_table(folder / "in/T.parquet")}


def query(
    marks: Path, seconds: float = 0.0, raises_once: bool = False, straggles_s: float = 0.0
) -> qm.Query:
    """The query, whose user function takes its time and marks what it sees.

    In batch 2 its very first call may raise, or the first attempt at shard 1 take long.
    """

    def unhurried(x: pa.Array) -> pa.Array:
        time.sleep(seconds)
        task = TaskContext.get()
        batch = task and task.getLocalProperty("streaming.sql.batchId")
        if task and task.attemptNumber():
            (marks / f"again-{batch}-{task.partitionId()}-{task.attemptNumber()}").touch()
        elif batch == "2" and task.partitionId() == 1:
            time.sleep(straggles_s)
        if raises_once and batch == "2":
            # Made by one call only, whoever else tries.
            try:
                (marks / "raised").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                raise RuntimeError("the first call of batch 2")
        return pc.not_equal(pc.bit_wise_and(x, 3), 0)

    marks.mkdir(exist_ok=True)
    asked = qm.predicate(unhurried, name="unhurried")
    return qm.query(SQL, time="ts", functions={"unhurried": asked})


def keep(folder: Path, number: int, table: pa.Table) -> None:
    """Store a batch's results, whole or not at all."""
    part = folder / f"batch-{number:05d}.{os.getpid()}.part"
    pq.write_table(table, part)
    os.replace(part, folder / f"batch-{number:05d}.parquet")


def main(folder: Path, settings: dict) -> None:
    """Run to the end of the files, from wherever the process before was killed.

    What makes code fast is off: a process does not live long enough to be paid back. Workers are
    forked with everything imported.
    """
    conf = {
        "spark.master": settings.get("master", "local[2,4]"),
        "spark.sql.session.timeZone": "UTC",
        # What is killed keeps its checkpoints as people's queries do.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing."
            "FileContextBasedCheckpointFileManager"
        ),
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.python.daemon.module": "ready_daemon",
        **settings.get("conf", {}),
    }
    spark = qm.local_session(app_name="join-driver", memory="1g", conf=conf)
    asked = query(folder / "marks", **settings.get("function", {}))
    how = {
        "shards": 2,
        "checkpoint": str(folder / "checkpoint"),
        "watermark": f"{DELAY_MS} milliseconds",
        "policy": POLICIES[settings.get("policy", "mesh")],
    }
    sinks = [folder / "out", folder / "out-pairs"]
    for sink in sinks:
        sink.mkdir(exist_ok=True)
    if settings.get("shares"):
        both = [asked, qm.query(PAIRS, time="ts")]
        results = qm.run_all(both, inputs(spark, folder), **how)
        writer = results.write_each(lambda query, b, n: keep(sinks[query], n, b.toArrow()))
    else:
        out = qm.run(asked, inputs(spark, folder), **how)
        writer = out.writeStream.foreachBatch(lambda b, n: keep(sinks[0], n, b.toArrow()))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
