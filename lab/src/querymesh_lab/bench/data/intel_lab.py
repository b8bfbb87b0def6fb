"""The files of the Intel lab's readings, of which three days could be had.

A line is date, time, epoch, mote, temperature, humidity, light and voltage, with a space between.
"""

from __future__ import annotations

import gzip
from collections.abc import Container, Iterator
from pathlib import Path

READINGS = "intel_lab/labdata_2004-03-04_06.txt.gz"
PLACES = "intel_lab/mote_locs.txt"
FILES = (READINGS, PLACES)
FIELDS = 8


def mote_places(folder: Path) -> dict[int, tuple[float, float]]:
    """Where each mote stands on the floor: x and y in metres."""
    places = {}
    for line in (folder / PLACES).read_text(encoding="utf-8").splitlines():
        mote, x, y = line.split()
        places[int(mote)] = (float(x), float(y))
    return places


def complete_readings(folder: Path, motes: Container[int]) -> Iterator[list[str]]:
    """The fields of each line that has them all and is of one of these motes."""
    with gzip.open(folder / READINGS, "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = line.rstrip("\n").split(" ")
            if len(fields) >= FIELDS and "" not in fields and int(fields[3]) in motes:
                yield fields
