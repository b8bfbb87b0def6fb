"""A program: which states tuples probe, in which order, and by what.

It is an automaton (`index/kernels/travel.py`). Relations are numbered, and have a STeM each. A step
is a probe of one of them, for tuples that arrived on another, given what is joined by now; which
tuple takes which steps is told by the state it begins in::

    Step(0, 2, Asked((0,)), held=((1, 3),))     tuples of relation 0 probe relation 2: its attribute
                                                0 is the attribute 3 of relation 1, joined before

Tuples of several relations can set out at once: what a run costs beside its probes, it costs once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from time import thread_time
from typing import NamedTuple

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.index.kernels import travel as t
from querymesh.index.probe.access_row import OPS, access_row
from querymesh.index.store.columns import NO_INTS
from querymesh.index.store.partition import address
from querymesh.index.store.request import Asked
from querymesh.index.store.stem import Stem

_BLOCK = 256
"""Combinations that go side by side at most, so that their waits for memory overlap."""

_RUN = 32
"""Combinations of one tuple that ask for the same are looked up together, so many at most."""

_LEAST_ROOM = (1 << 12) + 8
"""Results that there is room for at first; it grows with what comes out. Columns that begin a power
of two apart would all want the same few lines of the processor's cache."""


_CHANGING = (t.S_PARTS, t.S_COUNT, t.S_ACCESS, t.S_SOURCE, t.S_FIRST, t.S_RANGE)
"""The columns of `steps` that are told anew for each run."""


@dataclass(frozen=True)
class Step:
    """A probe of a relation by tuples of `source`. `held` are relation and position of the code
    that each attribute of `asked.pattern` must have, `compared` those of each comparison. `window`
    is one of the kinds of `travel`, of this `size`."""

    source: int
    relation: int
    asked: Asked
    held: tuple[tuple[int, int], ...] = ()
    compared: tuple[tuple[int, int], ...] = ()
    window: int = t.NO_WINDOW
    size: int = 0


class Arriving(NamedTuple):
    """Tuples of a relation that set out: their codes, times and serials, and, by relation whose
    window counts rows, how many of its tuples came before each. `range_us` is their own window,
    None if it counts rows; `base` the row id that the first has in results."""

    relation: int
    keys: Sequence[Ints]
    orders: Sequence[Ints]
    times: Ints
    serials: Ints
    before: Mapping[int, Ints]
    range_us: int | None
    base: int = 0


class Waiting(NamedTuple):
    """Combinations that set out with something joined already: the arriving tuples, the bounds of
    their times, and by relation the row ids that are joined."""

    rows: Ints
    newest: Ints
    until: Ints
    joined: Mapping[int, Ints]


class Combinations(NamedTuple):
    """What comes out: the arriving tuple by its number among those of its relation, the last state,
    the bounds of its times, and a row id of each relation, -1 where none is joined."""

    rows: Ints
    states: Ints
    newest: Ints
    until: Ints
    joined: Sequence[Ints]


class Automaton(NamedTuple):
    """For each state its step and the state that follows, -1 at the end, after at most `levels`
    steps."""

    state_step: Ints
    state_next: Ints
    levels: int

    def no_counts(self) -> Counts:
        """Counts to add to."""
        zeros = np.zeros(len(self.state_step), np.int64)
        return Counts(zeros, zeros.copy(), zeros.copy(), zeros.astype(np.float64))


class EddyTables(NamedTuple):
    """What an Eddy decides by and learns, tuple by tuple: as `travel_by_eddy` takes it."""

    eddy: Ints
    visit_of: Ints
    codes_of: Ints
    known: Floats
    draws: Floats
    notes: Ints


@dataclass
class Counts:
    """What a run did, by state: probing rows, matches, stored rows looked at, and seconds of
    processor time, which a busy machine makes no longer."""

    evaluated: Ints
    passed: Ints
    looked: Ints
    seconds: Floats

    def part(self, first: int, end: int) -> Counts:
        """The counts of some states that follow each other."""
        some = slice(first, end)
        return Counts(
            self.evaluated[some], self.passed[some], self.looked[some], self.seconds[some]
        )

    def add(self, other: Counts) -> None:
        """Add what another run of the same states did."""
        self.evaluated += other.evaluated
        self.passed += other.passed
        self.looked += other.looked
        self.seconds += other.seconds


@dataclass
class _Memory:
    """What a run works on, kept for the next."""

    frontier: Ints = field(default_factory=lambda: NO_INTS)
    control: Ints = field(default_factory=lambda: NO_INTS)
    out: Ints = field(default_factory=lambda: NO_INTS)


@dataclass(frozen=True)
class Program:
    """Steps, and for each state its step and the state that follows, -1 at the end; there are none
    of these where every run brings an automaton of its own.

    `keys` and `orders` are the most codes that any relation has; `event_times` names, by relation,
    the column of the time where the window counts rows.
    """

    relations: int
    steps: tuple[Step, ...]
    state_step: tuple[int, ...]
    state_next: tuple[int, ...]
    levels: int
    keys: int
    orders: int
    event_times: Mapping[int, str] = field(default_factory=dict)
    _free: list[_Memory] = field(default_factory=list, repr=False)

    @property
    def width(self) -> int:
        """The columns of a combination."""
        return t.F_IDS + self.relations

    @property
    def part_width(self) -> int:
        """The columns of `parts`."""
        return t.P_CODES + self.keys + self.orders

    @cached_property
    def automaton(self) -> Automaton:
        """The states as arrays."""
        state_step, state_next = (
            np.array(each, np.int64) for each in (self.state_step, self.state_next)
        )
        return Automaton(state_step, state_next, self.levels)

    @cached_property
    def requests(self) -> list[tuple[int, Asked]]:
        """What states are asked for, each once: the relation, and by what its rows are found."""
        return list(dict.fromkeys((step.relation, step.asked) for step in self.steps))

    @cached_property
    def request_of(self) -> list[int]:
        """The number of each step's request."""
        numbers = {request: number for number, request in enumerate(self.requests)}
        return [numbers[step.relation, step.asked] for step in self.steps]

    @cached_property
    def _tables(self) -> tuple[Ints, Ints, Ints]:
        """Steps, attributes and comparisons, as far as they never change."""
        steps = np.zeros((len(self.steps), t.S_WIDTH), np.int64)
        attrs: list[tuple[int, int, int]] = []
        compared: list[tuple[int, int, int, int]] = []
        for row, step in zip(steps, self.steps, strict=True):
            row[t.S_RELATION], row[t.S_WINDOW], row[t.S_SIZE] = (
                step.relation, step.window, step.size,
            )  # fmt: skip
            row[t.S_OWN] = step.source
            row[t.S_ATTRS], row[t.S_ATTR_COUNT] = len(attrs), len(step.held)
            row[t.S_COMPARED], row[t.S_COMPARED_COUNT] = len(compared), len(step.compared)
            attrs += [(own, *held) for own, held in zip(step.asked.pattern, step.held, strict=True)]
            compared += [
                (OPS[op], own, *held)
                for (op, own), held in zip(step.asked.compared, step.compared, strict=True)
            ]
        return (
            steps,
            np.array(attrs, np.int64).ravel(),
            np.array(compared, np.int64).ravel(),
        )

    def run(
        self,
        stems: Sequence[Stem],
        arriving: Sequence[Arriving],
        states: Ints,
        counts: Counts,
        most: int,
        waiting: Waiting | None = None,
        automaton: Automaton | None = None,
        eddy: EddyTables | None = None,
    ) -> Iterator[Combinations]:
        """Take arrivals, or what is `waiting` of one relation, from the states they begin in to the
        end, and add to the counts; results come in pieces of at most `most`. `stems` are of all
        relations, and `states` of all that arrive, one relation after the other. They are states
        of the program, unless an automaton is given; with an `eddy` their steps are decided on
        tuple by tuple, until it stops."""
        started = thread_time()
        state_step, state_next, levels = automaton or self.automaton
        if not len(states) or not self.steps:
            return
        seconds = 0.0
        run = _Run(self, stems, arriving)
        given = NO_INTS if waiting is None else run.given(waiting)
        memory = self._free.pop() if self._free else _Memory()
        capacity = min(_BLOCK, len(states))
        memory.frontier = _at_least(memory.frontier, levels * capacity * self.width)
        control_size = t.G_LEVELS + levels * (t.L_WIDTH + capacity)
        memory.control = control = _at_least(memory.control, control_size)
        control[: t.G_LEVELS + levels * t.L_WIDTH] = 0
        control[t.G_DEPTH] = -1
        most -= 8 if most > _LEAST_ROOM else 0
        room = min(max(_LEAST_ROOM, len(memory.out) // self.width), most)
        memory.out = _at_least(memory.out, room * self.width)
        counted = np.zeros(len(state_step) * t.N_WIDTH, np.int64)
        spent = np.zeros(len(self.steps), np.int64)
        try:
            while True:
                out = memory.out[: room * self.width]
                tables = (
                    run.parts, self.part_width, self.keys, run.steps.ravel(), *self._tables[1:],
                    run.access, state_step, state_next, states, given,
                    memory.frontier, self.width, capacity, min(_RUN, capacity, most), levels,
                    control, counted, spent, out,
                )  # fmt: skip
                why = t.travel(*tables) if eddy is None else t.travel_by_eddy(*tables, *eddy)
                if why == t.ABSENT_ACCESS:
                    run.make_access(int(control[t.G_ABSENT]))
                    continue
                filled = int(control[t.G_FILLED])
                if why == t.OUT_FULL and room < most:
                    # Little came out of little: more room, and what is there already moves.
                    larger = min(4 * room + 8, most)
                    memory.out = np.empty(larger * self.width, np.int64)
                    memory.out.reshape(self.width, larger)[:, :room] = out.reshape(self.width, room)
                    room = larger
                    continue
                if filled:
                    columns = out.reshape(self.width, room)[:, :filled].copy()
                    control[t.G_FILLED] = 0
                    row, state, newest, until = columns[: t.F_IDS]
                    seconds += thread_time() - started
                    yield Combinations(row, state, newest, until, list(columns[t.F_IDS :]))
                    started = thread_time()
                if why == t.DONE:
                    break
        finally:
            seconds += thread_time() - started
            self._note(run, state_step, counts, counted, (spent, seconds))
            self._free.append(memory)

    def _note(
        self, run: _Run, step_of: Ints, counts: Counts, counted: Ints, work: tuple[Ints, float]
    ) -> None:
        """Add what was done: seconds by the share of cycles of each step, and within a step by what
        its states probed and looked at. `work` are the cycles by step, and all seconds."""
        spent, seconds = work
        evaluated, passed, looked = counted.reshape(-1, t.N_WIDTH).T
        counts.evaluated += evaluated
        counts.passed += passed
        counts.looked += looked
        request_of = np.array(self.request_of, np.int64)[step_of]
        requests = [
            np.bincount(request_of, each, len(self.requests)).tolist()
            for each in (evaluated, looked)
        ]
        for (relation, asked), probes, rows in zip(self.requests, *requests, strict=True):
            if probes:
                run.stems[relation].count_requests(asked, int(probes), int(rows))
        done = evaluated + looked
        of_step = np.bincount(step_of, done, len(self.steps))
        cycles = spent * (seconds / max(int(spent.sum()), 1)) / np.maximum(of_step, 1)
        counts.seconds += cycles[step_of] * done

    def no_counts(self) -> Counts:
        """Counts to add to."""
        return self.automaton.no_counts()


class _Run:
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
        self.steps = program._tables[0].copy()
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


def _at_least(array: Ints, size: int) -> Ints:
    return array if len(array) >= size else np.empty(size, np.int64)
