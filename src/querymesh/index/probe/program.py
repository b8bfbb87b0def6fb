"""A program: which states tuples probe, in which order, and by what.

It is an automaton (`index/kernels/travel.py`). Relations are numbered, and have a STeM each. A step
is a probe of one of them, for tuples that arrived on another, given what is joined by now; which
tuple takes which steps is told by the state it begins in::

    Step(0, 2, Asked((0,)), held=((1, 3),))     tuples of relation 0 probe relation 2: its attribute
                                                0 is the attribute 3 of relation 1, joined before

Tuples of several relations can set out at once: what a run costs beside its probes, it costs once.

What a run reads is there before it begins, or it stops. It reads raw memory, and no file::

    RunTables   of each partition the addresses of its times, serials and codes;
                of each partition and request an access row: how rows are found, where offsets lie
    travel()    probes by these. At an access that is absent it comes back with ABSENT_ACCESS
                and its number; `make_access` builds the index and fills in the row
    travel()    goes on where it was, with what it had counted and put out

So every block must be in reach as a whole: mapped, its checksum looked at when it was opened
(`runtime/state/files.py`). Blocks that are read in parts would add three things, none of them here:
a bitmap for each access row of the pages that are present and verified, in which the program looks
before it follows an offset; a third reason to come back, with the partition and the buckets that it
and the tuples beside it want next (known only when the step before is done: a later step's codes
come from the rows that were found); and whoever fetches these pages, holds them against checksums
by page, which blocks do not have, marks them and lets it go on. Row ids, counts and the order of
steps would stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import thread_time
from typing import NamedTuple

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.index.kernels import travel as t
from querymesh.index.probe.access_row import OPS
from querymesh.index.probe.run_tables import RunTables
from querymesh.index.store.columns import NO_INTS
from querymesh.index.store.request import Asked
from querymesh.index.store.stem import Stem

_BLOCK = 256
"""Combinations that go side by side at most, so that their waits for memory overlap."""

_RUN = 32
"""Combinations of one tuple that ask for the same are looked up together, so many at most."""

_LEAST_ROOM = (1 << 12) + 8
"""Results that there is room for at first; it grows with what comes out. Columns that begin a power
of two apart would all want the same few lines of the processor's cache."""


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
    """What an Eddy decides by and learns, tuple by tuple: as `travel` takes it; without an
    Eddy all is empty."""

    eddy: Ints
    visit_of: Ints
    codes_of: Ints
    known: Floats
    merits: Floats
    draws: Floats
    notes: Ints


_NO_EDDY = EddyTables(
    NO_INTS, NO_INTS, NO_INTS, np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
)


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
    def tables(self) -> tuple[Ints, Ints, Ints]:
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
        run = RunTables(self, stems, arriving)
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
                    run.parts, self.part_width, self.keys, run.steps.ravel(), *self.tables[1:],
                    run.access, state_step, state_next, states, given,
                    memory.frontier, self.width, capacity, min(_RUN, capacity, most), levels,
                    control, counted, spent, out,
                )  # fmt: skip
                why = t.travel(*tables, *(eddy or _NO_EDDY))
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
        self, run: RunTables, step_of: Ints, counts: Counts, counted: Ints, work: tuple[Ints, float]
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


def _at_least(array: Ints, size: int) -> Ints:
    return array if len(array) >= size else np.empty(size, np.int64)
