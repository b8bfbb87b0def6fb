"""The Lab data for CBR § 6.6 to 6.8: readings of 54 sensors in the order they were taken.

Three days of it could be had, cleansed as in the paper: no reading with a missing or an impossible
value. Q1 asks for light > 500, Q2 for light, temperature, humidity and voltage within random
bounds. What a router may look at is what a reading has without measuring: the sensor and the time.
A measured value would tell at once what its own filter does with it, and in the paper's Figure 8 it
is the sensor that tells most about light.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from querymesh.query.model import BoundQuery
from querymesh.query.parse.query import query
from querymesh.query.predicate.predicate import Predicate
from querymesh_lab.bench.data.intel_lab import READINGS
from querymesh_lab.papers.cbr.eddy_runs import EddyCase

MEASURED = ("light", "temperature", "humidity", "voltage")
KNOWN = ("sensor", "day", "hour", "minute", "second")
Q1 = "SELECT sensor, light FROM sensors WHERE light > 500"
ENDS = 0.25
"""Bounds are drawn from this share of a domain's values at its low and at its high end."""


@dataclass(frozen=True)
class Within:
    """A BETWEEN that also computes for `cost_us` of processor time on each value (§ 6.7)."""

    low: float
    high: float
    cost_us: float = 0.0

    def __call__(self, values: pa.Array) -> pa.Array:
        """Which values lie between the bounds."""
        until = process_time() + 1e-6 * self.cost_us * len(values)
        while self.cost_us and process_time() < until:
            pass
        return pc.and_(pc.greater_equal(values, self.low), pc.less_equal(values, self.high))


ValueBounds = Mapping[str, tuple[float, float]]


def readings(folder: Path) -> pa.RecordBatch:
    """All sane readings, in the order of their times."""
    names = ["date", "time", "epoch", "sensor", "temperature", "humidity", "light", "voltage"]
    table = csv.read_csv(
        folder / READINGS,
        csv.ReadOptions(column_names=names),
        csv.ParseOptions(delimiter=" "),
        csv.ConvertOptions(column_types={"date": pa.string(), "time": pa.string()}),
    ).drop_null()
    sane = (pc.field("sensor") <= 54) & (pc.field("humidity") >= 0) & (pc.field("temperature") < 50)
    table = table.filter(sane).sort_by([("date", "ascending"), ("time", "ascending")])
    columns = {
        "sensor": table["sensor"],
        "day": _part(table["date"], 8, 10),
        "hour": _part(table["time"], 0, 2),
        "minute": _part(table["time"], 3, 5),
        "second": _part(table["time"], 6, 8),
        **{name: pc.cast(table[name], pa.float64()) for name in MEASURED},
    }
    return pa.table(columns).combine_chunks().to_batches()[0]


def _part(texts: pa.ChunkedArray, first: int, end: int) -> pa.ChunkedArray:
    return pc.cast(pc.utf8_slice_codeunits(texts, first, end), pa.int64())


def q1(batch: pa.RecordBatch, attributes: Sequence[str] = KNOWN) -> EddyCase:
    """SELECT * FROM sensors WHERE light > 500."""
    return _case(Q1, batch, {}, attributes)


def random_bounds(
    batch: pa.RecordBatch, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """For each measured attribute one of the lowest 25 % values of its domain, and one of the
    highest."""
    found = {}
    for name in MEASURED:
        domain = np.unique(np.asarray(batch.column(name)))
        most = max(1, int(ENDS * len(domain)))
        found[name] = float(rng.choice(domain[:most])), float(rng.choice(domain[-most:]))
    return found


def q2(
    batch: pa.RecordBatch, bounds: ValueBounds, cost_us: float | None = None,
    attributes: Sequence[str] = KNOWN,
) -> EddyCase:  # fmt: skip
    """The measured attributes within bounds; with `cost_us`, filters that compute for so long."""
    if cost_us is None:
        conditions = [f"{name} BETWEEN {low} AND {high}" for name, (low, high) in bounds.items()]
        functions = {}
    else:
        conditions = [f"within_{name}({name})" for name in bounds]
        functions = {
            f"within_{name}": Predicate(Within(low, high, cost_us), f"within_{name}")
            for name, (low, high) in bounds.items()
        }
    text = f"SELECT sensor, light FROM sensors WHERE {' AND '.join(conditions)}"
    return _case(text, batch, functions, attributes)


def _case(
    text: str, batch: pa.RecordBatch, functions: Mapping[str, Predicate], attributes: Sequence[str]
) -> EddyCase:
    bound = query(text, functions=dict(functions)).bind({"sensors": batch.schema})
    assert isinstance(bound, BoundQuery)
    return EddyCase(bound, batch, attributes, {}, {})
