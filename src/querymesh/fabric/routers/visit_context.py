"""What an operator does to tuples that have been elsewhere before: estimates by place on the way.

Operators are seldom independent. What passes a look-up of live accounts also passes one of recent
payments; in a cyclic join the last probe has two conditions to meet, the first has one. So the same
operator may pass .90 of the tuples as they arrive and .05 of those that come from another::

    op2   overall                 .40       the paper's W (CBR § 4.1): a mixture of
          1, 2, 3 ahead           .90         tuples as they arrive, and
          2, 3 ahead              .05         those that op1 has let through

A place is known by the operators still ahead of a tuple, the one in question among them. Where an
operator has not been yet, it does what it did at the nearest place that it knows: of those at which
only some of the same operators were behind, that at which most were. An estimate long not heard of
goes back to the overall one, which has been heard of since; and when an operator clearly does
something else at one place than it did, all others are forgotten (`estimates.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

Place = int
"""The operators ahead of a tuple: bit k is set for operator k."""

Value = TypeVar("Value", float, npt.NDArray[np.float64])

HALF_LIFE = 100_000
"""An estimate counts half when its operator has meanwhile seen so many tuples at other places."""

MOST_PLACES, STORED_PLACES = 256, 32
"""Of each operator, so many places are remembered, and travel with the state: those it was at last.
"""

MOST_ASKED = 4096
"""For so many places it is remembered which is nearest: of many operators there are many sets."""


@dataclass
class ByPlace(Generic[Value]):
    """An operator's numbers by place, each with how many tuples it had seen by then."""

    seen: int = 0
    held: dict[Place, tuple[Value, int]] = field(default_factory=dict)
    _nearest: dict[Place, Place | None] = field(default_factory=dict, repr=False, compare=False)

    def at(self, place: Place, overall: Value) -> Value | None:
        """What holds at a place; None if nothing is known there or near it."""
        nearest = place if place in self.held else self._nearest_to(place)
        if nearest is None:
            return None
        value, then = self.held[nearest]
        weight = 0.5 ** ((self.seen - then) / HALF_LIFE)
        return cast(Value, value * weight + overall * (1 - weight))

    def _nearest_to(self, place: Place) -> Place | None:
        """Of the places at which less was behind, and nothing else, that at which most was."""
        if place not in self._nearest:
            if len(self._nearest) > MOST_ASKED:
                self._nearest.clear()
            before = [known for known in self.held if known & place == place]
            self._nearest[place] = min(before, key=int.bit_count, default=None)
        return self._nearest[place]

    def put(self, place: Place, value: Value, rows: int) -> None:
        """So many tuples were seen at a place, and from now on this holds there."""
        self.seen += rows
        if self.held.pop(place, None) is None:
            self._nearest.clear()
        self.held[place] = (value, self.seen)
        while len(self.held) > MOST_PLACES:
            del self.held[next(iter(self.held))]

    def keep_only(self, place: Place) -> None:
        """What was known of all other places holds no longer."""
        self.held = {known: each for known, each in self.held.items() if known == place}
        self._nearest.clear()

    def change(self, change: Callable[[Value], Value]) -> None:
        """All numbers, changed alike."""
        self.held = {place: (change(value), then) for place, (value, then) in self.held.items()}

    def to_json(self) -> dict[str, Any]:
        """As plain numbers and texts; of many places, those seen last."""
        held = {
            str(place): [value if isinstance(value, float) else value.tolist(), then]
            for place, (value, then) in list(self.held.items())[-STORED_PLACES:]
        }
        return {"seen": self.seen, "held": held}


def places_from_json(stored: Mapping[str, Any], read: Callable[[Any], Value]) -> ByPlace[Value]:
    """Back from `to_json`; `read` makes a number, or a column of them, of what is stored."""
    held = {int(place): (read(value), int(then)) for place, (value, then) in stored["held"].items()}
    return ByPlace(int(stored["seen"]), held)


def merged_places(parts: Sequence[ByPlace[Value]]) -> ByPlace[Value]:
    """What several shards know, as one: means weighted by the tuples each has seen.

    The whole has seen what each has on average, so that its numbers are as old as theirs.
    """
    heard = [part for part in parts if part.seen]
    whole: ByPlace[Value] = ByPlace(sum(part.seen for part in heard) // max(len(heard), 1))
    for place in dict.fromkeys(known for part in heard for known in part.held):
        there = [part for part in heard if place in part.held]
        total = sum(part.seen for part in there)
        mean = sum(part.held[place][0] * (part.seen / total) for part in there)
        age = sum((part.seen - part.held[place][1]) * part.seen for part in there) // total
        whole.held[place] = (cast(Value, mean), whole.seen - age)
    return whole
