"""What a probe asks of a STeM, and what it is given back."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from querymesh.arrays import Ints
from querymesh.index.store.codes import ints

Pattern = tuple[int, ...]
"""An access pattern: which join attributes of the stored stream are specified, by rising number."""

Op = Literal["<", "<=", ">", ">="]

OPS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Asked(NamedTuple):
    """What of a request its way to matches depends on: the attributes that are specified, and which
    order attributes are compared, each as (op, attribute)."""

    pattern: Pattern
    compared: tuple[tuple[str, int], ...] = ()

    def specified(self, keys: int) -> Pattern:
        """The access pattern with the attributes compared by order, which are numbered after the
        `keys` that are compared for equality."""
        return self.pattern + tuple(sorted({keys + order for _, order in self.compared}))


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

    @property
    def asked(self) -> Asked:
        """What its way to matches depends on."""
        return Asked(self.pattern, tuple((c.op, c.order) for c in self.comparisons))


class Matches(NamedTuple):
    """Pairs of a probing row, by its position in the request, and a stored row, by its row id."""

    positions: Ints
    rows: Ints
