"""What a run of a program reads: where the partitions of all states and the arrivals lie."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from querymesh.arrays import Ints
from querymesh.index.kernels import travel as t
from querymesh.index.probe.access_row import access_row
from querymesh.index.store.columns import NO_INTS
from querymesh.index.store.partition import address
from querymesh.index.store.stem import Stem

if TYPE_CHECKING:
    from querymesh.index.probe.program import Arriving, Program, Waiting

_CHANGING = (t.S_PARTS, t.S_COUNT, t.S_ACCESS, t.S_SOURCE, t.S_FIRST, t.S_RANGE)
"""The columns of `steps` that are told anew for each run."""


_LITTLE = 4096
"""So many rows are indexed before anybody asks: it takes less than stopping for them."""


class RunTables:
    """The tables of one run: where the partitions of all states and the arrivals lie."""

    def __init__(
        self, program: Program, stems: Sequence[Stem], arriving: Sequence[Arriving]
    ) -> None:
        self.program = program
        self.stems = stems
        width = program.part_width
        tables = [
            stem.described(program.keys, program.orders, program.event_times.get(relation))
            for relation, stem in enumerate(stems)
        ]
        sizes = [len(table) // width for table in tables]
        self._firsts = [0, *accumulate(sizes)]
        self._sources: dict[int, int] = {}
        own: list[int] = []
        begins: dict[int, tuple[int, int, int]] = {}
        first = 0
        for number, each in enumerate(arriving, self._firsts[-1]):
            own += _described(program, each)
            range_us = -1 if each.range_us is None else each.range_us
            begins[each.relation] = number, first, range_us
            self._sources[each.relation] = number
            first += len(each.times)
        self.parts: Ints = np.concatenate([*tables, np.array(own, np.int64)])
        # Steps that ask a state for the same go by the same access.
        access = [stems[relation].access(asked) for relation, asked in program.requests]
        self.access: Ints = np.concatenate([*access, NO_INTS])
        self.begins = [0, *accumulate(sizes[relation] for relation, _ in program.requests)][:-1]
        self._meet_the_newest()
        self.steps = program.tables[0].copy()
        changing = [
            (
                self._firsts[step.relation],
                sizes[step.relation],
                self.begins[number],
                *begins.get(step.source, (0, 0, -1)),
            )
            for step, number in zip(program.steps, program.request_of, strict=True)
        ]
        self.steps[:, _CHANGING] = changing
        before = {each.relation: each.before for each in arriving if each.before}
        if before:
            for row, step in zip(self.steps, program.steps, strict=True):
                if step.window == t.ROWS_WINDOW and step.source in before:
                    row[t.S_BEFORE] = address(before[step.source][step.relation])

    def given(self, waiting: Waiting) -> Ints:
        """The columns of combinations that set out, one after the other."""
        size = len(waiting.rows)
        columns = np.full((self.program.width, size), -1, np.int64)
        columns[t.F_ROW] = waiting.rows
        columns[t.F_NEWEST], columns[t.F_UNTIL] = waiting.newest, waiting.until
        for relation, number in self._sources.items():
            columns[t.F_IDS + relation] = waiting.rows | (number << 32)
        for relation, rows in waiting.joined.items():
            partition, local = self.stems[relation].located(rows)
            columns[t.F_IDS + relation] = (partition + self._firsts[relation] << 32) | local
        return columns.ravel()

    def _meet_the_newest(self) -> None:
        """Make the ways into what arrived in this step, if it is little: somebody comes there, and
        would stop for it."""
        for begin, (relation, _) in zip(self.begins, self.program.requests, strict=True):
            partitions = self.stems[relation].partitions
            if not partitions or partitions[-1].serials is None:
                continue
            number = begin + len(partitions) - 1
            absent = self.access[number * t.A_WIDTH + t.A_KIND] == t.ABSENT
            if absent and len(partitions[-1]) <= _LITTLE:
                self.make_access(number)

    def make_access(self, number: int) -> None:
        """Make the way to matches that the program came to and did not find."""
        at = bisect_right(self.begins, number) - 1
        # Of states without partitions several begin at one number: the last of them has some.
        relation, asked = self.program.requests[at]
        stem = self.stems[relation]
        there = number - self.begins[at]
        row = access_row(stem.partitions[there], asked).row
        for table, place in ((stem.access(asked), there), (self.access, number)):
            table[place * t.A_WIDTH : (place + 1) * t.A_WIDTH] = row


def _described(program: Program, arriving: Arriving) -> list[int]:
    """Arrivals as a row of `parts`."""
    row = [0] * program.part_width
    row[t.P_BASE] = arriving.base
    row[t.P_TIMES], row[t.P_SERIALS] = address(arriving.times), address(arriving.serials)
    for j, codes in enumerate(arriving.keys):
        row[t.P_CODES + j] = address(codes)
    for j, codes in enumerate(arriving.orders):
        row[t.P_CODES + program.keys + j] = address(codes)
    return row
