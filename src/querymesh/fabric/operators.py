"""Operator modules: what stands at an index of the operator index array (QM § 5.1).

A module takes a ruster and gives back rusters one step further along their route. It knows nothing
of routes beyond popping the token, and nothing of other operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.errors import PredicateError
from querymesh.fabric.lookup_table import LookupTable
from querymesh.fabric.ruster import Ruster
from querymesh.query.evaluate import evaluate
from querymesh.query.model import BoundQuery, Filter, Lookup
from querymesh.query.predicate import Predicate

MOST_ROWS = 1 << 17
"""A look-up with large fan-out hands on at most so many rows at a time: memory stays bounded."""


@dataclass
class UserCalls:
    """How user functions are called: `on_error` is "raise", or "drop" to count and drop the row."""

    functions: Mapping[str, Predicate]
    on_error: str = "raise"
    errors: int = field(default=0, init=False)

    def __call__(self, predicate: Predicate, args: list[pa.Array], rows: int) -> pa.Array:
        """One value per row of the function; under "drop", NULL where it raised."""
        if self.on_error == "raise":
            return predicate.apply(args, rows)
        result, failed = predicate.apply_dropping(args, rows)
        self.errors += failed
        return result

    def take_errors(self) -> int:
        """The errors counted since the last call."""
        counted, self.errors = self.errors, 0
        return counted


class Module(Protocol):
    """An operator in the fabric."""

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """The rusters that come out; empty ones may be among them, and leave the fabric."""


@dataclass
class FilterModule:
    """Keeps the rows for which the condition is true; NULL drops, as in SQL."""

    operator: Filter
    calls: UserCalls

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """One ruster in, one out."""
        verdict = evaluate(
            self.operator.expr, ruster.column, len(ruster), self.calls.functions, self.calls
        )
        yield ruster.keep(as_mask(verdict, self.operator.name))


@dataclass
class LookupModule:
    """Joins each row to its matches in a static table; several matches make several rows."""

    operator: Lookup
    table: LookupTable
    calls: UserCalls

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """One ruster in; more than one out where the fan-out is large."""
        keys = [
            evaluate(key, ruster.column, len(ruster), self.calls.functions, self.calls)
            for key in self.operator.probe_keys
        ]
        starts, counts = self.table.probe(keys)
        for first, last in _pieces(counts):
            positions, matches = expand(starts[first:last], counts[first:last])
            joined = ruster.pick(positions + first)
            found = {**joined.matches, self.operator.relation: self.table.rows(matches)}
            yield Ruster(joined.window, joined.rows, joined.token, joined.leaf, found)


def as_mask(verdict: pa.Array, name: str) -> npt.NDArray[np.bool_]:
    """A condition's result as booleans; NULL is false."""
    if not pa.types.is_boolean(verdict.type):
        raise PredicateError(f"{name}: a condition gives booleans, but this gave {verdict.type}")
    return np.asarray(pc.fill_null(verdict, False), dtype=bool)


def expand(
    starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For ranges [start, start + count): the range each element is of, and the elements.

    >>> ranges, elements = expand(np.array([5, 0]), np.array([2, 1]))
    >>> ranges.tolist(), elements.tolist()
    ([0, 0, 1], [5, 6, 0])
    """
    ranges = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    elements = np.arange(int(counts.sum())) - before[ranges] + starts[ranges]
    return ranges, elements


def _pieces(counts: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose matches together stay near MOST_ROWS; one row is never cut."""
    ends = np.cumsum(counts)
    first = 0
    while first < len(counts):
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + MOST_ROWS, side="right")))
        yield first, last
        first = last


def make_modules(
    bound: BoundQuery, tables: Mapping[str, LookupTable], calls: UserCalls
) -> tuple[Module, ...]:
    """The modules of a query's operators, in the order of their indices from 1."""
    return tuple(
        FilterModule(operator, calls)
        if isinstance(operator, Filter)
        else LookupModule(operator, tables[operator.relation], calls)
        for operator in bound.operators
    )
