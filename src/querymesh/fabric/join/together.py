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
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats, Ints
from querymesh.fabric.core.operators import MOST_ROWS
from querymesh.fabric.core.output import Gathering
from querymesh.fabric.core.router import Router
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.join.join_ruster import JoinRuster, JoinWindow, kept
from querymesh.fabric.join.route_plan import RoutePlan
from querymesh.fabric.join.view import Admitted, ViewFabric
from querymesh.index.probe.program import Combinations, Counts, Program
from querymesh.index.store.partition import Partition
from querymesh.query.expr import user_calls_of
from querymesh.query.join import JoinQuery


@dataclass(frozen=True)
class Arrived:
    """Stored tuples of a stream, each with its leaf, and the routes of the leaves.

    `base` is the row id of the partition they are stored in; where its rows lie in another order,
    `stored_at` has the number that each arrival has there.
    """

    view: ViewFabric
    window: JoinWindow
    leaves: Ints
    plan: RoutePlan
    version: int
    base: int
    stored_at: Ints | None


@dataclass(frozen=True)
class _JointPlan:
    """The routes of several views as one program, and the first state of each view (and the end of
    the last)."""

    program: Program
    begins: list[int]


class Together:
    """Takes the tuples of several views through their probes at once."""

    def __init__(self, join: JoinQuery) -> None:
        # Where a function in SELECT drops a row on which it raises, that is counted by stream.
        self._counts_output = any(user_calls_of(output.expr) for output in join.outputs)
        self._relations = tuple(join.schemas)
        self._plans: dict[tuple[int, ...], tuple[list[RoutePlan], _JointPlan]] = {}

    def arrived(
        self, view: ViewFabric, admitted: list[Admitted], partition: Partition, router: Router
    ) -> Arrived | None:
        """What a view admitted and stored last, if it can go together with others': every route is
        known, and only probes stand on it."""
        if self._counts_output or len(admitted) != 1 or (leaves := admitted[0].leaves) is None:
            return None
        plan = view.route_plan(router)
        if plan is None or not plan.is_whole:
            return None
        window = admitted[0].window
        stored_at = None
        if partition.serials is not window.serials:
            assert partition.serials is not None
            stored_at = np.empty(window.rows, np.int64)
            stored_at[np.argsort(window.serials)] = np.argsort(partition.serials)
        base = view.stems[view.alias].rows - len(partition)
        return Arrived(view, window, leaves, plan, router.version, base, stored_at)

    def results(self, parts: Sequence[Arrived]) -> Iterator[pa.RecordBatch]:
        """The results whose last tuple is among those that arrived, counted by view."""
        started = perf_counter()
        joint = self._joint(parts)
        counts = joint.program.no_counts()
        view_of_state = np.repeat(np.arange(len(parts)), np.diff(joint.begins))
        keys = parts[0].view.keys
        arriving = [part.view.keys.arriving(part.window, part.base) for part in parts]
        states = np.concatenate(
            [
                part.plan.begins[part.leaves] + begin
                for part, begin in zip(parts, joint.begins, strict=False)
            ]
        )
        gathering = Gathering(parts[0].view.bound, parts[0].window, in_order=False)
        rows_out = np.zeros(len(parts), np.int64)
        elapsed_s = output_s = 0.0
        for found in joint.program.run(keys.probed, arriving, states, counts, MOST_ROWS):
            of_view = view_of_state[found.states]
            ruster = self._ruster(parts, found, of_view)
            agreeing = keys.agreeing(ruster, frozenset(), self._relations)
            if agreeing is not None:
                ruster, of_view = kept(ruster, agreeing), of_view[agreeing]
            rows_out += np.bincount(of_view, minlength=len(parts))
            gathering.add(ruster)
            if gathering.rows < MOST_ROWS:
                continue
            for batch, took_s in _timed_output(gathering, parts[0].view):
                output_s += took_s
                elapsed_s += perf_counter() - started
                yield batch
                started = perf_counter()
        if gathering.rows:
            for batch, took_s in _timed_output(gathering, parts[0].view):
                output_s += took_s
                elapsed_s += perf_counter() - started
                yield batch
                started = perf_counter()
        elapsed_s += perf_counter() - started
        _count(parts, joint, counts, rows_out, (elapsed_s, output_s))

    def _joint(self, parts: Sequence[Arrived]) -> _JointPlan:
        """The program of all routes of all parts, made once for the same plans."""
        key = tuple(id(part.plan) for part in parts)
        if key not in self._plans:
            chains = []
            begins = [0]
            for part in parts:
                own = frozenset({part.view.alias})
                chains += [part.view.keys.chain(s.probes, own) for s in part.plan.stretches]
                begins.append(begins[-1] + len(part.plan.indices))
            program = parts[0].view.keys.program_of_chains(chains)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            # The plans are kept as well, so that their ids are of no others.
            self._plans[key] = [part.plan for part in parts], _JointPlan(program, begins)
        return self._plans[key][1]

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


_MOST_PLANS = 64
"""Sets of plans whose joint program is kept: which streams have arrivals differs between steps."""


def _timed_output(gathering: Gathering, view: ViewFabric) -> Iterator[tuple[pa.RecordBatch, float]]:
    """What was gathered, in one batch unless its texts are too long for that, with the seconds that
    each took."""
    started = perf_counter()
    for batch in gathering.take(view.output_calls):
        yield batch, perf_counter() - started
        started = perf_counter()


def _count(
    parts: Sequence[Arrived],
    joint: _JointPlan,
    counts: Counts,
    rows_out: Ints,
    took: tuple[float, float],
) -> None:
    """Add what was done to the metrics of each view. `took` are all seconds, and those of output:
    views share them by what their probes took, and by their results."""
    begins = joint.begins
    probing: Floats = np.add.reduceat(counts.seconds, begins[:-1])
    elapsed_s, output_s = took
    shares = _shares(probing)
    by_rows = _shares(rows_out.astype(np.float64))
    for number, part in enumerate(parts):
        metrics = part.view.metrics
        first, last = begins[number], begins[number + 1]
        part.view.count(counts.part(first, last), part.version, part.plan)
        metrics.rows_out += int(rows_out[number])
        mine_s = output_s * by_rows[number]
        metrics.output_seconds += mine_s
        metrics.total_seconds += (elapsed_s - output_s) * shares[number] + mine_s


def _shares(amounts: Floats) -> list[float]:
    total = float(amounts.sum())
    if total <= 0:
        return [1 / len(amounts)] * len(amounts)
    return [float(each) / total for each in amounts.tolist()]
