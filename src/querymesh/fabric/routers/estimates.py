"""What an Eddy knows of its operators: the matrices W and S of CBR § 4.1, and costs.

::

    W   overall     op1  .30    op2  .40    op3  .60          selectivity, one for each operator
    S   by content              op2  .10 .20 .90 ...          one for each partition of its
                                     (attribute A)            classifier attribute, where it has one

Both follow the tuples by the paper's rule, s <- 0.95 s + 0.05 outcome. Of n tuples that arrive
together only how many passed is known, not in which order: s <- a^n s + (1 - a^n) passed / n, which
is the same rule for one tuple, and for more what it gives if outcomes are spread evenly.

Beyond the paper both may be kept by place as well (`places`): for tuples of the same past.
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
    MOST_PLACES,
    ByPlace,
    Place,
    merged_places,
    places_from_json,
)

UNKNOWN = 0.5
"""The selectivity of an operator that has seen no tuple yet."""

LEAST_COST_US = 1e-3

LEAST_SHARE = 0.05
"""Of what a visit took, at least this was for its tuples."""

NO_PLACES: Mapping[str, Any] = {"seen": 0, "held": {}}
"""Of a state that was stored before anything was known by place."""

MEMORY_TUPLES, LEAST_CHANGE = 39, 0.1
"""Numbers that follow tuple by tuple are means of about so many; smaller changes are none."""

RESIZED = 1.05
"""A state that has grown or shrunk by less is as large as it was."""

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
    by_place: ByPlace[Floats] = field(default_factory=ByPlace)
    """The column for tuples of the same past."""

    def move(self, partitions: Partitions, before: Partitions) -> None:
        """Ranges have changed, and what is known by range follows them."""

        def moved(column: Floats) -> Floats:
            return partitions.moved(before, self.attributes, column)

        self.selectivity = moved(self.selectivity)
        self.by_place.change(moved)

    def to_json(self) -> dict[str, Any]:
        """As plain numbers and texts."""
        return {
            "attributes": list(self.attributes),
            "count": self.count,
            "selectivity": self.selectivity.tolist(),
            "gain": self.gain,
            "on_trial": self.on_trial,
            "by_place": self.by_place.to_json(),
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
            places_from_json(stored.get("by_place", NO_PLACES), _column),
        )


@dataclass
class Estimates:
    """Selectivities and costs by operator index, from 1 on; `seen` are the tuples each has seen.

    `visit_us` is what a visit takes however few tuples it has: it is no tuple's cost. `placed` is
    whether what was seen is kept by place as well.
    """

    memory: float
    overall: dict[int, float] = field(default_factory=dict)
    cost_us: dict[int, float] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    pairs: dict[int, Pair] = field(default_factory=dict)
    declared_us: dict[int, float] = field(default_factory=dict)
    """Costs that the user has given, and that are not measured."""
    visit_us: float = 0.0
    placed: bool = False
    by_place: dict[int, ByPlace[float]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    """The rows of a probed state, when what its probe passes was last set by them."""
    multiplying: frozenset[int] = frozenset()
    """Probes and look-ups, of which a tuple may have many matches."""
    _marks: dict[int, dict[Place, float]] = field(default_factory=dict, repr=False, compare=False)
    """By operator and place, what it passed there when the other places were last heard of."""

    def selectivity(self, index: int) -> float:
        """W[l]: how many tuples an operator passes for each that arrives, at any place."""
        return self.overall.get(index, UNKNOWN)

    def selectivity_at(self, index: int, place: Place) -> float:
        """W[l], or what holds at a place.

        Where an operator has not been it is hoped to do better than overall, and so tried once:
        what it does to tuples that others have let through says little about all tuples. Not so a
        probe of a state, which may multiply them.
        """
        overall = self.selectivity(index)
        if not self.placed or index not in self.by_place:
            return overall
        known = self.by_place[index].at(place, overall)
        if known is not None:
            return known
        return overall if index in self.sizes else min(overall, UNKNOWN)

    def column_at(self, index: int, place: Place) -> Floats | None:
        """An operator's column of S, or of a probe what holds at a place; None without a pair.

        Not of filters: what they do to a partition is heard of sooner at all places together, and
        Eddies are for data that change. How much a probe finds depends on what was joined before.
        """
        if (pair := self.pairs.get(index)) is None:
            return None
        known = pair.by_place.at(place, pair.selectivity) if index in self.sizes else None
        return pair.selectivity if known is None else known

    def cost(self, index: int) -> float:
        """Microseconds a tuple; that of the others on average where it is not known yet."""
        known = self.declared_us.get(index, self.cost_us.get(index))
        if known is None:
            known = sum(self.cost_us.values()) / len(self.cost_us) if self.cost_us else 1.0
        return max(known, LEAST_COST_US)

    def add(self, index: int, place: Place, arrived: int, passed: int, seconds: float) -> None:
        """Tuples have gone through an operator."""
        if arrived == 0:
            return
        if self.placed:
            self._add_at(index, place, arrived, passed)
        before = self.overall.get(index, UNKNOWN)
        self.overall[index] = updated(before, arrived, passed, self.memory)
        visit_us = 1e6 * seconds
        spent_us = max(visit_us - self.visit_us, LEAST_SHARE * visit_us) / arrived
        # Costs hardly change with the data: a longer memory, in which a short run weighs little.
        weight = arrived / (arrived + min(self.seen.get(index, 0), COST_MEMORY))
        self.cost_us[index] = self.cost_us.get(index, 0.0) * (1 - weight) + spent_us * weight
        self.seen[index] = self.seen.get(index, 0) + arrived

    def _add_at(self, index: int, place: Place, arrived: int, passed: int) -> None:
        """What is known at a place; where that changes clearly, the other places are forgotten.

        They are not visited, or they would tell the same: the operator is tried there once more.
        Not so one that multiplies: a few tuples with many matches look like a change.
        """
        places = self.by_place.setdefault(index, ByPlace())
        here = updated(self.selectivity_at(index, place), arrived, passed, self.memory)
        before, _ = places.held.get(place, (here, 0))
        marks = self._marks.setdefault(index, {})
        if len(marks) > MOST_PLACES:
            marks.clear()
        changed = _clearly_other(marks.setdefault(place, before), here, arrived)
        if changed and index not in self.multiplying:
            places.keep_only(place)
            self._marks[index] = {place: here}
        places.put(place, here, arrived)

    def add_content(self, index: int, place: Place, arrived: Ints, passed: Ints) -> None:
        """The same, by partition of the operator's classifier attribute."""
        pair, column = self.pairs.get(index), self.column_at(index, place)
        if pair is None or column is None:
            return
        kept = self.memory**arrived
        fresh = passed / np.maximum(arrived, 1) * (1 - kept)  # nothing where none arrived
        if self.placed and index in self.sizes:
            pair.by_place.put(place, column * kept + fresh, int(arrived.sum()))
        pair.selectivity[:] = pair.selectivity * kept + fresh

    def resize(self, index: int, rows: int) -> None:
        """A probed state has so many rows now, and its probe's fan-out grows in proportion.

        Else a window that fills would look better at each place where it was long not probed. An
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
        if index in self.by_place:
            self.by_place[index].change(lambda passes: passes * factor)
        if (pair := self.pairs.get(index)) is not None:
            pair.selectivity *= factor
            pair.by_place.change(lambda column: column * factor)

    def column_of(self, index: int, arrived: Ints, passed: Floats) -> Floats:
        """A column of S from a profile: Out / In, and W where no sampled tuple was."""
        known = passed / np.maximum(arrived, 1)
        return np.where(arrived > 0, known, self.selectivity(index)).astype(np.float64)

    def take_over(self, other: Estimates) -> None:
        """Know what another knows, and nothing else."""
        self._marks.clear()
        for name in ("overall", "cost_us", "seen", "pairs", "by_place", "sizes"):
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
            "by_place": {str(k): places.to_json() for k, places in self.by_place.items()},
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
            by_place={
                int(k): places_from_json(places, float)
                for k, places in stored.get("by_place", {}).items()
            },
            sizes={int(k): int(rows) for k, rows in stored.get("sizes", {}).items()},
        )


def _column(stored: Sequence[float]) -> Floats:
    return np.array(stored, np.float64)


def _clearly_other(mark: float, here: float, arrived: int) -> bool:
    """Whether so many tuples show that an operator does something else than it did: beyond five
    standard errors, and a tenth."""
    error = math.sqrt(0.25 / max(arrived, MEMORY_TUPLES))  # no more, of what passes or is dropped
    return abs(here - mark) > max(LEAST_CHANGE, 5 * error)


def updated(before: float, arrived: int, passed: float, memory: float) -> float:
    """The paper's update for tuples that arrived together (CBR § 4.1, note 3).

    >>> [round(updated(0.40, 1, passed, 0.95), 6) for passed in (1, 0)]
    [0.43, 0.38]
    """
    kept = memory**arrived
    return before * kept + passed / arrived * (1 - kept)


def merged(
    memory: float, parts: Sequence[tuple[Estimates, Partitions]], partitions: Partitions
) -> Estimates:
    """What several shards know, as one: means weighted by the tuples each has seen.

    Where shards have different classifier attributes for an operator, the one that most of its
    tuples were routed by is taken.
    """
    whole = Estimates(memory)
    for index in sorted({k for part, _ in parts for k in part.seen}):
        weights = np.array([part.seen.get(index, 0) for part, _ in parts], np.float64)
        total = float(weights.sum())
        if total == 0:
            continue
        share = weights / total
        whole.seen[index] = int(total)
        whole.overall[index] = float(share @ [part.selectivity(index) for part, _ in parts])
        whole.cost_us[index] = float(share @ [part.cost(index) for part, _ in parts])
        sized = [part.sizes[index] for part, _ in parts if index in part.sizes]
        if sized:
            whole.sizes[index] = sum(sized) // len(sized)
        placed = [part.by_place[index] for part, _ in parts if index in part.by_place]
        if placed:
            whole.by_place[index] = merged_places(placed)
        votes: dict[tuple[Attributes, int] | None, float] = {}
        for (part, _), weight in zip(parts, weights, strict=True):
            pair = part.pairs.get(index)
            known = pair is not None and not pair.on_trial
            choice = (pair.attributes, pair.count) if pair is not None and known else None
            votes[choice] = votes.get(choice, 0.0) + weight
        winner = max(votes, key=lambda choice: votes[choice])
        if winner is None:
            continue
        chosen, count = winner
        agreeing = [
            (part.pairs[index], own, weight)
            for (part, own), weight in zip(parts, weights, strict=True)
            if (pair := part.pairs.get(index))
            and not pair.on_trial
            and (pair.attributes, pair.count) == winner
        ]
        heard = sum(weight for *_, weight in agreeing)
        column = sum(
            partitions.moved(own, chosen, pair.selectivity) * (weight / heard)
            for pair, own, weight in agreeing
        )
        gain = sum(pair.gain * weight for pair, _, weight in agreeing) / heard
        whole.pairs[index] = Pair(chosen, count, np.asarray(column, np.float64), float(gain))
        columns = [_moved_places(pair, own, partitions) for pair, own, _ in agreeing]
        whole.pairs[index].by_place = merged_places(columns)
    return whole


def _moved_places(pair: Pair, own: Partitions, partitions: Partitions) -> ByPlace[Floats]:
    """A shard's columns by place, by the partitions of all."""
    places = ByPlace(pair.by_place.seen, pair.by_place.held)
    places.change(lambda column: partitions.moved(own, pair.attributes, column))
    return places
