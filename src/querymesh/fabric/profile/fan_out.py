"""Sampled tuples on their way through operators, for a profile: counted all, carried on in part.

A probe may make thousands of rows of one. What comes out is counted piece by piece, a uniform share
of it goes on to the next operator, and of a very large fan-out fewer rows are asked about::

    reached   . . . . . . .        sampled tuples, and what they were joined to
    asked     .   .     .          so few that the operator's output can be gone through
    out       3   0     9          counted, for each sampled tuple: its outcome is out / asked
    carried   .         ..         a share of them, MOST_PROFILED at most

An outcome is rows out per row that reached the operator, so a share of those tells it as well. A
tuple of which no row was asked about has the mean outcome of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from querymesh.arrays import Bools, Floats, Ints
from querymesh.fabric.core.operators import Module
from querymesh.fabric.core.ruster import Ruster

MOST_PROFILED = 100_000
"""So many rows at most are carried from one operator of a chain to the next."""

MOST_COUNTED = 4_000_000
"""Where more rows than this come out, a quarter of the rows is asked about instead."""


@dataclass(frozen=True)
class Survivors:
    """What is left of the sampled tuples once an operator is behind them.

    `alive` tells which tuples of the sample have any row left, as far as is known. `outcomes` are
    the operator's rows out per row that reached it, by tuple, and `seconds` what it took to ask it
    about the rows `asked`.
    """

    carried: Ruster
    alive: Bools
    outcomes: Floats
    asked: Ruster
    seconds: float = 0.0


class Chain:
    """A sample, and what is left of it behind sets of operators, each run once."""

    def __init__(self, everything: Ruster, modules: Sequence[Module], order: Sequence[int]) -> None:
        rows = everything.window.rows
        start = Survivors(everything, np.ones(rows, dtype=bool), np.ones(rows), everything)
        self._left: dict[frozenset[int], Survivors] = {frozenset(): start}
        self._modules = modules
        self._order = order

    def after(self, operators: AbstractSet[int]) -> Survivors:
        """What is left behind these operators, passed in the order as written."""
        done: frozenset[int] = frozenset()
        for index in self._order:
            if index in operators:
                before, done = self._left[done], done | {index}
                if done not in self._left:
                    self._left[done] = passed(self._modules[index - 1], before)
        return self._left[done]


def passed(module: Module, before: Survivors) -> Survivors:
    """Run an operator on what is left by others. It is not run on nothing, which may not even have
    the columns it reads."""
    rng = np.random.default_rng(0)
    asked = before.carried
    out = _Out(asked, rng)
    while len(asked) and not out.goes_through(module):
        few = rng.choice(len(asked), -(-len(asked) // 4), replace=False)
        asked = asked.pick(np.sort(few))
        out = _Out(asked, rng)
    arrived = np.bincount(asked.rows, minlength=len(before.alive))
    known = arrived > 0
    unknown = before.alive & ~known
    outcomes = np.divide(out.counts, arrived, out=np.zeros(len(known)), where=known)
    if known.any():
        outcomes[unknown] = outcomes[known].mean()
    return Survivors(out.carried(), (out.counts > 0) | unknown, outcomes, asked, out.seconds)


class _Out:
    """What comes out of an operator: counts by sampled tuple, a share of the rows, the time."""

    def __init__(self, asked: Ruster, rng: np.random.Generator) -> None:
        self.counts: Ints = np.zeros(asked.window.rows, np.int64)
        self.seconds = 0.0
        self._asked = asked
        self._rng = rng
        self._share = 1.0
        self._kept: list[Ruster] = []

    def goes_through(self, module: Module) -> bool:
        """Whether all that comes out could be counted: a single row always can."""
        total = 0
        clock = getattr(module, "clock", perf_counter)
        started = clock()
        for piece in module.process(self._asked):
            self.seconds += clock() - started
            total += len(piece)
            if total > MOST_COUNTED and len(self._asked) > 1:
                return False
            self.counts += np.bincount(piece.rows, minlength=len(self.counts))
            self._keep(piece)
            started = clock()
        self.seconds += clock() - started
        return True

    def _keep(self, piece: Ruster) -> None:
        """By chance: every n-th row of a regular fan-out would always be of the same kind."""
        self._kept.append(self._thinned(piece, self._share))
        while sum(map(len, self._kept)) > MOST_PROFILED:
            self._kept = [self._thinned(each, 0.5) for each in self._kept]
            self._share /= 2

    def _thinned(self, piece: Ruster, share: float) -> Ruster:
        if share == 1.0:
            return piece
        return piece.pick(np.flatnonzero(self._rng.random(len(piece)) < share))

    def carried(self) -> Ruster:
        if not self._kept:
            return self._asked.pick(np.zeros(0, np.int64))
        return self._kept[0].followed_by(self._kept[1:])
