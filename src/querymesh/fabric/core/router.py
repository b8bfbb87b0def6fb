"""Routers: who decides the route. `single` and `mesh` decide before a ruster sets out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.classify.tree import leaves_of
from querymesh.fabric.core.leaf_numbers import LeafNumbers
from querymesh.fabric.core.lottery import Lottery, Seed, WheelKey
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.token import RouteToken, token_of
from querymesh.mesh.mesh import Mesh
from querymesh.stats.profile import Route


class VisitListener:
    """Is told what becomes of a ruster that was sent to an operator; this one ignores it.

    `went_by` is what the decision was made by, `calls` how many routing calls it counts for.
    """

    went_by = ""
    calls = 0

    def out(self, piece: Ruster) -> None:
        """A piece came out of the operator."""

    def done(self, evaluated: int, passed: int, seconds: float) -> None:
        """The visit is over: how many tuples it was run on, how many came out, and its time."""


class Router(Protocol):
    """Splits a window into rusters, each with its route token, and resolves what it left open."""

    version: int = 0
    window: int | None = None
    """Tuples classified together; None takes a batch as it comes."""
    decides: bool = False
    """Whether it is asked before every operator, also where the token leaves no choice."""
    by_neighbours: bool = False
    """Whether tuples follow those that arrived before them."""

    def rusters(self, window: ClassificationWindow) -> list[Ruster]:
        """Every row of the window in exactly one ruster."""

    def leaves(self, window: ClassificationWindow) -> Ints | None:
        """The leaf of each row, where its route is known from the start; None where it is not."""
        return None

    @property
    def tokens(self) -> Sequence[RouteToken]:
        """The route of each leaf, where routes are known from the start."""
        return ()

    def choose(self, ruster: Ruster) -> list[Ruster]:
        """The ruster, in parts if need be, each with its next operator on top of its token."""
        return [ruster]

    def hear(self, before: Ruster, chosen: Ruster) -> VisitListener:
        """The listener of a visit: of the operator chosen for a ruster, or for a part of it."""
        return VisitListener()

    def saw(self, metrics: Metrics) -> None:
        """A window of a filter is through; `metrics` are of this task so far."""
        return

    def routes(self) -> list[Route]:
        """The routes that most tuples take, as far as is known: join state is laid out for them."""
        return []


class MeshRouter(Router):
    """The online classifier of QM § 5.1: a window's tuples by leaf, each leaf with its route.

    Leaves that share a route stay apart: what they do is counted apart. A mesh of one route has no
    tests to make: its window is one ruster, and this is the `single` policy. Rusters smaller than
    the mesh's `least_ruster` travel with the window's largest, and where the mesh classifies one of
    several tuples the others follow it: any route gives the same result.
    """

    def __init__(self, mesh: Mesh, version: int = 0, seed: Seed = 0) -> None:
        self.mesh = mesh
        self.version = version
        self.window: int | None = mesh.window
        self.by_neighbours = mesh.classify_every > 1
        self._seed = seed
        self._tokens = [token_of(steps) for steps in mesh.leaf_choices]

    @cached_property
    def lottery(self) -> Lottery:
        """What draws the next operator where the mesh leaves it open."""
        return Lottery([operator.cost_us for operator in self.mesh.operators], self._seed)

    @cached_property
    def _leaf_numbers(self) -> LeafNumbers:
        return LeafNumbers(self.mesh.tree)

    @property
    def tokens(self) -> Sequence[RouteToken]:
        """The route of each leaf of the classifier."""
        return self._tokens

    def leaves(self, window: ClassificationWindow) -> Ints | None:
        """The leaf of each row; None where a lottery draws the next operator."""
        if self.mesh.uncertain:
            return None
        if len(self._tokens) == 1:
            return np.zeros(window.rows, np.int64)
        return self._classified(window)

    def _classified(self, window: ClassificationWindow) -> Ints:
        """The leaf of each row: its own or, of so many in a row, that of the first (QM § 5.1)."""
        every = self.mesh.classify_every
        if every == 1:
            return self._leaf_numbers.of(window.batch.column, window.rows)
        first = pa.array(np.arange(0, window.rows, every))
        told = self._leaf_numbers.of(lambda name: window.batch.column(name).take(first), len(first))
        return np.repeat(told, every)[: window.rows]

    def rusters(self, window: ClassificationWindow) -> list[Ruster]:
        """One ruster for each leaf that any row reaches."""
        if len(self._tokens) == 1:
            return [Ruster(window, np.arange(window.rows), self._tokens[0])]
        if self.mesh.classify_every == 1:
            reached = leaves_of(self.mesh.tree, window.batch.column, window.rows)
        else:
            told = self._classified(window)
            reached = [np.flatnonzero(told == leaf) for leaf in range(len(self._tokens))]
        made = [
            Ruster(window, rows, token, leaf)
            for leaf, (rows, token) in enumerate(zip(reached, self._tokens, strict=True))
            if len(rows)
        ]
        return _least(made, self.mesh.least_ruster)

    def choose(self, ruster: Ruster) -> list[Ruster]:
        """Draw the next operator among those whose predecessors are done."""
        choices = ruster.token.choices
        ready = [k for k in choices if not self.mesh.operators[k - 1].after & set(choices)]
        drawn = self.lottery.draw(_wheel_key(ruster), ready)
        return [replace(ruster, token=ruster.token.choose(drawn))]

    def hear(self, before: Ruster, chosen: Ruster) -> VisitListener:
        """A listener that adjusts the wheel the operator was drawn from."""
        return _WheelListener(self.lottery, _wheel_key(before), chosen.token.top)

    def routes(self) -> list[Route]:
        """The route of each leaf of the classifier."""
        return list(self.mesh.leaf_routes)


class _WheelListener(VisitListener):
    def __init__(self, lottery: Lottery, key: WheelKey, index: int) -> None:
        self._lottery, self._key, self._index = lottery, key, index

    def done(self, evaluated: int, passed: int, seconds: float) -> None:
        if evaluated:
            self._lottery.learn(self._key, self._index, evaluated, passed)


def _wheel_key(ruster: Ruster) -> WheelKey:
    """The wheel of a choice: the leaf, what there is to choose from, and the queries served."""
    return ruster.leaf, frozenset(ruster.token.choices), ruster.token.serves


def _least(rusters: list[Ruster], least: int) -> list[Ruster]:
    small = [ruster for ruster in rusters if len(ruster) < least]
    if not small or len(rusters) == 1:
        return rusters
    largest = max(rusters, key=len)
    rest = [ruster for ruster in rusters if len(ruster) >= least and ruster is not largest]
    joined = [largest, *(ruster for ruster in small if ruster is not largest)]
    rows = np.sort(np.concatenate([ruster.rows for ruster in joined]))
    return [*rest, replace(largest, rows=rows)]
