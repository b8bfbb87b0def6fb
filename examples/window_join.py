"""Three streams joined over sliding windows: one state a stream, a probe order for each.

Trades, quotes and news of the same symbol, no further apart than their windows. Run it with
`python examples/window_join.py`.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import querymesh as qm

SQL = """
    SELECT t.symbol, t.ts, t.price, q.bid, n.headline
    FROM Trades t [RANGE 10 SECONDS], Quotes q [RANGE 10 SECONDS], News n [RANGE 1 MINUTE]
    WHERE t.symbol = q.symbol AND t.symbol = n.symbol AND t.price > q.bid
"""
STREAMS = ("Trades", 20, "price"), ("Quotes", 10, "bid"), ("News", 2, "headline")
"""Each with its rows a second, and the column of its own."""

SECONDS, FILES = 600, 5


def write_stream(folder: Path, name: str, rows_a_second: int, column: str) -> str:
    """Ten minutes of a stream as five files, which Spark reads one a batch."""
    (folder / name).mkdir()
    rng, rows = np.random.default_rng(len(name)), SECONDS * rows_a_second
    times_us = pa.array(np.arange(rows) * 1_000_000 // rows_a_second, pa.timestamp("us", "UTC"))
    symbols = [f"S{symbol}" for symbol in rng.integers(0, 100, rows)]
    table = pa.table({"ts": times_us, "symbol": symbols, column: rng.integers(0, 100, rows)})
    for k in range(FILES):
        path = folder / name / f"part-{k}.parquet"
        pq.write_table(table.slice(k * rows // FILES, rows // FILES), path)
        os.utime(path, (k, k))  # Spark reads files in the order of their times
    return str(folder / name)


def main() -> None:
    """Run the join to the end of its files, and show what it did."""
    spark = qm.local_session()
    folder = Path(tempfile.mkdtemp(prefix="querymesh-example-"))
    streams = {}
    for name, rows, column in STREAMS:
        path = write_stream(folder, name, rows, column)
        reader = spark.readStream.schema(spark.read.parquet(path).schema)
        streams[name] = reader.option("maxFilesPerTrigger", 1).parquet(path)

    checkpoint, result = str(folder / "checkpoint"), str(folder / "result")
    policy = qm.policies.Mesh(sample_rows=500)
    query = qm.query(SQL, time="ts")
    out = qm.run(query, streams, policy=policy, checkpoint=checkpoint, watermark="5 seconds")
    writer = out.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer.start(result, format="parquet").awaitTermination()
    print(f"{spark.read.parquet(result).count():,} results in {folder}")
    print(f"\n{qm.inspect(out).explain()}")
    spark.stop()


if __name__ == "__main__":
    main()
