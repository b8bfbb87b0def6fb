"""What a probe asks of a STeM, and what it is given back."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from querymesh.arrays import Bools, Ints
from querymesh.index.store.codes import combine, ints

Pattern = tuple[int, ...]
"""An access pattern: which join attributes of the stored stream are specified, by rising number."""

Op = Literal["<", "<=", ">", ">="]

OPS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, eq=False)
class OrderComparison:
    """The stored order attribute number `order`, compared by `op` with a code of each row."""

    op: Op
    order: int
    values: Ints

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise ValueError(f"no comparison {self.op!r}: there are {', '.join(OPS)}")
        object.__setattr__(self, "values", ints(self.values))


@dataclass(frozen=True, eq=False)
class Request:
    """Probing rows, as codes.

    codes        for each attribute of the pattern, the equality code that stored rows must have
    low, high    bounds on the stored rows' times, both included
    before       stored rows that came in the same step must have a smaller serial; None for all
    comparisons  what else has to hold
    """

    pattern: Pattern
    codes: tuple[Ints, ...]
    low: Ints
    high: Ints
    before: Ints | None = None
    comparisons: tuple[OrderComparison, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", tuple(map(ints, self.codes)))
        object.__setattr__(self, "low", ints(self.low))
        object.__setattr__(self, "high", ints(self.high))
        if self.before is not None:
            object.__setattr__(self, "before", ints(self.before))
        if list(self.pattern) != sorted(set(self.pattern)):
            raise ValueError(f"access pattern {self.pattern} is not in rising order")
        if len(self.codes) != len(self.pattern):
            raise ValueError(f"{len(self.codes)} codes for access pattern {self.pattern}")
        given = [*self.codes, self.high, *(comparison.values for comparison in self.comparisons)]
        if self.before is not None:
            given.append(self.before)
        # The kernels do not look whether an array ends: a short one must not get there.
        if any(len(numbers) != len(self.low) for numbers in given):
            raise ValueError(f"a request of {len(self.low)} rows has arrays of other lengths")

    def __len__(self) -> int:
        return len(self.low)

    def only(self, pattern: Pattern) -> Request:
        """The same request by the attributes of this pattern alone, without comparisons."""
        if pattern == self.pattern:
            return self
        codes = tuple(self.codes[self.pattern.index(j)] for j in pattern)
        return Request(pattern, codes, self.low, self.high, self.before)

    def specified(self, keys: int) -> Pattern:
        """The access pattern with the attributes compared by order, which are numbered after the
        `keys` that are compared for equality."""
        if not self.comparisons:
            return self.pattern
        return self.pattern + tuple(sorted({keys + c.order for c in self.comparisons}))

    @cached_property
    def combined(self) -> Ints:
        """One number for all codes of a row."""
        return combine(self.codes)


class Matches(NamedTuple):
    """Pairs of a probing row, by its position in the request, and a stored row, by its row id."""

    positions: Ints
    rows: Ints


class Cursor(NamedTuple):
    """How far a probe of one partition has come: the probing row, and the slot of the index."""

    row: int
    slot: int


class MatchBuffer:
    """Matches found so far, at most `most` at a time; memory is taken as it is needed."""

    def __init__(self, most: int, expected: int) -> None:
        if most < 1:
            raise ValueError(f"matches cannot be given in pieces of {most}")
        self._most = most
        self._allot(min(most, max(expected, 1024)))

    def _allot(self, size: int) -> None:
        self.positions: Ints = np.empty(size, np.int64)
        self.rows: Ints = np.empty(size, np.int64)
        self.filled = 0

    def is_full(self) -> bool:
        """Whether there are `most` matches; below that, memory for more is taken."""
        size = len(self.rows)
        if self.filled < size:
            return False
        if size == self._most:
            return True
        old = self.positions, self.rows
        self._allot(min(self._most, 4 * size))
        self.positions[:size], self.rows[:size] = old
        self.filled = size
        return False

    def keep(self, begin: int, mask: Bools) -> None:
        """Keep only those matches from `begin` on where the mask is true."""
        positions = self.positions[begin : self.filled][mask]
        rows = self.rows[begin : self.filled][mask]
        self.filled = begin + len(rows)
        self.positions[begin : self.filled] = positions
        self.rows[begin : self.filled] = rows

    def hand_over(self) -> Matches:
        """The matches found so far, for the caller to keep; there is room for new ones then."""
        matches = Matches(self.positions[: self.filled], self.rows[: self.filled])
        self._allot(len(self.rows))
        return matches
