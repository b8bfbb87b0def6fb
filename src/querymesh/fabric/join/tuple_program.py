"""An Eddy's tuples one by one, in one program: each is decided on when all before it are done.

::

    tuple ──> decide ──> probes ──> results          a run: until a sample, a trial or a rest is
      ^                    │                         complete, or somebody comes to a visit that
      └───── learn <───────┘ counts by visit         nobody has made before
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from time import thread_time

import numpy as np

from querymesh.arrays import Ints
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.join.join_ruster import JoinRuster, JoinWindow
from querymesh.fabric.join.probe import JoinedKeys
from querymesh.fabric.routers.eddy import PLAIN, EddyRouter
from querymesh.fabric.routers.tables.by_tuple import Visits, came_of
from querymesh.index.kernels import travel as t
from querymesh.index.probe.program import Automaton, Counts, Step
from querymesh.index.store.columns import NO_INTS
from querymesh.query.model import BoundQuery, Probe

MOST_ROWS_A_RUN = 4096
"""Costs are measured run by run, so that one must end."""


MOST_MET_AT_ONCE = 9
"""Of so many operators all visits are made before any tuple comes to them, some thousands; of more,
when one does, and the run stops for it."""


class TupleProgram:
    """Takes the tuples of a view through their probes, each as an Eddy decides by all before it."""

    def __init__(self, bound: BoundQuery, keys: JoinedKeys, router: EddyRouter) -> None:
        self.keys = keys
        self.router = router
        self._relations = {op.index: op.relation for op in bound.operators if isinstance(op, Probe)}
        self._visits = Visits(router.operators)
        self._program = keys.program_of_steps(())
        self._steps: dict[Step, int] = {}
        self._step_of_visit: Ints = NO_INTS

    def results(self, window: JoinWindow, most: int, metrics: Metrics) -> Iterator[JoinRuster]:
        """What the tuples of a window become, in pieces of at most `most`, counted in the
        metrics."""
        first = 0
        while first < window.rows:
            first += yield from self._run(window, first, most, metrics)

    def _run(
        self, whole: JoinWindow, first: int, most: int, metrics: Metrics
    ) -> Generator[JoinRuster, None, int]:
        """As many tuples, from one on, as can be decided on without the router; how many."""
        window = whole.slice(first, min(MOST_ROWS_A_RUN, whole.rows - first))
        keys, router, visits = self.keys, self.router, self._visits
        started = thread_time()
        if not len(self._step_of_visit):
            everything = 1 << len(visits.operators)
            few = len(visits.operators) <= MOST_MET_AT_ONCE
            self._meet(range(everything - 1, 0, -1) if few else [everything - 1])
        asked, tables = router.begin_tuples(window, visits)
        operators, leaves = len(visits.operators), 1 + len(asked.wanted)
        steps = self._step_of_visit
        automaton = Automaton(
            np.concatenate([np.zeros(operators, np.int64), *[steps] * leaves]),
            np.append(np.arange(1, operators), -1),
            operators,
        )
        counts = automaton.no_counts()
        states = np.zeros(window.rows, np.int64)
        routing_s = thread_time() - started
        source = frozenset({keys.source})
        probed = tuple(self._relations.values())
        for found in self._program.run(
            keys.probed, [keys.arriving(window)], states, counts, most,
            automaton=automaton, eddy=tables,
        ):  # fmt: skip
            moved = found._replace(rows=found.rows + first)
            out = keys.ruster(whole, RouteToken(()), PLAIN, moved, source.union(probed))
            checked = keys.verified(out, source, probed)
            if len(checked):
                yield checked
        started = thread_time()
        share = float(tables.eddy[t.E_CYCLES]) / max(float(tables.eddy[t.E_TOTAL]), 1.0)
        deciding_s = share * float(counts.seconds.sum())
        counts.seconds *= 1 - share
        ran = came_of(tables, asked)
        each = len(steps)
        ends = range(operators + each, operators + leaves * each + 1, each)
        by_leaf = [counts.part(end - each, end) for end in ends]
        for leaf, counted in enumerate(by_leaf):
            self._count(leaf, counted, metrics)
        router.learn_tuples(window, visits, tables, ran, by_leaf, deciding_s)
        if ran.unknown is not None:
            self._meet([ran.unknown // operators])
        metrics.routing_seconds += routing_s + deciding_s
        metrics.learning_seconds += thread_time() - started
        return ran.rows

    def _meet(self, contexts: Iterable[int]) -> None:
        """Make the visits that are possible in some contexts, and the program of all probes so
        far."""
        count = len(self._visits.operators)
        for places in contexts:
            for place in range(count):
                if places >> place & 1 and self.router.may_follow(self._visits, places, place):
                    self._visits.meet(places * count + place)
        made = []
        for context, index in self._visits.known[len(self._step_of_visit) :]:
            behind = (r for k, r in self._relations.items() if not context >> k & 1)
            step = self.keys.step(self._relations[index], frozenset((self.keys.source, *behind)))
            made.append(self._steps.setdefault(step, len(self._steps)))
        self._step_of_visit = np.append(self._step_of_visit, np.array(made, np.int64))
        if len(self._steps) > len(self._program.steps):
            self._program = self.keys.program_of_steps(tuple(self._steps))

    def _count(self, leaf: int, counts: Counts, metrics: Metrics) -> None:
        """Add what the tuples of a leaf did, and the routing calls."""
        version, all_ahead = self.router.version, sum(1 << k for k in self._visits.operators)
        rows = 0
        for number in np.flatnonzero(counts.evaluated).tolist():
            context, index = self._visits.known[number]
            evaluated = int(counts.evaluated[number])
            visits = metrics.visits[version, leaf, index]
            visits.evaluations += evaluated
            visits.passed += int(counts.passed[number])
            visits.comparisons += int(counts.looked[number])
            visits.seconds += float(counts.seconds[number])
            metrics.routing[index, self.router.went_by(leaf, index)] += evaluated
            rows += evaluated if context == all_ahead else 0
        if rows:
            metrics.rusters += 1
            metrics.leaf_rows[version, leaf] += rows
