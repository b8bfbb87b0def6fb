"""What a program means, in numpy: slower, plainer, and with the same results.

Tests hold the compiled program to it, and to its counts of the stored rows that were looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Bools, Ints
from querymesh.index.kernels import kernels_numpy
from querymesh.index.kernels import travel as t
from querymesh.index.probe.access_row import suitable
from querymesh.index.probe.program import Arriving, Counts, Program, Step
from querymesh.index.store.codes import microseconds
from querymesh.index.store.columns import NO_BYTES
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import OPS
from querymesh.index.store.stem import Stem

Row = tuple[int, ...]
"""Arriving tuple, state, newest, until, and a row id of each relation."""


@dataclass(frozen=True)
class _Asking:
    """One combination at a step: what stored rows must have."""

    codes: Sequence[int]
    values: Sequence[int]
    low: int
    high: int
    before: int


def run_plainly(
    program: Program,
    stems: Sequence[Stem],
    arriving: Sequence[Arriving],
    states: Ints,
    counts: Counts,
) -> Iterator[Row]:
    """The combinations that a program gives, one after the other, depth first."""
    first = 0
    for each in arriving:
        rows = len(each.times)
        for row, state in enumerate(states[first : first + rows].tolist()):
            if state < 0:
                continue
            time = int(each.times[row])
            until = t.FOREVER if each.range_us is None else min(time + each.range_us, t.FOREVER)
            joined = [-1] * program.relations
            joined[each.relation] = row
            found = _followed(program, stems, each, (row, state, time, until, *joined), counts)
            for at in found:
                own = 4 + each.relation
                yield (*at[:own], at[own] + each.base, *at[own + 1 :])
        first += rows


def _followed(
    program: Program, stems: Sequence[Stem], arriving: Arriving, at: Row, counts: Counts
) -> Iterator[Row]:
    row, state, newest, until, *joined = at
    step = program.steps[program.state_step[state]]
    stem = stems[step.relation]
    asking = _asking(step, stems, arriving, at)
    counts.evaluated[state] += 1
    base = 0
    for partition in stem.partitions:
        matches, looked = _matches(partition, step, asking)
        counts.looked[state] += looked
        for r in np.flatnonzero(matches).tolist():
            after = newest, until
            if step.window == t.RANGE_WINDOW:
                time = int(partition.times[r])
                after = max(newest, time), min(until, time + step.size)
            elif step.window == t.ROWS_WINDOW and step.relation in program.event_times:
                column = partition.rows.column(program.event_times[step.relation])
                after = max(newest, int(microseconds(column)[r])), until
                if after[0] > after[1]:
                    continue
            counts.passed[state] += 1
            now = [*joined]
            now[step.relation] = base + r
            follows = program.state_next[state]
            if follows < 0:
                yield row, state, *after, *now
            else:
                there = (row, follows, *after, *now)
                yield from _followed(program, stems, arriving, there, counts)
        base += len(partition)


def _asking(step: Step, stems: Sequence[Stem], arriving: Arriving, at: Row) -> _Asking:
    row, _, newest, until, *joined = at

    def held(relation: int, position: int, orders: bool) -> int:
        if relation == arriving.relation:
            return int((arriving.orders if orders else arriving.keys)[position][row])
        stem, rows = stems[relation], np.array([joined[relation]])
        return int((stem.order if orders else stem.key)(position, rows)[0])

    low, high = -t.FOREVER, t.FOREVER
    if step.window == t.RANGE_WINDOW:
        low, high = max(newest - step.size, -t.FOREVER), until
    elif step.window == t.ROWS_WINDOW:
        low = int(arriving.before[step.relation][row]) - step.size
    return _Asking(
        [held(*each, orders=False) for each in step.held],
        [held(*each, orders=True) for each in step.compared],
        low,
        high,
        int(arriving.serials[row]),
    )


def _matches(partition: Partition, step: Step, asking: _Asking) -> tuple[Bools, int]:
    """Which rows match, and how many are looked at on the way to them."""
    rows = len(partition)
    if partition.last < asking.low or partition.first > asking.high:
        return np.zeros(rows, bool), 0
    fits = (asking.low <= partition.times) & (partition.times <= asking.high)
    if partition.serials is not None:
        fits &= partition.serials < asking.before
    for j, code in zip(step.asked.pattern, asking.codes, strict=True):
        fits &= partition.keys[j] == code
    for (op, order), value in zip(step.asked.compared, asking.values, strict=True):
        fits &= OPS[op](partition.orders[order], value)
    return fits, _looked(partition, step, asking)


def _looked(partition: Partition, step: Step, asking: _Asking) -> int:
    pattern, compared = step.asked
    if partition.cells is not None:
        return _in_cells(partition, step, asking)
    if pattern and partition.patterns is not None:
        pattern = suitable(pattern, partition.patterns)
    if pattern:
        return _in_bucket(
            partition, pattern, [asking.codes[step.asked.pattern.index(j)] for j in pattern]
        )
    if step.asked.pattern or not compared:
        return len(partition)
    sides = {(order, op[0]) for op, order in compared}
    banded = (order for _, order in compared if {(order, "<"), (order, ">")} <= sides)
    by = next(banded, compared[0][1])
    within = np.ones(len(partition), bool)
    for (op, order), value in zip(compared, asking.values, strict=True):
        if order == by:
            within &= OPS[op](partition.orders[by], value)
    return int(within.sum())


def _in_bucket(partition: Partition, pattern: tuple[int, ...], codes: Sequence[int]) -> int:
    index = partition.index_for(pattern)
    code = np.array([codes[0]], np.int64)
    for more in codes[1:]:
        code = kernels_numpy.fold(code, np.array([more], np.int64))
    mixed = int(kernels_numpy.mix(code)[0])
    bits = (len(index.offsets) - 1).bit_length() - 1
    mark = mixed >> (61 - bits)
    if index.marks is not None and not index.marks[mark >> 3] >> (mark & 7) & 1:
        return 0
    bucket = mixed & ((1 << bits) - 1)
    return int(index.offsets[bucket + 1]) - int(index.offsets[bucket])


def _in_cells(partition: Partition, step: Step, asking: _Asking) -> int:
    index = partition.cells
    assert index is not None
    bits, shifts, keys = (
        index.configuration.bits, index.configuration.shifts, index.configuration.keys,
    )  # fmt: skip
    ranged = index.ranged(step.asked.compared)
    opening = index.opening(step.asked.pattern, ranged)
    if opening is None or len(opening.open_cells) > max(len(partition), 1):
        return len(partition)
    bucket = 0
    for j, code in zip(step.asked.pattern, asking.codes, strict=True):
        if bits[j]:
            table = index.tables.get(j, NO_BYTES)
            bucket += int(kernels_numpy.cells(np.array([code]), table, bits[j])[0]) << shifts[j]
    width = 1 << opening.floor
    if ranged is not None:
        first, last = 0, len(index.bounds[ranged])
        for (op, order), value in zip(step.asked.compared, asking.values, strict=True):
            if keys + order == ranged:
                cell = int(np.searchsorted(index.bounds[ranged], value, "right"))
                first, last = (first, min(last, cell)) if "<" in op else (max(first, cell), last)
        bucket += first << opening.floor
        width = max(last - first + 1, 0) << opening.floor
    begins = bucket + opening.open_cells
    return int((index.offsets[begins + width] - index.offsets[begins]).sum())
