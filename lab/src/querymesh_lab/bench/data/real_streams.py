"""Real streams for joins: the Intel lab's readings by place, and ticks of currency pairs.

y                          motes of the lab stand on a floor of some 40 by 32 metres; the
^   nw  |  ne              medians of their places cut it into halves and quarters of about
|  -----+-----             as many motes each
|   sw  |  se
+-----------> x
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from querymesh.arrays import Bools
from querymesh_lab.bench.data.intel_lab import complete_readings, mote_places

PAIRS = {
    "eurusd": "fx_ticks/eurusd_fxcm_ticks_2014-05.csv.gz",
    "nzdusd": "fx_ticks/nzdusd_fxcm_ticks_2014-05.csv.gz",
}
DEGREES = 0.5
PERCENT = 1.0
"""Readings are equally warm within such a step, and equally damp within such a one."""

TENTH_OF_A_PIP = 1e-5


def lab_readings(folder: Path, rows: int | None) -> pa.Table:
    """The first readings that are complete and of a mote whose place is known, by time."""
    places = mote_places(folder)
    stamps, numbers = [], []
    for fields in islice(complete_readings(folder, places), rows):
        stamps.append(f"{fields[0]}T{fields[1]}")
        numbers.append([float(field) for field in fields[2:7]])
    epoch, mote_id, warm, damp, light = np.array(numbers).T
    x, y = np.array([places[int(number)] for number in mote_id]).T
    middle_x, middle_y = np.median(np.array(list(places.values())), axis=0)
    time_us = np.array(stamps, "datetime64[us]").astype(np.int64)
    table = pa.table({
        "ts": pa.array(time_us, pa.timestamp("us", "UTC")),
        "epoch": epoch.astype(np.int64),
        "mote": mote_id.astype(np.int64),
        "warmth": np.floor(warm / DEGREES).astype(np.int64),
        "damp": np.floor(damp / PERCENT).astype(np.int64),
        "light": light,
        "hour": time_us // 3_600_000_000 % 24,
        "east": x >= middle_x,
        "north": y >= middle_y,
    })  # fmt: skip
    return table.take(pa.array(np.argsort(time_us, kind="stable")))


def halves(readings: pa.Table) -> dict[str, pa.Table]:
    """The readings as two streams: those of the west and those of the east."""
    east = np.asarray(readings["east"])
    return {"west": _stream(readings, ~east), "east": _stream(readings, east)}


def quarters(readings: pa.Table) -> dict[str, pa.Table]:
    """The readings as four streams: north-west, north-east, south-west and south-east."""
    east, north = np.asarray(readings["east"]), np.asarray(readings["north"])
    return {
        "nw": _stream(readings, north & ~east),
        "ne": _stream(readings, north & east),
        "sw": _stream(readings, ~north & ~east),
        "se": _stream(readings, ~north & east),
    }


def _stream(table: pa.Table, chosen: Bools) -> pa.Table:
    """The rows that are `chosen`, with an `id` that counts them."""
    part = table.filter(pa.array(chosen)).drop_columns(["east", "north"])
    return part.add_column(0, "id", pa.array(np.arange(part.num_rows)))


def ticks(folder: Path, pair: str, rows: int | None) -> pa.Table:
    """The first ticks of a pair: which way the middle price moved, how far, and when."""
    table = csv.read_csv(folder / PAIRS[pair])
    table = table if rows is None else table.slice(0, rows)
    date, ms, bid, ask = (np.asarray(table[name]) for name in table.column_names)
    days = np.array([f"{d // 10000}-{d // 100 % 100:02d}-{d % 100:02d}" for d in np.unique(date)])
    day_us = days.astype("datetime64[us]").astype(np.int64)
    time_us = day_us[np.unique(date, return_inverse=True)[1]] + ms.astype(np.int64) * 1000
    order = np.argsort(time_us, kind="stable")
    time_us, middle = time_us[order], ((bid + ask) / 2)[order]
    change = np.diff(middle, prepend=middle[:1])
    return pa.table({
        "id": np.arange(len(order)),
        "ts": pa.array(time_us, pa.timestamp("us", "UTC")),
        "minute": time_us // 60_000_000,
        "move": np.sign(np.round(change / TENTH_OF_A_PIP)).astype(np.int64),
        "jump": np.abs(np.round(change / TENTH_OF_A_PIP)).astype(np.int64),
        "spread": np.round(((ask - bid)[order]) / TENTH_OF_A_PIP).astype(np.int64),
    })  # fmt: skip
