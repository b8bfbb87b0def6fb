"""What an Eddy knows of its operators: the matrices W and S of CBR § 4.1, and costs.

::

    W   overall     op1  .30    op2  .40    op3  .60          selectivity, one for each operator
    S   by content              op2  .10 .20 .90 ...          one for each partition of its
                                     (attribute A)            classifier attribute, where it has one

Both follow the tuples by the paper's rule, s <- 0.95 s + 0.05 outcome. Of n tuples that arrive
together only how many passed is known, not in which order: s <- a^n s + (1 - a^n) passed / n, which
is the same rule for one tuple, and for more what it gives if outcomes are spread evenly.

Beyond the paper both may be kept by visit context as well (`visit_context.py`): apart for tuples
that have been through the same operators.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.classify.partitions import Attributes, Partitions
from querymesh.fabric.routers.visit_context import (
    MOST_CONTEXTS,
    ByContext,
    VisitContext,
    by_context_from_json,
)

UNKNOWN = 0.5
"""The selectivity of an operator that has seen no tuple yet."""

LEAST_COST_US = 1e-3

LEAST_SHARE = 0.05
"""Of what a visit took, at least this was for its tuples."""

NO_CONTEXTS: Mapping[str, Any] = {"seen": 0, "held": {}}
"""The contexts of a state that was stored before there were any."""

MEMORY_TUPLES, LEAST_CHANGE = 39, 0.1
"""Tuples that an estimate is the mean of, about; and the least change that counts as one."""

RESIZED = 1.05
"""A state that has grown or shrunk by a smaller factor counts as large as it was."""

COST_MEMORY = 5_000
"""Tuples whose time has a say in a cost: a first chunk, slow as it is, is soon forgotten."""


@dataclass
class Pair:
    """An operator's classifier attribute, CA, with its column of S; `gain` is why it was chosen.

    `count` is d: into how many partitions the attribute is cut.
    """

    attributes: Attributes
    count: int
    selectivity: Floats
    gain: float
    on_trial: bool = False
    by_context: ByContext[Floats] = field(default_factory=ByContext)
    """The column by visit context."""

    @property
    def cut_by(self) -> tuple[Attributes, int]:
        """The attributes, and into how many partitions they are cut."""
        return self.attributes, self.count

    def move(self, partitions: Partitions, before: Partitions) -> None:
        """Translate the column to partitions whose ranges have changed since `before`."""

        def moved(column: Floats) -> Floats:
            return partitions.moved(before, self.attributes, column)

        self.selectivity = moved(self.selectivity)
        self.by_context.change(moved)

    def to_json(self) -> dict[str, Any]:
        """As plain numbers and texts."""
        return {
            "attributes": list(self.attributes),
            "count": self.count,
            "selectivity": self.selectivity.tolist(),
            "gain": self.gain,
            "on_trial": self.on_trial,
            "by_place": self.by_context.to_json(),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Pair:
        """Back from `to_json`."""
        return cls(
            tuple(stored["attributes"]),
            int(stored["count"]),
            _column(stored["selectivity"]),
            float(stored["gain"]),
            bool(stored["on_trial"]),
            by_context_from_json(stored.get("by_place", NO_CONTEXTS), _column),
        )


@dataclass
class Estimates:
    """Selectivities and costs by operator index, from 1 on; `seen` are the tuples each has seen.

    `visit_us` is what a visit takes however few tuples it has: it is no tuple's cost.
    `keeps_contexts` is whether selectivities are kept by visit context as well.
    """

    memory: float
    overall: dict[int, float] = field(default_factory=dict)
    cost_us: dict[int, float] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    pairs: dict[int, Pair] = field(default_factory=dict)
    declared_us: dict[int, float] = field(default_factory=dict)
    """Costs that the user has given, and that are not measured."""
    visit_us: float = 0.0
    keeps_contexts: bool = False
    by_context: dict[int, ByContext[float]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    """The rows of a probed state, when what its probe passes was last set by them."""
    multiplying: frozenset[int] = frozenset()
    """Probes and look-ups, of which a tuple may have many matches."""
    _marks: dict[int, dict[VisitContext, float]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """By operator and context, the selectivity there when the other contexts were last trusted."""

    def selectivity(self, index: int) -> float:
        """W[l]: how many tuples an operator passes for each that arrives, at any place."""
        return self.overall.get(index, UNKNOWN)

    def selectivity_at(self, index: int, context: VisitContext) -> float:
        """W[l], or the selectivity in a visit context where these are kept.

        In a context that is not known an operator is hoped to do better than overall, and so tried
        once: what it does to tuples that others have let through says little about all tuples. Not
        so a probe of a state, which may multiply them.
        """
        overall = self.overall.get(index, UNKNOWN)
        contexts = self.by_context.get(index) if self.keeps_contexts else None
        if contexts is None:
            return overall
        known = contexts.at(context, overall)
        if known is not None:
            return known
        return overall if index in self.sizes else min(overall, UNKNOWN)

    def column_at(self, index: int, context: VisitContext) -> Floats | None:
        """An operator's column of S, of a probe in a visit context; None without a pair.

        Not of filters: what they do to a partition is learned sooner from all contexts together,
        and Eddies are for data that change. How much a probe finds depends on what was joined
        before.
        """
        if (pair := self.pairs.get(index)) is None:
            return None
        known = pair.by_context.at(context, pair.selectivity) if index in self.sizes else None
        return pair.selectivity if known is None else known

    def cost(self, index: int) -> float:
        """Microseconds a tuple; that of the others on average where it is not known yet."""
        known = self.declared_us.get(index, self.cost_us.get(index))
        if known is None:
            known = sum(self.cost_us.values()) / len(self.cost_us) if self.cost_us else 1.0
        return max(known, LEAST_COST_US)

    def add(
        self, index: int, context: VisitContext, arrived: int, passed: int, seconds: float
    ) -> None:
        """Update W and the cost by the tuples of one visit to an operator."""
        visit_us = 1e6 * seconds
        spent_us = max(visit_us - self.visit_us, LEAST_SHARE * visit_us)
        self.add_mixed(index, [(context, arrived, passed)], spent_us)

    def add_mixed(
        self, index: int, visits: Sequence[tuple[VisitContext, int, int]], spent_us: float
    ) -> None:
        """Update W and the cost by tuples that came to an operator in several contexts, mixed with
        each other: the context, and how many arrived and passed. The time is that of the tuples."""
        arrived = passed = 0
        for context, came, out in visits:
            if came and self.keeps_contexts:
                self._add_at(index, context, came, out)
            arrived, passed = arrived + came, passed + out
        if arrived == 0:
            return
        before = self.overall.get(index, UNKNOWN)
        self.overall[index] = updated(before, arrived, passed, self.memory)
        self.add_cost(index, arrived, spent_us)

    def add_cost(self, index: int, arrived: int, spent_us: float) -> None:
        """Update the cost by tuples that took so long, and count them."""
        # Costs hardly change with the data: a longer memory, in which a short run weighs little.
        weight = arrived / (arrived + min(self.seen.get(index, 0), COST_MEMORY))
        spent_us /= arrived
        self.cost_us[index] = self.cost_us.get(index, 0.0) * (1 - weight) + spent_us * weight
        self.seen[index] = self.seen.get(index, 0) + arrived

    def _add_at(self, index: int, context: VisitContext, arrived: int, passed: int) -> None:
        """Update a context; where its selectivity changes clearly, all others are forgotten.

        No tuples came by them, or they would have changed as well: the operator is tried there
        once more. Not so one that multiplies: a few tuples with many matches look like a change.
        """
        contexts = self.by_context.setdefault(index, ByContext())
        here = updated(self.selectivity_at(index, context), arrived, passed, self.memory)
        before, _ = contexts.numbers.get(context, (here, 0))
        marks = self._marks.setdefault(index, {})
        if len(marks) > MOST_CONTEXTS:
            marks.clear()
        changed = _clearly_other(marks.setdefault(context, before), here, arrived)
        if changed and index not in self.multiplying:
            contexts.keep_only(context)
            self._marks[index] = {context: here}
        contexts.put(context, here, arrived)

    def add_content(self, index: int, context: VisitContext, arrived: Ints, passed: Ints) -> None:
        """Update S by tuples that have gone through an operator, counted by partition."""
        pair, column = self.pairs.get(index), self.column_at(index, context)
        if pair is None or column is None:
            return
        kept = self.memory**arrived
        fresh = passed / np.maximum(arrived, 1) * (1 - kept)  # nothing where none arrived
        if self.keeps_contexts and index in self.sizes:
            pair.by_context.put(context, column * kept + fresh, int(arrived.sum()))
        pair.selectivity[:] = pair.selectivity * kept + fresh

    def resize(self, index: int, rows: int) -> None:
        """A probed state has so many rows now: scale its probe's fan-out in proportion.

        Else a window that fills would look better in each context where it was long not probed. An
        empty state says nothing of what its probe will find.
        """
        if not rows:
            return
        before = self.sizes.setdefault(index, rows)
        if max(rows, before) < RESIZED * min(rows, before):
            return
        factor = rows / before
        self.sizes[index] = rows
        if index in self.overall:
            self.overall[index] *= factor
        if index in self.by_context:
            self.by_context[index].change(lambda passes: passes * factor)
        if (pair := self.pairs.get(index)) is not None:
            pair.selectivity *= factor
            pair.by_context.change(lambda column: column * factor)

    def column_of(self, index: int, arrived: Ints, passed: Floats) -> Floats:
        """A column of S from a profile: Out / In, and W where no sampled tuple was."""
        known = passed / np.maximum(arrived, 1)
        return np.where(arrived > 0, known, self.selectivity(index)).astype(np.float64)

    def take_over(self, other: Estimates) -> None:
        """Replace all that was learned by what another has learned."""
        self._marks.clear()
        for name in ("overall", "cost_us", "seen", "pairs", "by_context", "sizes"):
            mine = getattr(self, name)
            mine.clear()
            mine.update(getattr(other, name))

    def to_json(self) -> dict[str, Any]:
        """As plain numbers and texts."""
        return {
            "overall": {str(k): v for k, v in self.overall.items()},
            "cost_us": {str(k): v for k, v in self.cost_us.items()},
            "seen": {str(k): v for k, v in self.seen.items()},
            "pairs": {str(k): pair.to_json() for k, pair in self.pairs.items()},
            "by_place": {str(k): contexts.to_json() for k, contexts in self.by_context.items()},
            "sizes": {str(k): rows for k, rows in self.sizes.items()},
        }

    @classmethod
    def from_json(cls, memory: float, stored: Mapping[str, Any]) -> Estimates:
        """Back from `to_json`."""
        return cls(
            memory,
            {int(k): float(v) for k, v in stored["overall"].items()},
            {int(k): float(v) for k, v in stored["cost_us"].items()},
            {int(k): int(v) for k, v in stored["seen"].items()},
            {int(k): Pair.from_json(pair) for k, pair in stored["pairs"].items()},
            by_context={
                int(k): by_context_from_json(contexts, float)
                for k, contexts in stored.get("by_place", {}).items()
            },
            sizes={int(k): int(rows) for k, rows in stored.get("sizes", {}).items()},
        )


def _column(stored: Sequence[float]) -> Floats:
    return np.array(stored, np.float64)


def _clearly_other(mark: float, here: float, arrived: int) -> bool:
    """Whether a selectivity has left its mark by more than five standard errors, and a tenth."""
    error = math.sqrt(0.25 / max(arrived, MEMORY_TUPLES))  # no more, of what passes or is dropped
    return abs(here - mark) > max(LEAST_CHANGE, 5 * error)


def updated(before: float, arrived: int, passed: float, memory: float) -> float:
    """The paper's update for tuples that arrived together (CBR § 4.1, note 3).

    >>> [round(updated(0.40, 1, passed, 0.95), 6) for passed in (1, 0)]
    [0.43, 0.38]
    """
    kept = memory**arrived
    return before * kept + passed / arrived * (1 - kept)
