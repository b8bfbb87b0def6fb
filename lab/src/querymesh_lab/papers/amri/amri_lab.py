"""AMRI's Figure 9c: readings of the Intel lab, four streams by place.

Streams are the quarters of the floor (`bench/data/real_streams.py`). The paper asks for the same
temperature, humidity and relative location, and has an attribute for each two streams::

    nw --warmth-- ne        warmth   temperature in steps of 0.02 °C
     |  \\ place /  |        damp     humidity in steps of 0.05 %
    damp   X     damp       place    distance from the middle of the floor, east or west, in metres
     |  / place \\  |
    sw --warmth-- se

With the grids of `bench join` (0.5 °C, 1 %) a window of 10,000 readings would match a thousand
times. Time is the number of a reading in the order in which they came; a window of 40,000 of them
holds 10,000 of each stream on average.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.query.parse.query import query
from querymesh_lab.bench.data.intel_lab import mote_places
from querymesh_lab.bench.data.real_streams import quarters
from querymesh_lab.bench.joins.core_run import Streams, as_batches
from querymesh_lab.papers.amri.index_race import IndexCourse, course
from querymesh_lab.papers.amri.index_rivals import QUICK, STEP_ROWS, TRAINED, TUPLES
from querymesh_lab.papers.cbr.cbr_lab import readings

DEGREES, PERCENT, METRES = 0.02, 0.05, 1.0
SHARED = {"warmth": ("nw ne", "sw se"), "damp": ("nw sw", "ne se"), "place": ("nw se", "ne sw")}
WINDOW = 40_000


@cache
def lab_course(folder: Path, quick: bool) -> IndexCourse:
    """Trained on the first readings, run on the ones after them."""
    by = QUICK if quick else 1
    join, training, streams = lab_streams(folder, by)
    step_rows = 100 if quick else STEP_ROWS
    return course("Lab data", join, training, streams, step_rows, TRAINED // by)


def lab_streams(folder: Path, by: int) -> tuple[JoinQuery, Streams, Streams]:
    """The join, the readings to train on and those after them, all `by` times shorter."""
    rows, window = 4 * TUPLES // by, WINDOW // by
    taken = located(folder, 2 * rows)
    training, streams = (as_batches(quarters(taken.slice(first, rows))) for first in (0, rows))
    names = list(streams)
    ids = ", ".join(f"{name}.id AS id_{name}" for name in names)
    ranges = ", ".join(f"{n.upper()} {n} [RANGE {window} MICROSECONDS]" for n in names)
    equal = " AND ".join(
        f"{one}.{attribute} = {other}.{attribute}"
        for attribute, pairs in SHARED.items()
        for one, other in map(str.split, pairs)
    )
    schemas = {name.upper(): streams[name].schema for name in names}
    join = bind_join(query(f"SELECT {ids} FROM {ranges} WHERE {equal}", time="ts"), schemas)
    return join, training, streams


def located(folder: Path, rows: int) -> pa.Table:
    """The first readings, numbered by their order, on the grids, with where they were taken."""
    places = np.array([(mote, x, y) for mote, (x, y) in mote_places(folder).items()])
    middle_x, middle_y = np.median(places[:, 1:], axis=0)
    taken = readings(folder).slice(0, rows)
    at = np.searchsorted(places[:, 0], np.asarray(taken.column("sensor")))
    x, y = places[at, 1], places[at, 2]
    return pa.table({
        "ts": pa.array(np.arange(taken.num_rows), pa.timestamp("us")),
        "warmth": _cells(taken.column("temperature"), DEGREES),
        "damp": _cells(taken.column("humidity"), PERCENT),
        "place": _cells(np.abs(x - middle_x), METRES),
        "east": x >= middle_x,
        "north": y >= middle_y,
    })  # fmt: skip


def _cells(values: npt.ArrayLike | pa.Array, step: float) -> Ints:
    return np.floor(np.asarray(values) / step).astype(np.int64)
