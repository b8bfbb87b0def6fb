"""Rows whose selectivities follow their kind and may swap; files of them, and meshes for them."""

import os

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import querymesh as qm
from equivalence import as_multiset
from simulated_stream import OPPOSITE, oracle_evaluations, tuples

SWAPPED = np.roll(OPPOSITE, 1, axis=1)
ROWS = 6000


def is_even(values: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(values, pa.scalar(1, values.type)), 0)


def is_even_by_hand(value: int) -> bool:
    return sum(range(value % 2, 40, 2)) % 2 == 0 and value % 2 == 0


def conditions(cost=None):
    """With a declared cost of 1 the cost is the evaluations; without, they take long enough."""
    return [
        qm.predicate(
            is_even_by_hand if cost is None else is_even,
            columns=[column],
            name=f"even_{column}",
            cost_us=cost,
            vectorised=cost is not None,
        )
        for column in ("x", "y", "z")
    ]


PLAIN = "x % 2 = 0 AND y % 2 = 0 AND z % 2 = 0"


def rows_of(profile, rng):
    """Rows on which the predicates do what the profile says; only `kind` foretells it."""
    values = 2 * rng.integers(0, 1000, profile.outcomes.shape) + (profile.outcomes == 0)
    columns = {name: values[:, k].astype(np.int32) for k, name in enumerate("xyz")}
    return pa.table({"kind": profile.sample["kind"], **columns})


class Files:
    """A folder of files, one a batch, and what the oracle would evaluate on each."""

    def __init__(self, folder, regimes, rows=ROWS, seed=0):
        folder.mkdir()
        self.folder = folder
        self.rng = np.random.default_rng(seed)
        self.oracle = []
        self.rows = 0
        for passes in regimes:
            self.add(passes, rows)

    def add(self, passes, rows=ROWS):
        number = len(self.oracle)
        profile = tuples(self.rng, rows, passes)
        table = rows_of(profile, self.rng)
        table = table.append_column("id", pa.array(np.arange(self.rows, self.rows + rows)))
        path = self.folder / f"part-{number:03d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        self.oracle.append(oracle_evaluations(profile, passes))
        self.rows += rows
        return table

    def stream(self, spark):
        schema = spark.read.parquet(str(self.folder)).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(
            str(self.folder)
        )  # fmt: skip

    def expected(self):
        found = duckdb.sql(f"SELECT * FROM '{self.folder}/*.parquet' WHERE {PLAIN}")
        return as_multiset(found.to_arrow_table())


def trained(passes, cost=None):
    """A mesh for data like this, from other rows than the stream has."""
    rng = np.random.default_rng(77)
    sample = rows_of(tuples(rng, 2000, passes), rng)
    sample = sample.append_column("id", pa.array(np.arange(2000)))
    return qm.train(qm.query("SELECT * FROM input WHERE even_x(x) AND even_y(y) AND even_z(z)",
                             functions={p.name: p for p in conditions(cost)}), sample)  # fmt: skip
