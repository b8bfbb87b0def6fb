"""What an Eddy does where a program decides on its tuples one by one (`by_tuple.py`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.fabric.core.ruster import ClassificationWindow
from querymesh.fabric.routers.content_learning import Learning
from querymesh.fabric.routers.content_sample import asked_of
from querymesh.fabric.routers.estimates import Estimates
from querymesh.fabric.routers.routing import Routing
from querymesh.fabric.routers.tables.by_tuple import (
    MOST_OPERATORS,
    AskedTuples,
    Ran,
    Visits,
    tables_for,
    take_over,
)
from querymesh.fabric.routers.tables.eddy_table import CutBy
from querymesh.index.kernels.travel import T_EVALUATED, T_PASSED, T_ROW, T_TARGET
from querymesh.index.probe.program import Counts, EddyTables


class ByTuple:
    """What any Eddy needs to decide within a compiled program, on each tuple by itself."""

    routing: Routing
    _after: Mapping[int, frozenset[int]]
    _estimates: Estimates
    _rng: np.random.Generator
    _draws: Floats

    @property
    def by_tuple(self) -> bool:
        """Whether a program can decide on its tuples one by one."""
        routing = self.routing
        one_by_one = routing.chunk == 1 and not routing.one_route_per_chunk
        return one_by_one and not routing.by_context and len(self._after) <= MOST_OPERATORS

    def may_follow(self, visits: Visits, places: int, place: int) -> bool:
        """Whether an operator may be next where these are ahead, all told by their places."""
        ahead = {k for at, k in enumerate(visits.operators) if places >> at & 1}
        return not self._after[visits.operators[place]] & ahead

    def begin_tuples(
        self, window: ClassificationWindow, visits: Visits
    ) -> tuple[AskedTuples, EddyTables]:
        """What a program may do with the first tuples of a window, and what it decides by."""
        asked = self._asked(window.rows)
        each = len(visits.operators) if asked.lottery else 1 if asked.wanted else 0
        if (fewer := each * asked.rows - len(self._draws)) > 0:
            self._draws = np.concatenate([self._draws, self._rng.random(fewer)])
        tables = tables_for(
            visits, self._after, self._estimates, asked, self._codes_in(window), self._draws
        )
        return asked, tables

    def _asked(self, rows: int) -> AskedTuples:
        lottery = self.routing.choice == "lottery"
        return AskedTuples(rows, rows + 1, {}, 1.0, lottery, self.routing.by_cost)

    def _codes_in(self, window: ClassificationWindow) -> Callable[[CutBy], Ints]:
        """The partitions of a window's tuples; nothing goes by content here."""
        return lambda _: np.arange(window.rows)

    def learn_tuples(
        self,
        window: ClassificationWindow,
        visits: Visits,
        tables: EddyTables,
        ran: Ran,
        by_leaf: Sequence[Counts],
        deciding_s: float,
    ) -> None:
        """Take over what a program has learned; counts are by leaf and visit."""
        self._draws = self._draws[ran.drawn :]
        arrived = np.sum([counts.evaluated for counts in by_leaf], axis=0)
        spent_us = 1e6 * np.sum([counts.seconds for counts in by_leaf], axis=0)
        for number in np.flatnonzero(arrived).tolist():
            _, index = visits.known[number]
            self._estimates.add_cost(index, int(arrived[number]), float(spent_us[number]))
        take_over(visits, self._estimates, tables)


class ContentByTuple(ByTuple):
    """The same of an Eddy that learns by content: it also takes samples and tries attributes."""

    learning: Learning
    _targets: list[int]

    def _asked(self, rows: int) -> AskedTuples:
        """As any Eddy's, until a sample, a trial or a rest is complete."""
        learning = self.learning
        learning.advance(0)
        self._targets = learning.profiled
        wanted = {k: learning.wanted(k) for k in self._targets}
        asked = super()._asked(min(rows, learning.rows_left))
        plain_rows = min(asked.plain_rows, learning.plain_rows_left)
        return replace(
            asked, plain_rows=plain_rows, wanted=wanted, probability=learning.probability
        )

    def _codes_in(self, window: ClassificationWindow) -> Callable[[CutBy], Ints]:
        return partial(self.codes, window)

    @abstractmethod
    def codes(self, window: ClassificationWindow, cut_by: CutBy) -> Ints:
        """The partitions of a window's tuples."""

    def learn_tuples(
        self,
        window: ClassificationWindow,
        visits: Visits,
        tables: EddyTables,
        ran: Ran,
        by_leaf: Sequence[Counts],
        deciding_s: float,
    ) -> None:
        """Also count plain tuples and their visits, and add the others to samples."""
        super().learn_tuples(window, visits, tables, ran, by_leaf, deciding_s)
        learning = self.learning
        learning.rows += ran.rows
        learning.set_out(ran.plain_rows)
        learning.worked(1e6 * deciding_s)
        plain = by_leaf[0].evaluated
        came = dict.fromkeys(visits.operators, 0)
        for number in np.flatnonzero(plain).tolist():
            came[visits.known[number][1]] += int(plain[number])
        for index, rows in came.items():
            learning.visited(index, rows)
        asked = asked_of(window.batch, learning.attributes)
        for number, index in enumerate(self._targets):
            notes = ran.notes[ran.notes[:, T_TARGET] == number]
            if len(notes):
                outcomes = notes[:, T_PASSED] / notes[:, T_EVALUATED]
                learning.sampled(index, asked.take(notes[:, T_ROW]), outcomes)
