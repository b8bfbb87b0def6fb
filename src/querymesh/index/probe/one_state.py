"""A request put to one STeM: a program of one step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from querymesh.index.kernels import travel as t
from querymesh.index.probe.program import Arriving, Program, Step, Waiting
from querymesh.index.store.request import Matches, Request
from querymesh.index.store.stem import Stem


def probe(stem: Stem, request: Request, most: int) -> Iterator[Matches]:
    """All matches of a request, in pieces of at most `most`, in no particular order."""
    if most < 1:
        raise ValueError(f"matches cannot be given in pieces of {most}")
    program = _program(stem, request)
    rows = len(request)
    numbers, nothing = np.arange(rows), np.zeros(rows, np.int64)
    everything = np.full(rows, t.FOREVER)
    before = everything if request.before is None else request.before
    orders = [comparison.values for comparison in request.comparisons]
    arriving = Arriving(0, request.codes, orders, nothing, before, {}, None)
    # A window of no length makes the bounds of a combination's times those of its request.
    waiting = Waiting(numbers, request.low, request.high, {})
    counts = program.no_counts()
    for found in program.run([Stem(), stem], [arriving], nothing, counts, most, waiting):
        yield Matches(found.rows, found.joined[1])


def _program(stem: Stem, request: Request) -> Program:
    asked = request.asked
    keys = [len(asked.pattern), *(len(p.keys) for p in stem.partitions[:1])]
    orders = [len(asked.compared), *(len(p.orders) for p in stem.partitions[:1])]
    held = tuple((0, j) for j in range(len(asked.pattern)))
    compared = tuple((0, j) for j in range(len(asked.compared)))
    step = Step(0, 1, asked, held, compared, t.RANGE_WINDOW, 0)
    return Program(2, (step,), (0,), (-1,), 1, max(keys), max(orders))
