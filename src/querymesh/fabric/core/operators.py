"""Operator modules: what stands at an index of the operator index array (QM § 5.1).

A module takes a ruster and gives back rusters one step further along their route. It knows nothing
of routes beyond popping the token, and nothing of other operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Ints
from querymesh.errors import PredicateError
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.ruster import Ruster, in_parts
from querymesh.query.evaluate import evaluate
from querymesh.query.model import BoundQuery, Filter, Lookup
from querymesh.query.predicate.predicate import Predicate

MOST_ROWS = 1 << 17
"""A look-up with large fan-out hands on at most so many rows at a time: memory stays bounded."""


@dataclass(frozen=True)
class FailedCall:
    """A call of a user's function that raised on one row, kept in case the row matters."""

    predicate: Predicate
    args: tuple[pa.Array, ...]

    def error(self) -> PredicateError:
        """What the function raised, told with its row; it is called once more for that."""
        try:
            self.predicate.apply(self.args, 1, alone=True)
        except PredicateError as error:
            return error
        return PredicateError(
            f"predicate {self.predicate.name} raised on a row, and did not when it was asked again"
        )


@dataclass
class UserCalls:
    """How user functions are called, and what becomes of rows on which one raises.

    `on_error` is "raise"; "drop" to count and drop the row; or "defer" to let the row travel on as
    if it had passed, since another operator may drop it, and then it never mattered: only a row
    that passes all others raises in the end. So the order of operators never makes a query fail.

    Under "drop" and "defer" the row is treated so whatever the expression around the call makes of
    its NULL (`f(x) OR y > 0`), so the rows are remembered until the caller takes them. So are rows
    that a budget could not pay for, which pass a condition or do not.
    """

    functions: Mapping[str, Predicate]
    on_error: str = "raise"
    alone: bool = False
    """Whether there is no other operator, which could guard a function."""
    deferred: dict[int, FailedCall] = field(default_factory=dict, init=False)
    """By row of the window."""
    _failed: Bools | None = field(default=None, init=False)
    _calls: dict[int, FailedCall] = field(default_factory=dict, init=False)
    _unasked: dict[bool, Bools] = field(default_factory=dict, init=False)
    """Rows that a budget could not pay for: those that pass, and those that do not."""

    def __call__(self, predicate: Predicate, args: list[pa.Array], rows: int) -> pa.Array:
        """One value per row of the function; NULL where it raised and that is no error yet."""
        drops = self.on_error != "raise"
        found = predicate.of_rows(args, rows, drops=drops, alone=self.alone)
        if found.unasked is not None:
            self._unasked[found.passes] = found.unasked | self._unasked.get(found.passes, False)
        failed = found.failed
        if failed.any():
            self._failed = failed if self._failed is None else self._failed | failed
            for row in np.flatnonzero(failed) if self.on_error == "defer" else ():
                at = int(row)
                call = FailedCall(predicate, tuple(arg.slice(at, 1) for arg in args))
                self._calls.setdefault(at, call)
        return found.values

    def take_failed(self) -> Bools | None:
        """Of the rows just evaluated, those on which a function raised; None if on no row."""
        failed, self._failed = self._failed, None
        self._unasked.clear()
        return failed

    def mask(self, verdict: pa.Array, name: str, rows: Ints | None = None) -> tuple[Bools, int]:
        """Which rows a condition lets through, and on how many of the others a function raised.

        `rows` are their numbers in the window, by which failed calls are deferred.
        """
        passed = as_mask(verdict, name)
        for passes, unasked in self._unasked.items():
            passed = passed | unasked if passes else passed & ~unasked
        failed = self.take_failed()
        if failed is None:
            return passed, 0
        if rows is None or self.on_error == "drop":
            return passed & ~failed, int(failed.sum())
        for at, call in self._calls.items():
            self.deferred.setdefault(int(rows[at]), call)
        self._calls.clear()
        return passed | failed, 0

    def forget_failed(self) -> None:
        """Forget failed rows: an evaluation that was broken off may have left some."""
        self._failed = None
        self._unasked.clear()
        self._calls.clear()


class Module(Protocol):
    """An operator in the fabric."""

    errors: int
    """Rows dropped because a user's function raised on them, so far."""

    comparisons: int
    """Stored tuples looked at, so far."""

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """The rusters that come out; empty ones may be among them, and leave the fabric."""


@dataclass
class FilterModule:
    """Keeps the rows for which the condition is true; NULL drops, as in SQL."""

    operator: Filter
    calls: UserCalls
    errors: int = 0
    comparisons: int = 0

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """The rows that pass, as one ruster."""
        yield ruster.keep(self.verdict(ruster))

    def verdict(self, ruster: Ruster) -> Bools:
        """Which rows of the ruster pass."""
        first, *others = in_parts(self._verdict, ruster)
        return np.concatenate([first, *others]) if others else first

    def _verdict(self, ruster: Ruster) -> Bools:
        self.calls.forget_failed()
        verdict = evaluate(
            self.operator.expr, ruster.column, len(ruster), self.calls.functions, self.calls
        )
        passed, errors = self.calls.mask(verdict, self.operator.name, ruster.rows)
        self.errors += errors
        return passed


@dataclass
class LookupModule:
    """Joins each row to its matches in a static table; several matches make several rows."""

    operator: Lookup
    table: LookupTable
    calls: UserCalls
    errors: int = 0
    comparisons: int = 0

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """The rows with their matches, as several rusters where the fan-out is large."""
        yield from self.joined(ruster, *self.probe(ruster))

    def probe(self, ruster: Ruster) -> tuple[Ints, Ints]:
        """For each row, where its matches start in the table's layout, and how many there are."""
        keys = [
            evaluate(key, ruster.column, len(ruster), self.calls.functions, self.calls)
            for key in self.operator.probe_keys
        ]
        starts, counts = self.table.probe(keys)
        if (failed := self.calls.take_failed()) is not None:
            self.errors += int(failed.sum())
            counts = np.where(failed, 0, counts)
        return starts, counts

    def joined(
        self,
        ruster: Ruster,
        starts: Ints,
        counts: Ints,
    ) -> Iterator[Ruster]:
        """The rows with their matches, at most MOST_ROWS at a time."""
        for positions, matches in expand(starts, counts, MOST_ROWS):
            joined = ruster.pick(positions)
            found = {**joined.matches, self.operator.relation: self.table.rows(matches)}
            yield Ruster(joined.window, joined.rows, joined.token, joined.leaf, found)


def as_mask(verdict: pa.Array, name: str) -> Bools:
    """A condition's result as booleans; NULL is false."""
    if not pa.types.is_boolean(verdict.type):
        raise PredicateError(f"{name}: a condition gives booleans, but this gave {verdict.type}")
    known = pc.fill_null(verdict, False) if verdict.null_count else verdict
    return np.asarray(known, dtype=bool)


def expand(starts: Ints, counts: Ints, most: int) -> Iterator[tuple[Ints, Ints]]:
    """For ranges [start, start + count): the range each element is of, and the elements.

    At most `most` at a time, also within one range; at least one piece, though it be empty.

    >>> for ranges, elements in expand(np.array([5, 0]), np.array([2, 1]), 2):
    ...     print(ranges.tolist(), elements.tolist())
    [0, 0] [5, 6]
    [1] [0]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if total <= most:
        ranges = np.repeat(np.arange(len(counts)), counts)
        yield ranges, np.arange(total) - (ends - counts - starts)[ranges]
        return
    for first in range(0, total, most):
        position = np.arange(first, min(first + most, total))
        ranges = np.searchsorted(ends, position, side="right")
        yield ranges, position - (ends - counts)[ranges] + starts[ranges]


def make_modules(
    bound: BoundQuery, tables: Mapping[str, LookupTable], calls: UserCalls
) -> tuple[Module, ...]:
    """The modules of a query's operators, in the order of their indices from 1."""
    made: list[Module] = []
    for operator in bound.operators:
        if isinstance(operator, Filter):
            made.append(FilterModule(operator, calls))
        else:
            assert isinstance(operator, Lookup)
            made.append(LookupModule(operator, tables[operator.relation], calls))
    return tuple(made)
