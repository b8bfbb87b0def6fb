"""The Eddy as a router: before each operator, each tuple's next one is decided anew (CBR § 4.2).

A tuple's decision depends on which operators are behind it and, for `cbr`, on the partitions its
attributes fall into. Tuples that share these are decided together, and those that go to the same
operator travel as one ruster::

    chunk of 1,000 ──> choose ──> 700 to op2 ──> 90 pass ──> choose ──> 60 to op1, 30 to op3 ...
                              └─> 300 to op1 ──> 20 pass ──> choose ──> ...

Where operators are probes of windows, all decisions of a chunk are made as it sets out, as a table
(`eddy_table.py`), by which one compiled program takes its tuples along.

Estimates are updated as outcomes arrive; a chunk of one tuple is the paper's Eddy to the letter.
Routing calls are counted as the paper counts them, one for each tuple and decision; a chunk that
travels together is one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import thread_time
from typing import Any, TypeVar

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.fabric.core.lottery import Seed
from querymesh.fabric.core.router import Router, VisitListener
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.routers.estimates import Estimates
from querymesh.fabric.routers.routing import Routing
from querymesh.fabric.routers.tables.eddy_table import (
    Asking,
    Chunk,
    Classes,
    CutBy,
    Table,
    table_of,
)
from querymesh.fabric.routers.tables.one_by_one import ByTuple
from querymesh.index.probe.program import Counts
from querymesh.index.store.stem import Stem
from querymesh.query.model import Lookup, Meeting, Operator, Probe
from querymesh.stats.profile import Route

LEAST_SELECTIVITY = 0.01
"""In the lottery, an operator that passes nothing has the chance of one that passes this share."""

ROUTING_SHARE, MOST_GROWN = 0.05, 16
"""Deciding may take so much of what operators take, or chunks grow, to so many times as many tuples
at most."""

PLAIN, PROFILED = 0, 1
"""Leaves: tuples that go where the estimates send them, and those that profile an operator."""

Amount = TypeVar("Amount", float, Floats)

NO_PAIR, PAIR, PROFILING = "no classifier", "classifier", "profiling"
"""What a routing call went by."""


class EddyRouter(ByTuple, Router):
    """Source-based routing (SBR): all tuples are routed by the operators' overall selectivities.

    `own` are operators that must all come before the others: conditions on a join's own stream.
    `visit_us` is what one more ruster at an operator takes, however few its tuples.
    """

    decides = True

    def __init__(
        self,
        operators: Sequence[Operator],
        routing: Routing,
        own: frozenset[int] = frozenset(),
        seed: Seed = 0,
        visit_us: float = 0.0,
    ) -> None:
        self.routing = routing
        self.window = routing.chunk
        self._estimates = Estimates(
            routing.memory, visit_us=visit_us, keeps_contexts=routing.by_context
        )
        self._counted: tuple[Table, Counts] | None = None
        """What the tuples that went by the last table did, until it is learned from."""
        self.learning_seconds = 0.0
        self._draws: Floats = np.zeros(0)
        self._rng = np.random.default_rng(seed)
        # Meetings take no visit: the second of two probes sees to their condition.
        routed = {op.index: op for op in operators if not isinstance(op, Meeting)}
        self._after = {index: op.after & routed.keys() for index, op in routed.items()}
        self._probed = {k: op.relation for k, op in routed.items() if isinstance(op, Probe)}
        self._estimates.multiplying = frozenset(
            k for k, op in routed.items() if isinstance(op, Probe | Lookup)
        )
        self._sized: Callable[[], ClassificationWindow | None] = no_window
        self._table: Table | None = None
        self._tabled, self._tabled_at, self._table_lasts = 0, 0, 0
        self._grown_chunk = routing.chunk
        parts = (own & routed.keys(), routed.keys() - own)
        self._token = RouteToken(tuple(_entry(tuple(sorted(part))) for part in parts if part))

    @property
    def operators(self) -> list[int]:
        """The operators it routes to."""
        return sorted(self._after)

    @property
    def estimates(self) -> Estimates:
        """What is known of the operators, by all tuples so far."""
        if self._counted is not None:
            self.learn_counted()
        return self._estimates

    def rusters(self, window: ClassificationWindow) -> list[Ruster]:
        """All tuples as one ruster whose token leaves the whole order open."""
        return [Ruster(window, np.arange(window.rows), self._token, PLAIN)]

    def begin_chunk(self, rows: int) -> Ints:
        """Begin a chunk of so many tuples: the leaf of each."""
        return np.full(rows, PLAIN)

    def choose(self, ruster: Ruster) -> list[Ruster]:
        """The ruster in parts, by the operator that each tuple goes to next."""
        self._resize(ruster.window)
        asking = Asking(ruster.token, ruster.leaf, len(ruster), self._codes_of(ruster))
        return self._grouped(ruster, *self.decide(asking))

    def _codes_of(self, ruster: Ruster) -> Callable[[CutBy], Ints]:
        """The partitions of a ruster's tuples; nothing goes by content here."""
        return lambda _: ruster.rows

    def decide(self, asking: Asking, as_rusters: bool = True) -> tuple[list[int], int | Ints]:
        """The operators that may be next, and the number of that which all who ask, or each of
        them, go to; `as_rusters` tells whether it costs more if they go apart."""
        choices = asking.token.choices or (asking.token.top,)
        ready = [k for k in choices if not self._after[k].intersection(choices)]
        if len(ready) == 1:
            return ready, 0
        if self.routing.choice == "lottery":
            return ready, self._drawn(asking, ready)
        return ready, self._best(asking, ready, as_rusters)

    def chunk(self, window: ClassificationWindow, leaves: Ints, own_done: bool) -> Chunk:
        """All that is decided for tuples with these leaves, from the beginning or from where the
        conditions on their stream are behind them.

        Parts of a chunk, as small steps make them, go by one table until it has been followed by as
        many tuples; at first it is made anew whenever there are twice as many.
        """
        token = RouteToken(self._token.stack[-1:]) if own_done else self._token
        if self.routing.choice == "lottery" and not self.routing.one_route_per_chunk:
            return self._by_draws(window, len(leaves), token)
        return self._by_class(window, leaves, token)

    def _by_draws(self, window: ClassificationWindow, rows: int, token: RouteToken) -> Chunk:
        """Each tuple is a class: its way is drawn for it alone. Those of tuples to come are drawn
        along with it, as long as they are decided on by the same estimates."""

        def classes() -> Classes:
            return Classes(np.full(self._table_lasts, PLAIN))

        table = self._lasting(window, token, rows, classes)
        last = self._tabled - self._tabled_at
        drawn = table.some(np.arange(last - rows, last))
        return Chunk(drawn, np.arange(rows), None)

    def _by_class(self, window: ClassificationWindow, leaves: Ints, token: RouteToken) -> Chunk:
        """All tuples are of one class."""
        table = self._lasting(window, token, len(leaves), lambda: Classes(np.full(1, PLAIN)))
        return Chunk(table, np.zeros(len(leaves), np.int64), None)

    def _lasting(
        self,
        window: ClassificationWindow,
        token: RouteToken,
        rows: int,
        classes: Callable[[], Classes],
    ) -> Table:
        """The table that is followed, or another one if it is time."""
        followed = self._tabled + rows - self._tabled_at
        if self._table is None or followed > self._table_lasts:
            self._table_lasts = max(rows, min(self.chunk_rows, self._tabled))
            self._tabled_at = self._tabled
            self._table = self._decided(window, token, classes())
        self._tabled += rows
        return self._table

    def _decided(self, window: ClassificationWindow, token: RouteToken, classes: Classes) -> Table:
        self._resize(window)
        return table_of(token, classes, lambda each: self.decide(each, False), self._leaf_at)

    def _leaf_at(self, leaf: int, token: RouteToken) -> int:
        """The leaf by which tuples are decided on where only this is ahead of them."""
        return leaf

    def _resize(self, window: ClassificationWindow) -> None:
        """Scale what probes are expected to find by the size of the states they look at."""
        if not self.estimates.keeps_contexts or window is self._sized():
            return
        self._sized = weakref.ref(window)  # a router outlives its windows, and their states' files
        for index, relation in self._probed.items():
            if isinstance(state := window.tables.get(relation), Stem):
                self.estimates.resize(index, state.rows)

    def _best(self, asking: Asking, ready: list[int], as_rusters: bool) -> int | Ints:
        """The number of the operator that is best by the estimates."""
        context, estimates = asking.token.context, self.estimates
        passing = [estimates.selectivity_at(k, context) for k in ready]
        merits = [self._merit(each, k) for each, k in zip(passing, ready, strict=True)]
        return merits.index(max(merits))

    def _merit(self, selectivity: Amount, index: int) -> Amount:
        """What an operator drops, by its cost where costs count; negative where it multiplies."""
        dropped = 1.0 - selectivity
        return dropped / self._estimates.cost(index) if self.routing.by_cost else dropped

    def _drawn(self, asking: Asking, ready: list[int]) -> int | Ints:
        """Draw an operator for each tuple, or one for all, by chances inverse to selectivities."""
        context = asking.token.context
        passing = [self.estimates.selectivity_at(k, context) for k in ready]
        known = [max(share, LEAST_SELECTIVITY) for share in passing]
        costs = [self.estimates.cost(k) if self.routing.by_cost else 1.0 for k in ready]
        weights = 1.0 / np.array(known) / np.array(costs)
        chances = weights / weights.sum()
        draws = 1 if self.routing.one_route_per_chunk else asking.rows
        ends = np.cumsum(chances)[:-1]
        drawn: Ints = np.searchsorted(ends, self._rng.random(draws), "right")
        return int(drawn[0]) if self.routing.one_route_per_chunk else drawn

    def _grouped(self, ruster: Ruster, ready: list[int], chosen: int | Ints) -> list[Ruster]:
        """A ruster in parts, by the number in `ready` that was chosen for its tuples."""
        if isinstance(chosen, int):
            return [self._sent(ruster, ready[chosen])]
        first = int(chosen[0]) if len(chosen) else 0
        if (chosen == first).all():
            return [self._sent(ruster, ready[first])]
        return [
            self._sent(_part(ruster, np.flatnonzero(chosen == number)), ready[number])
            for number in np.unique(chosen).tolist()
        ]

    def _sent(self, ruster: Ruster, index: int) -> Ruster:
        if not ruster.token.choices:
            return ruster
        return replace(ruster, token=ruster.token.choose(index))

    def hear(self, before: Ruster, chosen: Ruster) -> VisitListener:
        """A listener that updates the estimates by what comes out."""
        return EddyListener(self, chosen)

    def went_by(self, leaf: int, index: int) -> str:
        """What the decision to send tuples of a leaf to an operator went by."""
        return NO_PAIR

    def learn(self, chosen: Ruster, passed: int, seconds: float) -> None:
        """Update the estimates by tuples that went through the operator on top of their token."""
        token = chosen.token
        self.estimates.add(token.top, token.context, len(chosen), passed, seconds)

    def count(self, chunk: Chunk, counts: Counts) -> None:
        """Add what the tuples of a chunk did, by state; it is learned from when the next decision
        is made, or when somebody asks what is known."""
        table = chunk.table
        if self._counted is None or self._counted[0] is not table:
            self.learn_counted()
            self._counted = table, counts
        else:
            self._counted[1].add(counts)

    def learn_counted(self) -> None:
        """Update the estimates by the tuples that were counted."""
        if self._counted is None:
            return
        started = thread_time()
        table, counts = self._counted
        self._counted = None
        self._learn_from(table, counts)
        self.learning_seconds += thread_time() - started

    def _learn_from(self, table: Table, counts: Counts) -> None:
        evaluated, passed, seconds = (
            table.by_visit(each) for each in (counts.evaluated, counts.passed, counts.seconds)
        )
        visits: dict[int, list[tuple[int, int, int]]] = {}
        spent_us: dict[int, float] = {}
        for number, (context, index) in enumerate(table.visits):
            visit = context, int(evaluated[number]), int(passed[number])
            visits.setdefault(index, []).append(visit)
            spent_us[index] = spent_us.get(index, 0.0) + 1e6 * seconds[number]
        for index, made in visits.items():
            self._estimates.add_mixed(index, made, spent_us[index])

    def take_sample(
        self, window: ClassificationWindow, chunk: Chunk, reached: Ints, outcomes: Floats
    ) -> None:
        """Take in what came of those tuples, by their places in `chunk.alone`, that reached the
        operator they profile; nothing is profiled here."""

    @property
    def chunk_rows(self) -> int:
        """The tuples of a chunk that goes by a table."""
        return self._grown_chunk

    def resize_chunks(self, routing_s: float, operators_s: float) -> None:
        """Let chunks that go by a table grow where deciding on one, and learning from it, took much
        of what its operators took, and shrink again; not where tuples are decided on one by one, or
        nothing goes by cost."""
        if not self.routing.by_cost or self.routing.one_route_per_chunk or self.routing.chunk == 1:
            return
        most = MOST_GROWN * self.routing.chunk
        if routing_s > ROUTING_SHARE * operators_s:
            self._grown_chunk = min(2 * self._grown_chunk, most)
        elif routing_s < ROUTING_SHARE / 4 * operators_s:
            self._grown_chunk = max(self._grown_chunk // 2, self.routing.chunk)

    def routes(self) -> list[Route]:
        """The route of tuples that go by no attribute."""
        route: list[int] = []
        token = self._token
        while token.ahead:
            choices = token.choices or (token.top,)
            ready = sorted(k for k in choices if not self._after[k] & set(choices))
            known = [self.estimates.selectivity_at(k, token.context) for k in ready]
            merits = [self._merit(s, k) for s, k in zip(known, ready, strict=True)]
            route.append(ready[merits.index(max(merits))])
            token = (token.choose(route[-1]) if token.choices else token).pop()
        return [tuple(route)]

    def to_json(self) -> dict[str, Any]:
        """All that was learned, as plain numbers and texts."""
        return {"estimates": self.estimates.to_json()}

    def resume(self, stored: Mapping[str, Any]) -> None:
        """Go on from what was learned elsewhere."""
        self.estimates.take_over(Estimates.from_json(self.routing.memory, stored["estimates"]))
        self._table = None


class EddyListener(VisitListener):
    """Tells the router what came of one visit."""

    def __init__(self, router: EddyRouter, chosen: Ruster) -> None:
        self.went_by = router.went_by(chosen.leaf, chosen.token.top)
        self.calls = 1 if router.routing.one_route_per_chunk else len(chosen)
        self._router = router
        self._chosen = chosen

    def done(self, evaluated: int, passed: int, seconds: float) -> None:
        """Let the router learn from the visit."""
        self._router.learn(self._chosen, passed, seconds)


def no_window() -> None:
    """A reference to no window: what a weak reference returns when its object is gone."""


def _entry(choice: tuple[int, ...]) -> int | tuple[int, ...]:
    return choice if len(choice) > 1 else choice[0]


def _part(ruster: Ruster, positions: Ints) -> Ruster:
    """Some of a ruster's tuples, with the token it has."""
    return replace(ruster.pick(positions), token=ruster.token)
