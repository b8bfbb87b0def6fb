"""What arrives in one step of a join, in one order over all streams.

A result is made by its last arrival, so all tuples of a step stand in one order, their serials. By
time windows every order gives the same results; `[ROWS n]` counts by it. It is by event time, then
by the place in the input, then by the streams' order in FROM::

    stream a    serials  0 1 . 3 .        numbers  7 8 . 9 .         (arrivals of a so far: 7)
    stream b             . . 2 . 4        a before . . 9 . 10
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Ints
from querymesh.index.store.codes import microseconds


@dataclass(frozen=True)
class Arrivals:
    """The tuples of one stream in a step, in their order of arrival.

    `times` are microseconds of event time, zero for a query without time. `numbers` count the
    stream's arrivals since it began. `before` has, for each stream whose window counts rows, how
    many of its tuples arrived before each of these.
    """

    rows: pa.RecordBatch
    times: Ints
    serials: Ints
    numbers: Ints
    before: Mapping[str, Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def some(self, chosen: Bools) -> Arrivals:
        """The arrivals where the mask is true."""
        if chosen.all():
            return self
        return Arrivals(
            self.rows.filter(pa.array(chosen)),
            self.times[chosen],
            self.serials[chosen],
            self.numbers[chosen],
            {alias: counts[chosen] for alias, counts in self.before.items()},
        )

    def slice(self, first: int, count: int) -> Arrivals:
        """`count` arrivals from the `first` on."""
        last = first + count
        return Arrivals(
            self.rows.slice(first, count),
            self.times[first:last],
            self.serials[first:last],
            self.numbers[first:last],
            {alias: counts[first:last] for alias, counts in self.before.items()},
        )


def in_order(
    streams: Mapping[str, pa.RecordBatch],
    times: Mapping[str, str],
    counted: Mapping[str, int] | None = None,
    places: Mapping[str, Ints] | None = None,
) -> dict[str, Arrivals]:
    """The tuples of a step by stream, in the order in which they count as arrived.

    `times` names the time column of each stream, whose values must not be NULL. `counted` has the
    arrivals so far of the streams whose windows count rows; `places` where a tuple stood in its
    input, if that is known.
    """
    aliases = list(streams)
    sizes = [streams[alias].num_rows for alias in aliases]
    clocks = [
        microseconds(streams[alias].column(times[alias]))
        if alias in times
        else np.zeros(size, np.int64)
        for alias, size in zip(aliases, sizes, strict=True)
    ]
    time = np.concatenate(clocks) if clocks else np.zeros(0, np.int64)
    stream = np.repeat(np.arange(len(aliases)), sizes)
    if places is None:
        order = np.argsort(time, kind="stable")
    else:
        order = np.lexsort((stream, np.concatenate([places[a] for a in aliases]), time))
    serial = np.empty(len(order), np.int64)
    serial[order] = np.arange(len(order))
    ordered_stream = stream[order]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    number_of = {alias: number for number, alias in enumerate(aliases)}
    seen = {
        alias: first + np.cumsum(ordered_stream == number_of.get(alias, -1))
        for alias, first in (counted or {}).items()
    }
    found = {}
    for number, alias in enumerate(aliases):
        own = serial[starts[number] : starts[number + 1]]
        rows, clock = streams[alias], clocks[number]
        if len(own) > 1 and not bool((own[1:] > own[:-1]).all()):
            sort = np.argsort(own)
            own, clock, rows = own[sort], clock[sort], rows.take(pa.array(sort))
        first = (counted or {}).get(alias, 0)
        found[alias] = Arrivals(
            rows,
            clock,
            own,
            np.arange(first, first + len(own)),
            {other: counts[own] - (other == alias) for other, counts in seen.items()},
        )
    return found


def without_null(rows: pa.RecordBatch, column: str) -> pa.RecordBatch:
    """The rows that have a value in a column."""
    values = rows.column(column)
    return rows if values.null_count == 0 else rows.filter(pc.is_valid(values))
