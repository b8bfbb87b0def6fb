"""What Content-Learns writes down: what was found, and what tuples cost meanwhile (CBR § 4.1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from querymesh.classify.partitions import Attributes
from querymesh.fabric.routers.content_sample import Candidate


@dataclass(frozen=True)
class Event:
    """What was found about an operator, after so many tuples.

    `gains` are of the best few attributes; `decision` is "kept", "dropped", "none" or "pruned".
    """

    rows: int
    operator: int
    decision: str
    attributes: Attributes = ()
    gains: tuple[Candidate, ...] = ()
    reason: str = ""

    def to_json(self) -> list[Any]:
        """As plain numbers and texts."""
        gains = gains_to_json(self.gains)
        return [self.rows, self.operator, self.decision, list(self.attributes), gains, self.reason]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> Event:
        """Back from `to_json`."""
        rows, operator, decision, attributes, gains, reason = stored
        found = gains_from_json(gains)
        return cls(int(rows), int(operator), str(decision), tuple(attributes), found, str(reason))


def gains_to_json(gains: Sequence[Candidate]) -> list[list[Any]]:
    """Candidates as plain numbers and texts."""
    return [[list(candidate.attributes), candidate.gain] for candidate in gains]


def gains_from_json(stored: Sequence[Sequence[Any]]) -> tuple[Candidate, ...]:
    """Back from `gains_to_json`."""
    return tuple(Candidate(tuple(names), float(gain)) for names, gain in stored)


@dataclass
class RoutedWork:
    """What was done for tuples that are not profiled: their visits, and the work of routing them.

    Visits and not their cost: a trial is compared with the time before it by one set of costs, or
    a change of the machine's pace would pass for a change of routes.
    """

    rows: int = 0
    work: float = 0.0
    visits: Counter[int] = field(default_factory=Counter)

    def total(self, cost: Callable[[int], float]) -> float:
        """What all of it cost, by what a visit of each operator costs."""
        return self.work + sum(rows * cost(index) for index, rows in self.visits.items())

    def a_row(self, cost: Callable[[int], float]) -> float:
        """The mean cost of a tuple, by what a visit of each operator costs."""
        return self.total(cost) / self.rows if self.rows else 0.0

    def by_chance(self, other: RoutedWork) -> float:
        """By how much the mean cost may differ from another's by chance, as a share of it.

        What one tuple costs varies about as much as it is. Without this a pair that helps a little
        is dropped as often as not.
        """
        return math.sqrt(1 / max(1, self.rows) + 1 / max(1, other.rows))

    def to_json(self) -> dict[str, Any]:
        """The counts as plain data, for JSON."""
        visits = {str(index): rows for index, rows in self.visits.items()}
        return {"rows": self.rows, "work": self.work, "visits": visits}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RoutedWork:
        """Back from `to_json`."""
        visits = Counter({int(index): int(rows) for index, rows in stored["visits"].items()})
        return cls(int(stored["rows"]), float(stored["work"]), visits)
