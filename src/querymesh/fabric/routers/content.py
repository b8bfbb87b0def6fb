"""Content-based routing (CBR): the Eddy that looks at the tuple before it decides (CBR § 4).

A small share of the tuples profiles one operator after another; what they say about which attribute
tells an operator's selectivity is `content_learning`'s. Every other tuple goes to the operator with
the least expected selectivity *for its content*::

    op1   W    .30                    a tuple with A in partition 2:   op1 .30   op2 .20   op3 .60
    op2   S    A: .10 .20 .90                                          goes to op2
    op3   W    .60
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.classify.partitions import Partitions
from querymesh.fabric.core.lottery import Seed
from querymesh.fabric.core.router import VisitListener
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.fabric.routers.content_learning import Learning
from querymesh.fabric.routers.content_sample import asked_of
from querymesh.fabric.routers.eddy import (
    NO_PAIR,
    PAIR,
    PLAIN,
    PROFILED,
    PROFILING,
    EddyListener,
    EddyRouter,
    no_window,
)
from querymesh.fabric.routers.routing import Routing
from querymesh.fabric.routers.tables.alone import Alone
from querymesh.fabric.routers.tables.content_table import (
    MOST_CLASSES,
    classes_there_are,
    content_visited,
    likely_classes,
    numbers_of,
    visits_until,
)
from querymesh.fabric.routers.tables.eddy_table import Asking, Chunk, Classes, CutBy, Table
from querymesh.fabric.routers.tables.one_by_one import ContentByTuple
from querymesh.index.probe.program import Counts
from querymesh.query.model import Operator

BESIDES = 2.0
"""A ruster of its own is also decided on and listened to: so many times what moving it takes."""

Tabled = tuple[RouteToken, tuple[tuple[CutBy, int], ...], tuple[int, ...], int]


class ContentRouter(ContentByTuple, EddyRouter):
    """Content-Learns: routes by the classifier attributes it has found, and goes on looking.

    `attributes` are the source's columns that may be one. Leaf 0 are tuples that go where the
    estimates send them; leaf 1 and up those that profile the first, second, … operator under way.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        routing: Routing,
        attributes: Sequence[str],
        own: frozenset[int] = frozenset(),
        seed: Seed = 0,
        visit_us: float = 0.0,
    ) -> None:
        super().__init__(operators, replace(routing, choice="least"), own, seed, visit_us)
        self.partitions = Partitions()
        self.learning = Learning(
            self._profitable(), attributes, routing, self._estimates, self.partitions, self._merit
        )
        fixed = set(self.operators) - set(self.learning.operators)
        self.learning.pruned.update(dict.fromkeys(sorted(fixed), "has no choice of place"))
        self._targets: list[int] = []
        self._coded_of: Callable[[], ClassificationWindow | None] = no_window
        self._coded: dict[CutBy, Ints] = {}
        self._tabled_by: Tabled | tuple[()] = ()
        self._class_numbers: Ints = np.zeros(0, np.int64)
        """By number among all classes the one in the table, -1 if nobody was of that class."""
        self._apart_of: Table | None = None
        self._apart: Ints = np.zeros(0, np.int64)

    def _profitable(self) -> list[int]:
        """The operators to profile: where it is asked to prune, those with a choice of place."""
        if not self.routing.prune:
            return self.operators
        entries = [entry for entry in self._token.stack if not isinstance(entry, int)]
        return sorted(
            k
            for entry in entries
            for k in entry
            if any(k not in self._after[j] and j not in self._after[k] for j in entry if j != k)
        )

    def rusters(self, window: ClassificationWindow) -> list[Ruster]:
        """Most tuples in one ruster, and those that profile an operator in one each."""
        slots = self.begin_chunk(window.rows)
        leaves = range(PLAIN, PROFILED + len(self._targets))
        made = [Ruster(window, np.flatnonzero(slots == leaf), self._token, leaf) for leaf in leaves]
        return [ruster for ruster in made if len(ruster)] or made[:1]

    def begin_chunk(self, rows: int) -> Ints:
        """The leaf of each tuple: which of the operators being profiled it profiles, if any."""
        if rows:
            if self.learning.turns:
                self.learn_counted()
            self.learning.advance(rows)
        self._targets = self.learning.profiled
        return self._slots(rows)

    def _slots(self, rows: int) -> Ints:
        """For each tuple its leaf: which of the targets it profiles, if any."""
        slots = np.zeros(rows, np.int64)
        if not self._targets:
            return slots
        draws = self._rng.random(1 if self.routing.one_route_per_chunk else rows)
        drawn = np.floor(draws / self.learning.probability).astype(np.int64)
        slots[:] = np.where(drawn < len(self._targets), PROFILED + drawn, PLAIN)
        for number, target in enumerate(self._targets):
            profiling = np.flatnonzero(slots == PROFILED + number)
            if not self.routing.one_route_per_chunk:
                slots[profiling[self.learning.wanted(target) :]] = PLAIN
        return slots

    def choose(self, ruster: Ruster) -> list[Ruster]:
        """Send a ruster to the operator it profiles, else its tuples where their content says."""
        if self.routing.trial_by != "cost" or ruster.leaf != PLAIN:
            return super().choose(ruster)
        started = perf_counter()  # processor time is a call of the kernel, and may take longer
        parts = super().choose(ruster)
        self.learning.worked(1e6 * (perf_counter() - started))
        return parts

    def _codes_of(self, ruster: Ruster) -> Callable[[CutBy], Ints]:
        return lambda cut_by: self.codes(ruster.window, cut_by)[ruster.rows]

    def decide(self, asking: Asking, as_rusters: bool = True) -> tuple[list[int], int | Ints]:
        """As any Eddy, but that tuples which profile an operator go there as soon as they can."""
        target = self._target(asking)
        return super().decide(asking, as_rusters) if target is None else ([target], 0)

    def chunk(self, window: ClassificationWindow, leaves: Ints, own_done: bool) -> Chunk:
        """As any Eddy's; the time it takes is what routing costs."""
        started, learning_s = thread_time(), self.learning_seconds
        chunk = super().chunk(window, leaves, own_done)
        learned_s = self.learning_seconds - learning_s
        self.learning.worked(1e6 * (thread_time() - started - learned_s))
        return chunk

    def _by_class(self, window: ClassificationWindow, leaves: Ints, token: RouteToken) -> Chunk:
        """Tuples by the partitions of all pairs in use; those that profile are alone."""
        pairs = self._estimates.pairs.values()
        sizes = {pair.cut_by: len(pair.selectivity) for pair in pairs}
        codes = partial(self.codes, window)
        alone = np.flatnonzero(leaves)
        if sizes and self.routing.one_route_per_chunk:
            each = Classes(leaves, {cut_by: codes(cut_by) for cut_by in sizes})
            table, numbers = self._decided(window, token, each), np.arange(len(leaves))
        elif prod(sizes.values()) > MOST_CLASSES:
            there_are, numbers = classes_there_are(sizes, leaves, codes)
            table = self._decided(window, token, there_are)
        else:
            leaf_count = PROFILED + len(self._targets)
            # Tuples may have set out with more targets than there are by now.
            leaf_count = max(leaf_count, int(leaves.max(initial=0)) + 1)
            by = (token, tuple(sizes.items()), tuple(self._targets), leaf_count)
            every = numbers_of(sizes, leaves, codes)
            fits = by == self._tabled_by or (leaf_count == 1 and by[:2] == self._tabled_by[:2])
            if not fits or self._class_numbers[every].min(initial=0) < 0:
                self._table = None
            classes = partial(self._classes, sizes, every, by)
            table = self._lasting(window, token, len(leaves), classes)
            numbers = self._class_numbers[every]
        if not len(alone):
            return Chunk(table, numbers, None)
        visits = self._visits_until(table)[numbers[alone]]
        return Chunk(table, numbers, Alone(alone, visits))

    def _visits_until(self, table: Table) -> Ints:
        """By class of a table the visits that are counted apart, worked out once."""
        if self._apart_of is not table:
            self._apart_of = table
            self._apart = visits_until(table, self._targets, PROFILED)
        return self._apart

    def _classes(self, sizes: Mapping[CutBy, int], every: Ints, by: Tabled) -> Classes:
        """The classes that a table is made for: those that many tuples have, or all of them."""
        classes, self._class_numbers = likely_classes(sizes, by[-1], every)
        self._tabled_by = by
        return classes

    @property
    def chunk_rows(self) -> int:
        """The tuples of a chunk that goes by a table; as few as asked for while something is being
        found out: a turn takes some chunks."""
        return super().chunk_rows if self.learning.rests else self.routing.chunk

    def _leaf_at(self, leaf: int, token: RouteToken) -> int:
        """Tuples that have profiled what they should are as all others."""
        profiled = self._profiled(leaf)
        return leaf if profiled is not None and token.context >> profiled & 1 else PLAIN

    def _target(self, asking: Asking) -> int | None:
        """Where tuples that profile an operator have to go: to it, or to what must come before.

        None if it has been there, or cannot get there yet.
        """
        profiled = self._profiled(asking.leaf)
        choices = asking.token.choices or (asking.token.top,)
        if profiled is None or profiled not in choices:
            return None
        before = self._after[profiled] & set(choices)
        ready = [k for k in sorted(before) if not self._after[k] & set(choices)]
        return ready[0] if ready else profiled

    def _profiled(self, leaf: int) -> int | None:
        slot = leaf - PROFILED
        return self._targets[slot] if 0 <= slot < len(self._targets) else None

    def _best(self, asking: Asking, ready: list[int], as_rusters: bool) -> int | Ints:
        """For each tuple the operator that is expected to drop most, by its content."""
        pairs = self.estimates.pairs
        if not any(k in pairs for k in ready):
            return super()._best(asking, ready, as_rusters)
        if self.routing.one_route_per_chunk:
            means = [float(np.mean(self._expected(asking, k))) for k in ready]
            merits_of_all = [self._merit(mean, k) for mean, k in zip(means, ready, strict=True)]
            return merits_of_all.index(max(merits_of_all))
        merits = np.empty((len(ready), asking.rows))
        for context, k in enumerate(ready):
            merits[context] = self._merit(self._expected(asking, k), k)
        chosen: Ints = np.argmax(merits, axis=0)
        if as_rusters and self.routing.split_if_cheaper and self.routing.by_cost:
            chosen = self._worth_it(ready, merits, chosen)
        return chosen

    def _worth_it(self, ready: list[int], merits: Floats, chosen: Ints) -> Ints:
        """The chosen operators; the common one for tuples that save less than a ruster takes.

        A tuple that goes to k before j, and not the other way round, saves c_j · c_k · (m_k - m_j)
        with costs c and merits m: what the first drops, the second need not look at.
        """
        common = int(np.argmax(merits.sum(axis=1)))
        costs = np.array([self.estimates.cost(k) for k in ready])
        better = merits[chosen, np.arange(len(chosen))] - merits[common]
        saved_us = np.bincount(chosen, better * costs[chosen] * costs[common], minlength=len(ready))
        price_us = self.estimates.visit_us + BESIDES * calibrate().ruster_us
        return np.where(saved_us[chosen] < price_us, common, chosen)

    def _expected(self, asking: Asking, index: int) -> Floats:
        """The selectivity to expect of each tuple: S by its partition, else W."""
        context = asking.token.context
        column = self.estimates.column_at(index, context)
        if column is None:
            return np.asarray(self.estimates.selectivity_at(index, context))
        return column[asking.codes(self.estimates.pairs[index].cut_by)]

    def codes(self, window: ClassificationWindow, cut_by: CutBy) -> Ints:
        """The partitions of a window's tuples; computed once for each attribute."""
        if self._coded_of() is not window:
            self._coded_of = weakref.ref(window)
            self._coded = {}
        if cut_by not in self._coded:
            self._coded[cut_by] = self.partitions.codes(*cut_by, window.batch.column)
        return self._coded[cut_by]

    def went_by(self, leaf: int, index: int) -> str:
        """What a routing call went by: profiling, or the operator's classifier attribute."""
        if self._profiled(leaf) == index:
            return PROFILING
        pair = self._estimates.pairs.get(index)
        return NO_PAIR if pair is None else f"{PAIR} {' & '.join(pair.attributes)}"

    def hear(self, before: Ruster, chosen: Ruster) -> VisitListener:
        """A listener that also counts which tuples came out."""
        return _ContentListener(self, chosen)

    def learn(self, chosen: Ruster, passed: int, seconds: float) -> None:
        """Update W, and count the visit."""
        super().learn(chosen, passed, seconds)
        if chosen.leaf == PLAIN:
            index, rows = chosen.token.top, len(chosen)
            if chosen.token.ahead == self._token.ahead:
                self.learning.set_out(rows)
            self.learning.visited(index, rows)

    def count(self, chunk: Chunk, counts: Counts) -> None:
        """Also count the tuples that set out and profile nothing."""
        super().count(chunk, counts)
        if chunk.table.visit_of.shape[0] == self._token.ahead:
            profiling = 0 if chunk.alone is None else len(chunk.alone.rows)
            self.learning.set_out(len(chunk.of_tuple) - profiling)

    def _learn_from(self, table: Table, counts: Counts) -> None:
        """Update W and S, and count the visits of plain tuples."""
        super()._learn_from(table, counts)
        by_visit = table.by_visit(counts.evaluated * (table.leaf_of_state == PLAIN))
        for (_, index), rows in zip(table.visits, by_visit, strict=True):
            self.learning.visited(index, int(rows))
        for index, pair in self._estimates.pairs.items():
            if pair.cut_by in table.classes.codes:
                size = len(pair.selectivity)
                for seen in content_visited(table, counts, index, pair.cut_by, size):
                    self._estimates.add_content(index, *seen)

    def take_sample(
        self, window: ClassificationWindow, chunk: Chunk, reached: Ints, outcomes: Floats
    ) -> None:
        """Add tuples that profile an operator to its sample."""
        assert chunk.alone is not None
        rows = chunk.alone.rows[reached]
        leaves = chunk.table.classes.leaves[chunk.of_tuple[rows]]
        order = np.argsort(leaves, kind="stable")
        asked = asked_of(window.batch, self.learning.attributes).take(rows[order])
        ends = np.cumsum(np.bincount(leaves, minlength=PROFILED + len(self._targets)))
        for slot, index in enumerate(self._targets):
            first, end = ends[PROFILED + slot - 1], ends[PROFILED + slot]
            if first < end:
                some = asked.slice(first, end - first)
                self.learning.sampled(index, some, outcomes[order[first:end]])

    def to_json(self) -> dict[str, Any]:
        """All that was learned, as plain numbers and texts."""
        self.learn_counted()
        ranges = {name: list(ends) for name, ends in self.partitions.ranges.items()}
        return {**super().to_json(), "ranges": ranges, "learning": self.learning.to_json()}

    def resume(self, stored: Mapping[str, Any]) -> None:
        """Go on from what was learned elsewhere, a sample under way included."""
        super().resume(stored)
        self.partitions.ranges.clear()
        self.partitions.ranges.update({n: (e[0], e[1]) for n, e in stored["ranges"].items()})
        self.learning.resume(stored["learning"])


class _ContentListener(EddyListener):
    """Counts what came out by partition, and for a profiling tuple one by one."""

    def __init__(self, router: ContentRouter, chosen: Ruster) -> None:
        super().__init__(router, chosen)
        self._content = router
        self._pair = router.estimates.pairs.get(chosen.token.top)
        self._codes = None if self._pair is None else router.codes(chosen.window, self._pair.cut_by)
        self._profiles = self.went_by == PROFILING
        self._out: Ints | None = None

    def out(self, piece: Ruster) -> None:
        """Count the tuples in a piece that came out."""
        if self._profiles:
            counts = np.bincount(piece.rows, minlength=piece.window.rows)
        elif self._codes is not None and self._pair is not None:
            size = len(self._pair.selectivity)
            counts = np.bincount(self._codes[piece.rows], minlength=size)
        else:
            return
        self._out = counts if self._out is None else self._out + counts

    def _came_out(self, size: int) -> Ints:
        return np.zeros(size, np.int64) if self._out is None else self._out

    def done(self, evaluated: int, passed: int, seconds: float) -> None:
        """Update S by what came out, or add a profiling tuple to the sample."""
        super().done(evaluated, passed, seconds)
        chosen, index = self._chosen, self._chosen.token.top
        window = chosen.window
        if self._profiles:
            arrived = np.bincount(chosen.rows, minlength=window.rows)
            rows = np.flatnonzero(arrived)
            outcome = self._came_out(window.rows)[rows] / arrived[rows]
            asked = asked_of(window.batch, self._content.learning.attributes)
            self._content.learning.sampled(index, asked.take(rows), outcome)
            if self._pair is not None and self._codes is not None:
                size = len(self._pair.selectivity)
                self._content.estimates.add_content(
                    index,
                    chosen.token.context,
                    np.bincount(self._codes[rows], minlength=size),
                    np.bincount(self._codes[rows], weights=outcome, minlength=size),
                )
        elif self._codes is not None and self._pair is not None:
            size = len(self._pair.selectivity)
            self._content.estimates.add_content(
                index,
                chosen.token.context,
                np.bincount(self._codes[chosen.rows], minlength=size),
                self._came_out(size),
            )
