"""What an Eddy knows of its operators: the matrices W and S of CBR § 4.1, and costs.

::

    W   overall     op1  .30    op2  .40    op3  .60          selectivity, one for each operator
    S   by content              op2  .10 .20 .90 ...          one for each partition of its
                                     (attribute A)            classifier attribute, where it has one

Both follow the tuples by the paper's rule, s <- 0.95 s + 0.05 outcome. Of n tuples that arrive
together only how many passed is known, not in which order: s <- a^n s + (1 - a^n) passed / n, which
is the same rule for one tuple, and for more what it gives if outcomes are spread evenly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from querymesh.classify.partitions import Attributes, Partitions

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

UNKNOWN = 0.5
"""The selectivity of an operator that has seen no tuple yet."""

LEAST_COST_US = 1e-3

LEAST_SHARE = 0.05
"""Of what a visit took, at least this was for its tuples."""

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

    def to_json(self) -> dict[str, Any]:
        """As plain numbers and texts."""
        return {
            "attributes": list(self.attributes),
            "count": self.count,
            "selectivity": self.selectivity.tolist(),
            "gain": self.gain,
            "on_trial": self.on_trial,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Pair:
        """Back from `to_json`."""
        return cls(
            tuple(stored["attributes"]),
            int(stored["count"]),
            np.array(stored["selectivity"], np.float64),
            float(stored["gain"]),
            bool(stored["on_trial"]),
        )


@dataclass
class Estimates:
    """Selectivities and costs by operator index, from 1 on; `seen` are the tuples each has seen.

    `visit_us` is what a visit takes however few tuples it has: it is no tuple's cost.
    """

    memory: float
    overall: dict[int, float] = field(default_factory=dict)
    cost_us: dict[int, float] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    pairs: dict[int, Pair] = field(default_factory=dict)
    declared_us: dict[int, float] = field(default_factory=dict)
    """Costs that the user has given, and that are not measured."""
    visit_us: float = 0.0

    def selectivity(self, index: int) -> float:
        """W[l]."""
        return self.overall.get(index, UNKNOWN)

    def cost(self, index: int) -> float:
        """Microseconds a tuple; that of the others on average where it is not known yet."""
        known = self.declared_us.get(index, self.cost_us.get(index))
        if known is None:
            known = sum(self.cost_us.values()) / len(self.cost_us) if self.cost_us else 1.0
        return max(known, LEAST_COST_US)

    def add(self, index: int, arrived: int, passed: int, seconds: float) -> None:
        """Tuples have gone through an operator."""
        if arrived == 0:
            return
        before = self.overall.get(index, UNKNOWN)
        self.overall[index] = updated(before, arrived, passed, self.memory)
        visit_us = 1e6 * seconds
        spent_us = max(visit_us - self.visit_us, LEAST_SHARE * visit_us) / arrived
        # Costs hardly change with the data: a longer memory, in which a short run weighs little.
        weight = arrived / (arrived + min(self.seen.get(index, 0), COST_MEMORY))
        self.cost_us[index] = self.cost_us.get(index, 0.0) * (1 - weight) + spent_us * weight
        self.seen[index] = self.seen.get(index, 0) + arrived

    def add_content(self, index: int, arrived: Counts, passed: Counts) -> None:
        """The same, by partition of the operator's classifier attribute."""
        if (pair := self.pairs.get(index)) is not None:
            there = arrived > 0
            kept = self.memory ** arrived[there]
            fresh = passed[there] / arrived[there]
            pair.selectivity[there] = pair.selectivity[there] * kept + fresh * (1 - kept)

    def column_of(self, index: int, arrived: Counts, passed: Floats) -> Floats:
        """A column of S from a profile: Out / In, and W where no sampled tuple was."""
        known = passed / np.maximum(arrived, 1)
        return np.where(arrived > 0, known, self.selectivity(index)).astype(np.float64)

    def take_over(self, other: Estimates) -> None:
        """Know what another knows, and nothing else."""
        for name in ("overall", "cost_us", "seen", "pairs"):
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
        )


def updated(before: float, arrived: int, passed: float, memory: float) -> float:
    """The paper's update for tuples that arrived together (CBR § 4.1, note 3).

    >>> updated(0.40, 1, 1, 0.95), updated(0.40, 1, 0, 0.95)
    (0.43, 0.38)
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
            if (pair := part.pairs.get(index)) and (pair.attributes, pair.count) == winner
        ]
        heard = sum(weight for *_, weight in agreeing)
        column = sum(
            partitions.moved(own, chosen, pair.selectivity) * (weight / heard)
            for pair, own, weight in agreeing
        )
        gain = sum(pair.gain * weight for pair, _, weight in agreeing) / heard
        whole.pairs[index] = Pair(chosen, count, np.asarray(column, np.float64), float(gain))
    return whole
