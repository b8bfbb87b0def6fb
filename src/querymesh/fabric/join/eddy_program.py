"""An Eddy's tuples as one program: what it decides for a chunk is a table, and each cell a state.

::

    chunk ──> classes ──> table ──> automaton ──> probes ──> results
                ^                                   │
                └──── what the Eddy has learned <───┘ counts by state
"""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time

import numpy as np

from querymesh.arrays import Ints
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.join.join_ruster import JoinRuster, JoinWindow
from querymesh.fabric.join.probe import JoinedKeys
from querymesh.fabric.join.route_plan import SettingOut
from querymesh.fabric.join.tuple_program import TupleProgram
from querymesh.fabric.routers.eddy import PLAIN, EddyRouter
from querymesh.fabric.routers.tables.alone import counted_together
from querymesh.fabric.routers.tables.eddy_table import Table, Visit
from querymesh.index.probe.program import Automaton, Counts, Program, Step
from querymesh.index.store.columns import NO_INTS
from querymesh.query.model import BoundQuery, Probe

MOST_STEPS = 4096
"""Visits whose probes are remembered."""


class EddyProgram:
    """Takes the tuples of a view through the probes that an Eddy decides on."""

    def __init__(self, bound: BoundQuery, keys: JoinedKeys, router: EddyRouter) -> None:
        self.keys = keys
        self.router = router
        self._relations = {op.index: op.relation for op in bound.operators if isinstance(op, Probe)}
        only_probes = self._relations.keys() == set(router.operators)
        self._by_tuple = (
            TupleProgram(bound, keys, router) if router.by_tuple and only_probes else None
        )
        self._operators = max(self._relations, default=0) + 1
        self._steps: dict[Visit, Step] = {}
        self._table: Table | None = None
        self._visits: tuple[Visit, ...] | None = None
        self._step_of_visit: Ints = NO_INTS
        self._program = keys.program_of_steps(())
        self._automaton = self._program.automaton
        self._cells: Ints = NO_INTS
        """By state of the table its leaf and operator, as one number."""

    def results(
        self, window: JoinWindow, leaves: Ints | None, most: int, metrics: Metrics
    ) -> Iterator[JoinRuster]:
        """What the tuples of a window become, in pieces of at most `most`, counted in the metrics;
        `leaves` are those that they were given when the conditions on their stream were decided on,
        if there are any."""
        if leaves is None and self._by_tuple is not None:
            yield from self._by_tuple.results(window, most, metrics)
            return
        first = rows = 0
        while first + rows < window.rows:
            first += rows
            rows, left = self.router.chunk_rows, window.rows - first
            if left - rows < rows / 4:
                rows = left  # a small rest is not worth a program of its own
            part = window.slice(first, rows)
            given = None if leaves is None else leaves[first : first + rows]
            for found in self._chunk(part, given, most, metrics):
                yield JoinRuster(
                    window, found.rows + first, found.token, found.leaf,
                    found.matches, found.newest, found.until,
                )  # fmt: skip

    def whole(self, window: JoinWindow, leaves: Ints | None, metrics: Metrics) -> SettingOut | None:
        """The tuples of a window as one chunk, decided on; None if they are more, or are decided on
        one by one."""
        if leaves is None and self._by_tuple is not None:
            return None
        rows = self.router.chunk_rows
        if window.rows - rows >= rows / 4:
            return None
        return self._decided(window, leaves, metrics)

    def _chunk(
        self, window: JoinWindow, given: Ints | None, most: int, metrics: Metrics
    ) -> Iterator[JoinRuster]:
        keys = self.keys
        program, automaton, states, done = self._decided(window, given, metrics)
        counts = automaton.no_counts()
        source = frozenset({keys.source})
        probed = tuple(self._relations.values())
        for found in program.run(
            keys.probed, [keys.arriving(window)], states, counts, most, automaton=automaton
        ):
            whole = keys.ruster(window, RouteToken(()), PLAIN, found, source.union(probed))
            checked = keys.verified(whole, source, probed)
            if len(checked):
                yield checked
        done(counts)

    def _decided(self, window: JoinWindow, given: Ints | None, metrics: Metrics) -> SettingOut:
        """Decide on the way of a chunk; what comes of it is learned when it is counted."""
        router = self.router
        started, learned_s = thread_time(), router.learning_seconds
        leaves = self._begun(window.rows, metrics) if given is None else given
        chunk = router.chunk(window, leaves, own_done=given is not None)
        program, automaton = self._followed(chunk.table)
        states, stands_for = chunk.of_tuple, NO_INTS
        if chunk.alone is not None:
            automaton, states, stands_for = chunk.alone.set_apart(automaton, states)
        cells = self._cells
        routing_s = thread_time() - started

        def done(counts: Counts) -> None:
            started = thread_time()
            if chunk.alone is not None:
                alone = len(automaton.state_step) - len(stands_for)
                router.take_sample(window, chunk, *chunk.alone.outcomes(counts, alone))
                counts = counted_together(counts, stands_for, alone)
            self._count(cells, counts, metrics)
            router.count(chunk, counts)
            counting_s = thread_time() - started
            learning_s = router.learning_seconds - learned_s
            metrics.routing_seconds += routing_s - learning_s
            metrics.learning_seconds += counting_s + learning_s
            router.resize_chunks(routing_s + counting_s, float(counts.seconds.sum()))

        return SettingOut(program, automaton, states, done)

    def _begun(self, rows: int, metrics: Metrics) -> Ints:
        """The leaves of a chunk, counted."""
        leaves = self.router.begin_chunk(rows)
        for leaf, count in enumerate(np.bincount(leaves).tolist()):
            if count:
                metrics.rusters += 1
                metrics.leaf_rows[self.router.version, leaf] += count
        return leaves

    def _followed(self, table: Table) -> tuple[Program, Automaton]:
        """The program of all probes in a table, and its cells as states."""
        if table is self._table:
            return self._program, self._automaton
        if table.visits is not self._visits:
            steps = [self._step(visit) for visit in table.visits]
            numbers = {step: number for number, step in enumerate(dict.fromkeys(steps))}
            self._step_of_visit = np.array([numbers[step] for step in steps], np.int64)
            self._program = self.keys.program_of_steps(tuple(numbers))
            self._visits = table.visits
        levels, classes = table.visit_of.shape
        follows = np.arange(classes, (levels + 1) * classes)
        follows[len(follows) - classes :] = -1
        self._automaton = Automaton(self._step_of_visit[table.visit_of_state], follows, levels)
        self._cells = table.leaf_of_state * self._operators + table.operator_of_state
        self._table = table
        return self._program, self._automaton

    def _step(self, visit: Visit) -> Step:
        """The probe of a visit: what is not ahead is joined."""
        if visit not in self._steps:
            context, index = visit
            behind = (other for k, other in self._relations.items() if not context >> k & 1)
            joined = frozenset((self.keys.source, *behind))
            if len(self._steps) > MOST_STEPS:
                self._steps.clear()
            self._steps[visit] = self.keys.step(self._relations[index], joined)
        return self._steps[visit]

    def _count(self, cells: Ints, counts: Counts, metrics: Metrics) -> None:
        """Add what was done to the visits of each leaf and operator, which `cells` has by state,
        and the routing calls."""
        router, operators = self.router, self._operators
        evaluated, passed, looked, seconds = (
            np.bincount(cells, each).tolist()
            for each in (counts.evaluated, counts.passed, counts.looked, counts.seconds)
        )
        for cell, rows in enumerate(evaluated):
            if not rows:
                continue
            leaf, index = divmod(cell, operators)
            visits = metrics.visits[router.version, leaf, index]
            visits.evaluations += int(rows)
            visits.passed += int(passed[cell])
            visits.comparisons += int(looked[cell])
            visits.seconds += seconds[cell]
            calls = 1 if router.routing.one_route_per_chunk else int(rows)
            metrics.routing[index, router.went_by(leaf, index)] += calls
