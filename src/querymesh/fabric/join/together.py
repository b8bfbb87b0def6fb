"""The arrivals of all streams of a step, taken through one program and out of it at once.

::

    a ── leaves ──┐                                            ┌─> counts by view, leaf, operator
    b ── leaves ──┼──> states of one automaton ──> probes ─────┤
    c ── leaves ──┘                                            └─> row ids of all states ──> results

What arrives is stored before it probes. So what comes out is a row id of every state, whichever
stream its last tuple came on, and columns are gathered once a step: in small steps that is most of
what a step costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats, Ints
from querymesh.fabric.core.operators import MOST_ROWS
from querymesh.fabric.core.output import Gathering
from querymesh.fabric.core.router import Router
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.join.join_ruster import JoinRuster, JoinWindow, kept
from querymesh.fabric.join.route_plan import SettingOut
from querymesh.fabric.join.view import Admitted, ViewFabric
from querymesh.index.probe.program import Automaton, Combinations, Counts, Program
from querymesh.index.store.partition import Partition
from querymesh.query.expr import user_calls_of
from querymesh.query.join import JoinQuery


@dataclass(frozen=True)
class Arrived:
    """Stored tuples of a stream that set out.

    `base` is the row id of the partition they are stored in; where its rows lie in another order,
    `stored_at` has the number that each arrival has there.
    """

    view: ViewFabric
    window: JoinWindow
    setting_out: SettingOut
    base: int
    stored_at: Ints | None


class Together:
    """Takes the tuples of several views through their probes at once."""

    def __init__(self, join: JoinQuery) -> None:
        # Where a function in SELECT drops a row on which it raises, that is counted by stream.
        self._counts_output = any(user_calls_of(output.expr) for output in join.outputs)
        self._relations = tuple(join.schemas)
        self._programs: dict[tuple[int, ...], tuple[list[Program], Program]] = {}

    def arrived(
        self, view: ViewFabric, admitted: list[Admitted], partition: Partition, router: Router
    ) -> Arrived | None:
        """What a view admitted and stored last, if it can go together with others': the way of
        every tuple is known, and only probes stand on it."""
        if self._counts_output or len(admitted) != 1:
            return None
        setting_out = view.setting_out(admitted[0], router)
        if setting_out is None:
            return None
        window = admitted[0].window
        stored_at = None
        if partition.serials is not window.serials:
            assert partition.serials is not None
            stored_at = np.empty(window.rows, np.int64)
            stored_at[np.argsort(window.serials)] = np.argsort(partition.serials)
        base = view.stems[view.alias].rows - len(partition)
        return Arrived(view, window, setting_out, base, stored_at)

    def results(self, parts: Sequence[Arrived]) -> Iterator[pa.RecordBatch]:
        """The results whose last tuple is among those that arrived, counted by view."""
        started = perf_counter()
        program = self._program(parts)
        automaton, begins = _joint([part.setting_out for part in parts])
        counts = automaton.no_counts()
        view_of_state = np.repeat(np.arange(len(parts)), np.diff(begins))
        keys = parts[0].view.keys
        arriving = [part.view.keys.arriving(part.window, part.base) for part in parts]
        states = np.concatenate([
            _moved(part.setting_out.states, begin)
            for part, begin in zip(parts, begins, strict=False)
        ])  # fmt: skip
        gathering = Gathering(parts[0].view.bound, parts[0].window, in_order=False)
        rows_out = np.zeros(len(parts), np.int64)
        elapsed_s = output_s = 0.0
        run = program.run(keys.probed, arriving, states, counts, MOST_ROWS, automaton=automaton)
        for found in chain(run, [None]):
            if found is not None:
                of_view = view_of_state[found.states]
                ruster = self._ruster(parts, found, of_view)
                agreeing = keys.agreeing(ruster, frozenset(), self._relations)
                if agreeing is not None:
                    ruster, of_view = kept(ruster, agreeing), of_view[agreeing]
                rows_out += np.bincount(of_view, minlength=len(parts))
                gathering.add(ruster)
            if not gathering.rows or (found is not None and gathering.rows < MOST_ROWS):
                continue
            for batch, took_s in _timed_output(gathering, parts[0].view):
                output_s += took_s
                elapsed_s += perf_counter() - started
                yield batch
                started = perf_counter()
        elapsed_s += perf_counter() - started
        _count(parts, begins, counts, rows_out, (elapsed_s, output_s))

    def _program(self, parts: Sequence[Arrived]) -> Program:
        """The steps of all parts as one program, made once for the same programs."""
        programs = [part.setting_out.program for part in parts]
        key = tuple(map(id, programs))
        if key not in self._programs:
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.clear()
            steps = tuple(step for program in programs for step in program.steps)
            # The programs are kept as well, so that their ids are of no others.
            self._programs[key] = (
                programs,
                replace(programs[0], steps=steps, state_step=(), state_next=(), levels=0, _free=[]),
            )
        return self._programs[key][1]

    def _ruster(self, parts: Sequence[Arrived], found: Combinations, of_view: Ints) -> JoinRuster:
        """What came out, as row ids of all states."""
        matches: Mapping[str, Ints] = dict(zip(self._relations, found.joined, strict=True))
        for number, part in enumerate(parts):
            if part.stored_at is not None:
                mine = of_view == number
                ids = matches[part.view.alias]
                ids[mine] = part.base + part.stored_at[ids[mine] - part.base]
        token = RouteToken(())
        return JoinRuster(parts[0].window, found.rows, token, 0, matches, found.newest, found.until)


_MOST_PROGRAMS = 64
"""Joint programs that are kept: which streams have arrivals differs between steps."""


def _joint(setting_out: Sequence[SettingOut]) -> tuple[Automaton, list[int]]:
    """The automata of all as one, side by side, and the first state of each, and the end of the
    last."""
    steps = [0, *accumulate(len(each.program.steps) for each in setting_out)]
    begins = [0, *accumulate(len(each.automaton.state_step) for each in setting_out)]
    automata = [each.automaton for each in setting_out]
    state_step = [a.state_step + first for a, first in zip(automata, steps, strict=False)]
    state_next = [_moved(a.state_next, first) for a, first in zip(automata, begins, strict=False)]
    levels = max(each.levels for each in automata)
    return Automaton(np.concatenate(state_step), np.concatenate(state_next), levels), begins


def _moved(states: Ints, by: int) -> Ints:
    """States under the numbers that they have behind others; none, which is -1, stays none."""
    return np.where(states < 0, -1, states + by)


def _timed_output(gathering: Gathering, view: ViewFabric) -> Iterator[tuple[pa.RecordBatch, float]]:
    """What was gathered, in one batch unless its texts are too long for that, with the seconds that
    each took."""
    started = perf_counter()
    for batch in gathering.take(view.output_calls):
        yield batch, perf_counter() - started
        started = perf_counter()


def _count(
    parts: Sequence[Arrived],
    begins: Sequence[int],
    counts: Counts,
    rows_out: Ints,
    took: tuple[float, float],
) -> None:
    """Add what was done to the metrics of each view, whose states begin there. `took` are all
    seconds, and those of output: views share them by what their probes took, and by their
    results."""
    probing: Floats = np.add.reduceat(counts.seconds, begins[:-1])
    elapsed_s, output_s = took
    shares = _shares(probing)
    by_rows = _shares(rows_out.astype(np.float64))
    for number, part in enumerate(parts):
        metrics = part.view.metrics
        part.setting_out.done(counts.part(begins[number], begins[number + 1]))
        metrics.rows_out += int(rows_out[number])
        mine_s = output_s * by_rows[number]
        metrics.output_seconds += mine_s
        metrics.total_seconds += (elapsed_s - output_s) * shares[number] + mine_s


def _shares(amounts: Floats) -> list[float]:
    total = float(amounts.sum())
    if total <= 0:
        return [1 / len(amounts)] * len(amounts)
    return [float(each) / total for each in amounts.tolist()]
