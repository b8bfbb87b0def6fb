"""What a state's partitions are indexed by. Each keeps what it was given until it is laid out anew,
so a state may hold several (AMRI § 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from querymesh.index.store.configuration import Configuration
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import Pattern


@dataclass(frozen=True)
class HashPlan:
    """A hash index for each access pattern that is asked for; if `patterns` are given, for these
    alone, and what none of them helps with is found by looking at all rows (AMRI § 2.2).

    `layout` is the pattern in whose order rows lie.
    """

    patterns: tuple[Pattern, ...] | None = None
    layout: Pattern = ()

    def lay_out(self, partition: Partition) -> Partition:
        """The partition, indexed this way."""
        allowed = partition.with_patterns(self.patterns)
        in_order = self.layout and (self.patterns is None or self.layout in self.patterns)
        return allowed.in_order_of(self.layout) if in_order else allowed

    def suits(self, partition: Partition) -> bool:
        """Whether a partition is indexed this way."""
        return partition.cells is None and partition.patterns == self.patterns

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data, for JSON."""
        patterns = None if self.patterns is None else [list(each) for each in self.patterns]
        return {"hash": patterns, "layout": list(self.layout)}


@dataclass(frozen=True)
class BitPlan:
    """A bit-address index of this configuration."""

    configuration: Configuration

    def lay_out(self, partition: Partition) -> Partition:
        """The partition, indexed this way."""
        return partition if self.suits(partition) else partition.in_cells(self.configuration)

    def suits(self, partition: Partition) -> bool:
        """Whether a partition is indexed this way."""
        if partition.cells is None:
            return False
        return partition.cells.configuration == self.configuration.for_rows(len(partition))

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data, for JSON."""
        return {"bits": self.configuration.to_json()}


IndexPlan = HashPlan | BitPlan


def plan_from_json(stored: Mapping[str, Any]) -> IndexPlan:
    """The plan that `to_json` of either kind wrote."""
    if "bits" in stored:
        return BitPlan(Configuration.from_json(stored["bits"]))
    patterns = stored["hash"]
    allowed = None if patterns is None else tuple(tuple(map(int, each)) for each in patterns)
    return HashPlan(allowed, tuple(map(int, stored["layout"])))


def plan_of(partition: Partition) -> IndexPlan:
    """How a partition is indexed."""
    if partition.cells is not None:
        return BitPlan(partition.cells.configuration)
    return HashPlan(partition.patterns)
