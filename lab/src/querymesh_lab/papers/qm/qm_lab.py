"""The Lab data of QM § 6.1: readings of the Intel lab, one stream for each group of close sensors.

Six zones, a grid of 14 by 16 metres over the floor. The query asks, for each reading of the largest
zone, which readings of every other zone agree with it, by temperature or by light, within ten
minutes: ten look-ups, two for each of the other five zones. Rooms agree at night and disagree in
the sun, so which look-up finds nothing depends on hour, light and place. Partners are static tables
of one row for each zone, slot and level; keys are pseudonyms, as in `ten_way`. Only three days of
the data could be had.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from querymesh.query.parse.query import query
from querymesh.query.predicate.predicate import Predicate
from querymesh_lab.bench.data.intel_lab import complete_readings, mote_places
from querymesh_lab.papers.qm.rivals import LookUpSubject
from querymesh_lab.papers.qm.ten_way import Pseudonym

SLOT_SECONDS = 600
DEGREES = 0.5
"""Readings agree in temperature within such a step, and in light within a step of a quarter of a
decade."""


def subject(folder: Path) -> LookUpSubject:
    """The query, its source (the largest zone) and its ten partners."""
    readings = _readings(folder)
    zones = np.asarray(readings["zone"])
    names, counts = np.unique(zones, return_counts=True)
    home = names[counts.argmax()]
    source = readings.filter(pa.array(zones == home)).drop_columns(["zone"])
    shuffled = np.random.default_rng(0).permutation(source.num_rows)
    source = source.take(pa.array(shuffled)).append_column("id", pa.array(np.arange(len(shuffled))))
    partners, functions, selected, keys = {}, {}, ["r.id"], []
    for zone in names[names != home]:
        for level in ("warmth", "brightness"):
            name = f"{level[0]}{zone}"
            secret = Pseudonym(f"secret of {name}".encode())
            functions[f"p_{name}"] = Predicate(
                secret, f"p_{name}", returns=pa.int64(), vectorised=False
            )
            rows = readings.filter(pa.array(zones == zone)).select(["slot", level])
            partners[name] = _partner(rows, secret)
            selected.append(f"{name}.v AS v_{name}")
            keys.append(f"p_{name}(r.slot, r.{level}) = {name}.key")
    relations = ", ".join(["R r", *(f"{name} {name}" for name in partners)])
    sql = f"SELECT {', '.join(selected)} FROM {relations} WHERE {' AND '.join(keys)}"
    return LookUpSubject(query(sql, functions=functions), "R", source, partners)


def _partner(rows: pa.Table, secret: Pseudonym) -> pa.Table:
    """One row for each slot and level the zone had, with how many readings had it."""
    slot, level = (np.asarray(column) for column in rows.columns)
    pairs, counts = np.unique(np.stack([slot, level]), axis=1, return_counts=True)
    hidden = map(secret, pairs[0].tolist(), pairs[1].tolist())
    return pa.table({"key": pa.array(hidden, pa.int64()), "v": counts})


def _readings(folder: Path) -> pa.Table:
    """The readings with a place and sane values, with their zone, slot and levels."""
    places = mote_places(folder)
    found = []
    for day, clock, _, mote, *levels in complete_readings(folder, places):
        hours, minutes, seconds = clock.split(":")
        since = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
        found.append((int(day[-2:]) * 86_400 + since, int(mote), *map(float, levels)))
    time, motes, temperature, humidity, light, voltage = (
        np.array(column) for column in zip(*found, strict=True)
    )
    x, y = np.array([places[int(number)] for number in motes]).T
    return pa.table(
        {
            "zone": (x // 14).astype(int) * 2 + (y // 16).astype(int),
            "slot": (time // SLOT_SECONDS).astype(int),
            "warmth": np.floor(temperature / DEGREES).astype(int),
            "brightness": np.floor(4 * np.log10(light + 1)).astype(int),
            "hour": (time // 3600 % 24).astype(int),
            "mote": motes.astype(int),
            "humidity": humidity,
            "light": light,
            "voltage": voltage,
        }
    )
