"""Random joins of windowed streams on Spark: batch and streaming give what DuckDB gives.

With `[ROWS n]` the result goes by arrival: in a batch by time, by place and by the order in FROM;
in a stream by the micro-batch first. There DuckDB joins without windows, see `window_cases.py`.
"""

import os
import random
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import querymesh as qm
from querymesh.index.tune.kinds import KINDS
from querymesh.policies.registry import POLICIES, load_class
from soak import SOAK
from window_cases import MOST_ROWS, WindowCase, arrivals, as_multiset, case_of, results_of
from window_runs import bound

STEPS = 4
NEVER_LATE = "10000 days"
PLANNED = ("rate", "chart")
SMALL = {"sample_rows": 20}
EAGER = qm.indices.Indexing(first=1, window=10, every=10, steps=1, migration="partial")
HAS = {
    "rows": lambda case: case.counts_rows,
    "static": lambda case: bool(case.statics),
    "comparison": lambda case: bool(bound(case).compared),
}


@dataclass(frozen=True)
class Wanted:
    """Which random case, and how it is run."""

    seed: int
    streams: int
    shards: int
    has: tuple[str, ...] = ()
    policy: str | None = None

    def __str__(self) -> str:
        parts = (self.seed, self.streams, self.shards, *self.has, self.policy)
        return "-".join(str(part) for part in parts if part is not None)

    def cases(self):
        """Random cases that have what is wanted, and some combinations but not too many."""
        for seed in range(self.seed, 10**9, 1000):
            rows = "rows" in self.has
            case = case_of(random.Random(seed), self.streams, MOST_ROWS[self.streams], rows, True)
            if all(HAS[name](case) for name in self.has):
                found = case.combinations(3000)
                if 5 < found.num_rows < 3000:
                    yield case, found

    def how(self, **options) -> dict:
        """How it is run; options are the policy's."""
        policy = self.policy or ("single" if self.seed % 3 == 0 else "mesh")
        index = ("amri", "hash", "bitmap", "auto")[self.seed % 4]
        return {
            "shards": self.shards,
            "policy": load_class(POLICIES[policy])(**options),
            "index": KINDS[index](indexing=EAGER),
        }


def soaked(first_seed: int, count: int) -> list[Wanted]:
    """Further cases of every kind."""
    rng = random.Random(first_seed)
    found = []
    for seed in range(first_seed, first_seed + count * SOAK):
        has = [name for name in HAS if rng.random() < 0.5]
        shards = 1 if "rows" in has else rng.choice([1, 2, 4, 6])
        policy = rng.choice([None, None, *PLANNED])
        found.append(Wanted(seed, rng.randint(2, 5), shards, tuple(has), policy))
    return found


def cut(table: pa.Table, seed: int) -> list[pa.Table]:
    """The rows in any order, cut anywhere, one part for each step."""
    rng = np.random.default_rng(seed)
    mixed = table.take(pa.array(rng.permutation(table.num_rows)))
    cuts = [0, *np.sort(rng.integers(0, table.num_rows + 1, STEPS - 1)).tolist(), table.num_rows]
    return [mixed.slice(first, last - first) for first, last in pairwise(cuts)]


def expected(case: WindowCase, combinations: pa.Table, places) -> Counter:
    """DuckDB's rows; those of windows that count rows picked out one by one."""
    return results_of(case, combinations, lambda: arrivals(case, places))


def is_telling(case: WindowCase, combinations: pa.Table, rows: Counter) -> bool:
    """Whether there are results, and windows that count rows leave some combinations out."""
    return bool(rows) and (not case.counts_rows or rows.total() < combinations.num_rows)


BATCHES = [
    *(Wanted(1, 2, 1), Wanted(2, 3, 4), Wanted(3, 3, 2), Wanted(4, 4, 6), Wanted(5, 5, 4)),
    Wanted(6, 2, 1, ("rows", "comparison")),
    Wanted(7, 3, 1, ("rows", "static")),
    Wanted(8, 4, 1, ("rows",)),
    Wanted(9, 3, 1, ("rows", "static", "comparison")),
    Wanted(10, 3, 4, ("static", "comparison")),
    *(Wanted(15, 4, 2, (), policy) for policy in PLANNED),
    Wanted(16, 3, 1, ("rows", "static"), "rate"),
    *soaked(10_000, 8),
]


@pytest.mark.parametrize("wanted", BATCHES, ids=str)
def test_a_batch_of_any_join_gives_what_duckdb_gives(spark, wanted):
    for case, combinations in wanted.cases():
        frames = {name: spark.createDataFrame(table) for name, table in case.inputs.items()}
        places = {}
        for name in {stream.name for stream in case.streams} if case.counts_rows else ():
            placed = frames[name].select("id", F.monotonically_increasing_id()).collect()
            places[name] = {row: (0, place) for row, place in placed}
        rows = expected(case, combinations, places)
        if is_telling(case, combinations, rows):
            break
    out = qm.run(case.query, frames, **wanted.how(**SMALL))
    assert as_multiset(out.toArrow()) == rows, case.ours


TREES = [
    *(Wanted(21, 2, 1), Wanted(22, 3, 1, ("static",)), Wanted(23, 4, 1, ("comparison",))),
    *soaked(30_000, 4),
]
TREE_CANNOT = ("low_bit", "is_even", "near")
"""Python functions of the cases."""


@pytest.mark.parametrize("wanted", TREES, ids=str)
def test_a_planned_tree_of_sparks_own_joins_gives_what_duckdb_gives(spark, wanted):
    case, combinations = next(
        (case, found)
        for case, found in wanted.cases()
        if not case.counts_rows and not any(name in case.ours for name in TREE_CANNOT)
    )
    frames = {name: spark.createDataFrame(table) for name, table in case.inputs.items()}
    out = qm.run(case.query, frames, policy=qm.policies.Rate(**SMALL), engine="native")
    assert as_multiset(out.toArrow()) == expected(case, combinations, {}), case.ours


STREAMS = [
    *(Wanted(11, 2, 2), Wanted(12, 3, 4)),
    Wanted(13, 2, 1, ("rows", "comparison")),
    Wanted(14, 3, 1, ("rows", "static")),
    *(Wanted(17, 3, 2, ("comparison",), policy) for policy in PLANNED),
    *soaked(20_000, 4),
]


@pytest.mark.parametrize("wanted", STREAMS, ids=str)
def test_a_stream_of_files_gives_what_duckdb_gives_on_all_of_them(spark, tmp_path, wanted):
    for case, combinations in wanted.cases():
        names = {stream.name for stream in case.streams}
        parts = {name: cut(case.inputs[name], wanted.seed) for name in names}
        rows = expected(case, combinations, {n: places_in(steps) for n, steps in parts.items()})
        if is_telling(case, combinations, rows):
            break
    checkpoint = str(tmp_path / "checkpoint")
    inputs = {
        name: stream_of(spark, tmp_path / name, parts[name])
        if name in parts
        else spark.createDataFrame(table)
        for name, table in case.inputs.items()
    }
    out = qm.run(case.query, inputs, checkpoint=checkpoint, watermark=NEVER_LATE, **wanted.how())
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
    assert as_multiset(found) == rows, case.ours


def places_in(steps: list[pa.Table]) -> dict[int, tuple[int, int]]:
    """The step and the place of each row, by its id."""
    return {
        row: (step, place)
        for step, part in enumerate(steps)
        for place, row in enumerate(part["id"].to_pylist())
    }


def stream_of(spark, folder: Path, parts: list[pa.Table]):
    """A file a batch, in this order."""
    folder.mkdir()
    for step, part in enumerate(parts):
        path = folder / f"part-{step}.parquet"
        pq.write_table(part, path)
        os.utime(path, (1_000_000_000 + step,) * 2)
    schema = spark.createDataFrame(parts[0].slice(0, 0)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
