"""Estimates by visit context: what an operator does to tuples that have been through others before.

Operators are seldom independent. What passes a look-up of live accounts also passes one of recent
payments; in a cyclic join the last probe has two conditions to meet, the first has one. So the same
operator may pass .90 of the tuples as they arrive and .05 of those that come from another::

    op2   overall                 .40       the paper's W (CBR § 4.1): a mixture of
          1, 2, 3 ahead           .90         tuples as they arrive, and
          2, 3 ahead              .05         those that op1 has let through

The context of a visit is the set of operators still ahead of a tuple, the visited one among them.
In a context that an operator has not met yet it is expected to do what it did in the nearest one
that it has: of those in which only some of the same operators were behind the tuple, that in which
most were. An estimate that was long not updated goes back to the overall one, which was updated
since; and when an operator clearly does something else in one context than it did, what is known of
all others is forgotten (`estimates.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from querymesh.arrays import Floats

VisitContext = int
"""The operators still ahead of a tuple as a bit set: bit k is operator k."""

Value = TypeVar("Value", float, Floats)

HALF_LIFE = 100_000
"""An estimate counts half when its operator has seen so many tuples in other contexts since."""

MOST_CONTEXTS, STORED_CONTEXTS = 256, 32
"""Contexts remembered of each operator, and those of them that are stored: the latest ones."""

MOST_NEAREST = 4096
"""Contexts whose nearest known one is remembered: many operators make very many sets of them."""


@dataclass
class ByContext(Generic[Value]):
    """An operator's numbers by context, each with how many tuples the operator had seen by then."""

    seen: int = 0
    numbers: dict[VisitContext, tuple[Value, int]] = field(default_factory=dict)
    _nearest: dict[VisitContext, VisitContext | None] = field(
        default_factory=dict, repr=False, compare=False
    )

    def at(self, context: VisitContext, overall: Value) -> Value | None:
        """The number in a context or the nearest one known; None if there is neither."""
        nearest = context if context in self.numbers else self._nearest_to(context)
        if nearest is None:
            return None
        value, then = self.numbers[nearest]
        if then == self.seen:
            return value
        weight = 0.5 ** ((self.seen - then) / HALF_LIFE)
        return cast(Value, value * weight + overall * (1 - weight))

    def _nearest_to(self, context: VisitContext) -> VisitContext | None:
        """Of the contexts with fewer of the same operators behind, that with most of them."""
        if context not in self._nearest:
            if len(self._nearest) > MOST_NEAREST:
                self._nearest.clear()
            before = [known for known in self.numbers if known & context == context]
            self._nearest[context] = min(before, key=int.bit_count, default=None)
        return self._nearest[context]

    def put(self, context: VisitContext, value: Value, rows: int) -> None:
        """Set the number of a context after so many tuples were seen in it."""
        self.seen += rows
        if self.numbers.pop(context, None) is None:
            self._nearest.clear()
        self.numbers[context] = (value, self.seen)
        while len(self.numbers) > MOST_CONTEXTS:
            del self.numbers[next(iter(self.numbers))]

    def keep_only(self, context: VisitContext) -> None:
        """Forget all other contexts."""
        self.numbers = {known: each for known, each in self.numbers.items() if known == context}
        self._nearest.clear()

    def change(self, change: Callable[[Value], Value]) -> None:
        """Apply a function to all numbers."""
        self.numbers = {
            context: (change(value), then) for context, (value, then) in self.numbers.items()
        }

    def to_json(self) -> dict[str, Any]:
        """As plain numbers and texts, the latest STORED_CONTEXTS of them."""
        numbers = {
            str(context): [value if isinstance(value, float) else value.tolist(), then]
            for context, (value, then) in list(self.numbers.items())[-STORED_CONTEXTS:]
        }
        return {"seen": self.seen, "held": numbers}


def by_context_from_json(
    stored: Mapping[str, Any], read: Callable[[Any], Value]
) -> ByContext[Value]:
    """Back from `to_json`; `read` makes a number, or a column of them, of what is stored."""
    numbers = {
        int(context): (read(value), int(then)) for context, (value, then) in stored["held"].items()
    }
    return ByContext(int(stored["seen"]), numbers)


def merge_contexts(parts: Sequence[ByContext[Value]]) -> ByContext[Value]:
    """The numbers of several shards as one: means weighted by the tuples each has seen.

    The whole has seen what each has on average, so that its numbers are as old as theirs.
    """
    heard = [part for part in parts if part.seen]
    whole: ByContext[Value] = ByContext(sum(part.seen for part in heard) // max(len(heard), 1))
    for context in dict.fromkeys(known for part in heard for known in part.numbers):
        there = [part for part in heard if context in part.numbers]
        total = sum(part.seen for part in there)
        mean = sum(part.numbers[context][0] * (part.seen / total) for part in there)
        age = sum((part.seen - part.numbers[context][1]) * part.seen for part in there) // total
        whole.numbers[context] = (cast(Value, mean), whole.seen - age)
    return whole
