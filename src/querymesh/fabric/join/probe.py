"""Probing a join state (QM § 4.1, AMRI § 3): the second half of a join, from whatever is joined.

A ruster comes with some relations joined. Of the attributes of the probed state it specifies those
whose class any joined relation has a value of: that is the access pattern, and it depends on the
route. In a - b - c - d, each pair with an attribute of its own::

    from a, route b > d > c      probe c by  a-c, b-c, d-c        pattern (0, 1, 2)
    from a, route c > b > d      probe c by  a-c                  pattern (0,)

All conditions between the probed relation and those joined hold of what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from time import thread_time
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Ints
from querymesh.fabric.core.operators import MOST_ROWS
from querymesh.fabric.core.ruster import Ruster, in_parts
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.join.join_ruster import JoinRuster, JoinWindow, kept
from querymesh.index.kernels import travel as t
from querymesh.index.probe.program import Arriving, Combinations, Program, Step, Waiting
from querymesh.index.store.codes import equality_codes, ints
from querymesh.index.store.request import OPS, Asked
from querymesh.index.store.stem import Stem
from querymesh.query.join import JoinComparison, JoinQuery, KeyClass
from querymesh.query.model import Meeting, Probe

Stems = Mapping[str, Stem]
Routes = tuple[tuple[Probe, ...], ...]

MOST_PROGRAMS = 256
"""Programs of steps that are kept: an Eddy comes back to few of them."""


@cache
def is_exact(dtype: pa.DataType) -> bool:
    """Whether equal codes of this type mean equal values."""
    return equality_codes(pa.array([], dtype)).exact


class JoinedKeys:
    """What rusters of one stream join by: the codes and values of what is joined, and the programs
    that probe the states of the others."""

    def __init__(self, join: JoinQuery, source: str, stems: Stems) -> None:
        self.join = join
        self.source = source
        self.stems = stems
        self._key = {
            (alias, each.number): position
            for alias in join.schemas
            for position, each in enumerate(join.keys_of(alias))
        }
        self._order = {
            (alias, each): join.order_of(alias, each)
            for alias in join.schemas
            for each in join.comparisons_of(alias)
        }
        self.exact = {each.number: is_exact(each.dtype) for each in join.classes}
        self.aliases = tuple(join.schemas)
        self.number = {alias: n for n, alias in enumerate(self.aliases)}
        """The number of each relation in programs, whatever their source."""
        self.probed = [stems[alias] for alias in self.aliases]
        self._programs: dict[tuple[Routes, frozenset[str]], Program] = {}
        self._of_steps: dict[tuple[Step, ...], Program] = {}
        self._steps: dict[tuple[str, frozenset[str]], Step] = {}
        window = join.window_of(source)
        self.range_us = window.size if window is not None and window.kind == "range" else None

    def program(self, routes: Routes, joined: frozenset[str]) -> Program:
        """The program of some orders of probes, for tuples that have joined these relations: the
        states of a route follow each other, and so do the routes."""
        if (routes, joined) not in self._programs:
            chains = [self.chain(route, joined) for route in routes]
            self._programs[routes, joined] = self.program_of_chains(chains)
        return self._programs[routes, joined]

    def chain(self, route: Sequence[Probe], joined: frozenset[str]) -> list[Step]:
        """The steps of some probes, one after the other."""
        steps = []
        for probe in route:
            steps.append(self.step(probe.relation, joined))
            joined |= {probe.relation}
        return steps

    def program_of_chains(self, chains: Sequence[Sequence[Step]]) -> Program:
        """The program of some chains of steps, each with states of its own, in this order."""
        steps: dict[Step, int] = {}
        state_step: list[int] = []
        state_next: list[int] = []
        for chain in chains:
            for place, step in enumerate(chain):
                state_step.append(steps.setdefault(step, len(steps)))
                state_next.append(len(state_next) + 1 if place + 1 < len(chain) else -1)
        return self._made(steps, state_step, state_next, max(map(len, chains)))

    def program_of_steps(self, steps: tuple[Step, ...]) -> Program:
        """The program of some probes, for automata that are made anew for each run."""
        if steps not in self._of_steps:
            if len(self._of_steps) > MOST_PROGRAMS:
                self._of_steps.clear()
            self._of_steps[steps] = self._made(steps, (), (), 0)
        return self._of_steps[steps]

    def _made(
        self,
        steps: Iterable[Step],
        state_step: Sequence[int],
        state_next: Sequence[int],
        levels: int,
    ) -> Program:
        return Program(
            len(self.aliases),
            tuple(steps),
            tuple(state_step),
            tuple(state_next),
            levels,
            max(len(self.join.keys_of(alias)) for alias in self.aliases),
            max(len(self.join.orders_of(alias)) for alias in self.aliases),
            self._event_times(),
        )

    def _event_times(self) -> dict[int, str]:
        """By relation whose window counts rows, the column with their time, if they have one."""
        named = {}
        for alias in self.aliases:
            window = self.join.window_of(alias)
            if window is not None and window.kind == "rows" and alias in self.join.times:
                named[self.number[alias]] = self.join.times[alias]
        return named

    def step(self, relation: str, joined: frozenset[str]) -> Step:
        """The probe of a relation by all conditions that link it to what is joined."""
        if (relation, joined) not in self._steps:
            self._steps[relation, joined] = self._step(relation, joined)
        return self._steps[relation, joined]

    def _step(self, relation: str, joined: frozenset[str]) -> Step:
        by = [
            (position, self.number[holder], self._key[holder, each.number])
            for position, each in enumerate(self.join.keys_of(relation))
            if (holder := self.holder(each, joined)) is not None
        ]
        compared = [
            (each.op_for(relation), self._order[relation, each], other, self._order[other, each])
            for each in self.join.comparisons_of(relation)
            if (other := each.other(relation)) in joined
        ]
        asked = Asked(
            tuple(position for position, _, _ in by), tuple((op, own) for op, own, _, _ in compared)
        )
        window = self.join.window_of(relation)
        kind = t.NO_WINDOW
        if window is not None:
            kind = t.ROWS_WINDOW if window.kind == "rows" else t.RANGE_WINDOW
        return Step(
            self.number[self.source],
            self.number[relation],
            asked,
            tuple((holder, theirs) for _, holder, theirs in by),
            tuple((self.number[other], theirs) for _, _, other, theirs in compared),
            kind,
            0 if window is None else window.size,
        )

    def arriving(self, window: JoinWindow, base: int = 0) -> Arriving:
        """Arrivals of the stream, as programs take them; the first has this row id."""
        before = {self.number[alias]: ints(counts) for alias, counts in window.before.items()}
        return Arriving(
            self.number[self.source],
            tuple(map(ints, window.keys)),
            tuple(map(ints, window.orders)),
            ints(window.times),
            ints(window.serials),
            before,
            self.range_us,
            base,
        )

    def waiting(self, ruster: JoinRuster) -> Waiting:
        """A ruster on its way, as programs take it."""
        joined = {self.number[alias]: rows for alias, rows in ruster.matches.items()}
        return Waiting(ruster.rows, ruster.newest, ruster.until, joined)

    def ruster(
        self,
        window: JoinWindow,
        token: RouteToken,
        leaf: int,
        found: Combinations,
        joined: Set[str],
    ) -> JoinRuster:
        """What came out of a program, with the relations that are joined by now."""
        matches = {alias: found.joined[self.number[alias]] for alias in joined - {self.source}}
        return JoinRuster(window, found.rows, token, leaf, matches, found.newest, found.until)

    def verified(self, ruster: JoinRuster, joined: Set[str], probed: Sequence[str]) -> JoinRuster:
        """The rows whose keys are equal and do not just share a hash: of the relations probed with
        each other and with those joined before."""
        agreeing = self.agreeing(ruster, joined, probed)
        return ruster if agreeing is None else kept(ruster, agreeing)

    def agreeing(self, ruster: JoinRuster, joined: Set[str], probed: Sequence[str]) -> Bools | None:
        """Which rows have equal keys and not just the same hashes; None where codes tell all."""
        agreeing: Bools | None = None
        for each in self.join.classes:
            if self.exact[each.number]:
                continue
            fresh = [alias for alias in probed if alias in each.members]
            holder = self.holder(each, joined) or next(iter(fresh), None)
            for alias in fresh:
                if alias != holder and holder is not None:
                    same = self.equal(ruster, each, holder, alias)
                    agreeing = same if agreeing is None else agreeing & same
        return agreeing

    def joined(self, ruster: Ruster) -> frozenset[str]:
        """The relations a ruster has joined, its source included."""
        return frozenset({self.source, *ruster.matches})

    def holder(self, each: KeyClass, joined: Set[str]) -> str | None:
        """A joined relation that has a value of the class; the source, if it has."""
        if self.source in each.members and self.source in joined:
            return self.source
        return next((alias for alias in each.members if alias in joined), None)

    def codes(self, ruster: JoinRuster, alias: str, each: KeyClass) -> Ints:
        """The equality codes of a joined relation's key."""
        position = self._key[alias, each.number]
        if alias in ruster.matches:
            return self.stems[alias].key(position, ruster.matches[alias])
        return ruster.of.keys[position][ruster.rows]

    def values(self, ruster: JoinRuster, alias: str, each: KeyClass) -> pa.Array:
        """The values of a joined relation's key."""
        if alias in ruster.matches:
            found = self.stems[alias].take(
                self.join.value_column(each, alias), ruster.matches[alias]
            )
        else:
            found = ruster.of.values[each.number].take(pa.array(ruster.rows))
        return found if found.type == each.dtype else found.cast(each.dtype)

    def equal(self, ruster: JoinRuster, each: KeyClass, one: str, other: str) -> Bools:
        """Whether two joined relations have the same value of a key."""

        def same(part: Ruster) -> Bools:
            assert isinstance(part, JoinRuster)
            verdict = pc.equal(self.values(part, one, each), self.values(part, other, each))
            return np.asarray(verdict, dtype=bool)

        return np.concatenate(list(in_parts(same, ruster)))

    def orders(self, ruster: JoinRuster, alias: str, position: int) -> Ints:
        """The order codes of a joined relation's side of a comparison."""
        if alias in ruster.matches:
            return self.stems[alias].order(position, ruster.matches[alias])
        return ruster.of.orders[position][ruster.rows]

    def position_of_order(self, alias: str, each: JoinComparison) -> int:
        """Where a relation's side of a comparison stands among its order codes."""
        return self._order[alias, each]


@dataclass
class ProbeModule:
    """Joins each row to its matches in another relation's state.

    `alone` restricts it to the conditions of `Probe.links`, for profiling: what it does is then the
    same whatever else is joined.
    """

    operator: Probe
    keys: JoinedKeys
    alone: bool = False
    errors: int = 0
    comparisons: int = 0
    clock: ClassVar[Callable[[], float]] = staticmethod(thread_time)
    """What profiling times it by: it waits for nothing, and a busy machine makes it no dearer."""

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """One ruster in; more than one out where there are many matches."""
        assert isinstance(ruster, JoinRuster)
        keys, relation = self.keys, self.operator.relation
        joined = keys.joined(ruster)
        known = joined & self.operator.links if self.alone else joined
        program = keys.program(((self.operator,),), known)
        counts = program.no_counts()
        waiting = keys.waiting(ruster)
        states = np.zeros(len(ruster), np.int64)
        arriving = keys.arriving(ruster.of)
        for found in program.run(keys.probed, [arriving], states, counts, MOST_ROWS, waiting):
            token = ruster.token.pop()
            out = keys.ruster(ruster.of, token, ruster.leaf, found, joined | {relation})
            yield keys.verified(out, known, (relation,))
        self.comparisons += int(counts.looked.sum())


@dataclass
class MeetingModule:
    """A join condition between two joined relations; the probe that came second has seen to it.

    `alone`, for profiling, it is put to the test: there, probes know of their links only.
    """

    operator: Meeting
    keys: JoinedKeys
    alone: bool = False
    errors: int = 0
    comparisons: int = 0

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """The tuples of a ruster whose keys agree with those that it met before."""
        assert isinstance(ruster, JoinRuster)
        if not self.alone:
            yield replace(ruster, token=ruster.token.pop())
            return
        yield ruster.keep(self._verdict(ruster))

    def _verdict(self, ruster: JoinRuster) -> Bools:
        keys, join, operator = self.keys, self.keys.join, self.operator
        if operator.condition < len(join.classes):
            each = join.classes[operator.condition]
            left = keys.codes(ruster, operator.left, each)
            return np.asarray(left == keys.codes(ruster, operator.right, each))
        compared = join.compared[operator.condition - len(join.classes)]
        sides = [
            keys.orders(ruster, alias, keys.position_of_order(alias, compared))
            for alias in (compared.left, compared.right)
        ]
        return np.asarray(OPS[compared.op](*sides))
