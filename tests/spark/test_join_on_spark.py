"""Random joins of windowed streams on Spark: batch and streaming give what DuckDB gives."""

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from window_cases import MOST_ROWS, WindowCase, as_multiset, case_of

import querymesh as qm

STEPS = 4
NEVER_LATE = "10000 days"
SMALL = qm.Training(sample_rows=20)


def case_with_results(seed: int, streams: int) -> tuple[WindowCase, pa.Table]:
    """The first case from a seed on that has some results, and not too many."""
    while True:
        case = case_of(random.Random(seed), streams, MOST_ROWS[streams], rows=False, plain=True)
        found = case.combinations(3000)
        if 5 < found.num_rows < 3000:
            return case, found.drop_columns([r.alias for r in case.relations])
        seed += 1000


@pytest.mark.parametrize(
    ("seed", "streams", "shards"), [(1, 2, 1), (2, 3, 4), (3, 3, 2), (4, 4, 6), (5, 5, 4)]
)
def test_a_batch_of_any_join_gives_what_duckdb_gives(spark, seed, streams, shards):
    case, wanted = case_with_results(seed, streams)
    frames = {name: spark.createDataFrame(table) for name, table in case.inputs.items()}
    out = qm.run(case.query, frames, shards=shards, training=SMALL)
    assert as_multiset(out.toArrow()) == as_multiset(wanted), case.ours


@pytest.mark.parametrize(("seed", "streams", "shards"), [(11, 2, 2), (12, 3, 4)])
def test_a_stream_of_files_gives_what_duckdb_gives_on_all_of_them(
    spark, tmp_path, seed, streams, shards
):
    case, wanted = case_with_results(seed, streams)
    checkpoint = str(tmp_path / "checkpoint")
    static = {r.name for r in case.statics}
    inputs = {
        name: spark.createDataFrame(table)
        if name in static
        else stream_of(spark, tmp_path / name, table, seed)
        for name, table in case.inputs.items()
    }
    out = qm.run(case.query, inputs, shards=shards, checkpoint=checkpoint, delay=NEVER_LATE)
    assert out.isStreaming
    running = (
        out.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(180)
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert as_multiset(found) == as_multiset(wanted), case.ours


def stream_of(spark, folder, table: pa.Table, seed: int):
    """The rows in any order, cut anywhere, a file a batch."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    mixed = table.take(pa.array(rng.permutation(table.num_rows)))
    cuts = [0, *np.sort(rng.integers(0, table.num_rows + 1, STEPS - 1)).tolist(), table.num_rows]
    for step, (first, last) in enumerate(pairwise(cuts)):
        pq.write_table(mixed.slice(first, last - first), folder / f"part-{step}.parquet")
    schema = spark.createDataFrame(table.slice(0, 0)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
