"""451,581 connections to nine honeypots: when, where, from which address, to which port."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

FILE = "honeypot/marx.csv.gz"
_TYPES = {
    "datetime": pa.timestamp("s"), "src": pa.int64(), "spt": pa.int64(), "dpt": pa.int64(),
    "type": pa.int64(),
}  # fmt: skip


def attacks(folder: Path, rows: int | None = None, seed: int = 0) -> pa.Table:
    """Attacks in random order, with an id; ports are NULL where the protocol has none."""
    with gzip.open(folder / FILE) as file:
        table = csv.read_csv(file, convert_options=csv.ConvertOptions(column_types=_TYPES))
    order = np.random.default_rng(seed).permutation(table.num_rows)[:rows]
    mixed = table.take(pa.array(order)).combine_chunks()
    stamps = mixed.column("datetime").cast(pa.timestamp("us", "UTC"))
    mixed = mixed.set_column(mixed.schema.get_field_index("datetime"), "datetime", stamps)
    return mixed.add_column(0, "id", pa.array(np.arange(len(order))))
