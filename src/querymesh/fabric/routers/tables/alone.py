"""Tuples of a chunk that profile an operator: their visits up to it are counted apart.

Each has states of its own until it has been there; behind it, it is counted with its class::

    class 0      0 ──> 3 ──> 6 ──> out
    class 1      1 ──> 4 ──> 7 ──> out
    class 2      2 ──> 5 ──> 8 ──> out
    one of it    9 ──┘                      profiles the operator of state 2
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.index.probe.program import Automaton, Counts


@dataclass(frozen=True)
class Alone:
    """Tuples by their numbers in the chunk, and how many of the first visits of each are counted
    apart."""

    rows: Ints
    visits: Ints

    def set_apart(self, automaton: Automaton, of_tuple: Ints) -> tuple[Automaton, Ints, Ints]:
        """An automaton with states for them behind those there are, the state that each tuple of
        the chunk begins in, and for each further state the one that it stands for."""
        state_step, state_next, levels = automaton
        ends = np.cumsum(self.visits)
        firsts = ends - self.visits
        place = np.arange(ends[-1]) - np.repeat(firsts, self.visits)
        classes = len(state_step) // levels
        stands_for = place * classes + np.repeat(of_tuple[self.rows], self.visits)
        onward = np.arange(1, len(place) + 1) + len(state_step)
        apart = self.visits > 0
        onward[ends[apart] - 1] = state_next[stands_for[ends[apart] - 1]]
        begins = of_tuple.copy()
        begins[self.rows[apart]] = firsts[apart] + len(state_step)
        extended = Automaton(
            np.concatenate([state_step, state_step[stands_for]]),
            np.concatenate([state_next, onward]),
            levels,
        )
        return extended, begins, stands_for

    def outcomes(self, counts: Counts, states: int) -> tuple[Ints, Floats]:
        """Which of them reached the operator they profile, by their places here, and how many came
        out for each that went in; the automaton has so many states beside theirs."""
        apart = np.flatnonzero(self.visits)
        lasts = states + np.cumsum(self.visits)[apart] - 1
        evaluated = counts.evaluated[lasts]
        there = np.flatnonzero(evaluated)
        return apart[there], counts.passed[lasts[there]] / evaluated[there]


def counted_together(counts: Counts, stands_for: Ints, states: int) -> Counts:
    """Counts by the first states alone, each with those of the further ones that stand for it."""

    def whole(each: Ints) -> Ints:
        more = np.bincount(stands_for, each[states:], states)
        return each[:states] + more.astype(np.int64)

    seconds = counts.seconds[:states] + np.bincount(stands_for, counts.seconds[states:], states)
    return Counts(whole(counts.evaluated), whole(counts.passed), whole(counts.looked), seconds)
