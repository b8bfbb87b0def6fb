"""Rusters: routable clusters, the tuples of one classification window that share a route.

A ruster holds no tuples. It points at rows of its window's Arrow batch with a selection vector, and
at rows of look-up tables with one more vector each, all of one length; columns are gathered when an
operator asks for them, and only those it asks for::

    rows     [ 0   4   4   7 ]      into the window's batch
    matches  [ 9   2   3   2 ]      into the table joined so far: tuple 4 had two matches
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Ints
from querymesh.fabric.core.token import RouteToken
from querymesh.index.store.columns import Columns
from querymesh.query.expr import Column

Result = TypeVar("Result")


class Joined(Protocol):
    """What a source is joined to: a static table, or the state of another stream."""

    def take(self, name: str, rows: Ints) -> pa.Array:
        """The values of a column at these rows."""


@dataclass(frozen=True)
class ClassificationWindow:
    """One classification window (W^TC): a batch of the source, and what it is joined to."""

    source: str
    batch: pa.RecordBatch
    tables: Mapping[str, Joined] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many tuples the window has."""
        return int(self.batch.num_rows)

    @cached_property
    def columns(self) -> Columns:
        """The columns of the batch, for rusters to take rows from."""
        return Columns(self.batch)


@dataclass(frozen=True)
class Ruster:
    """Some rows of a window on their way along a route, from the classifier's leaf `leaf`."""

    window: ClassificationWindow
    rows: Ints
    token: RouteToken
    leaf: int = 0
    matches: Mapping[str, Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, column: Column) -> pa.Array:
        """The values of a column at the selected rows."""
        if column.relation is not None and column.relation in self.matches:
            return self.window.tables[column.relation].take(
                column.name, self.matches[column.relation]
            )
        if column.relation not in (None, self.window.source):
            raise LookupError(f"{column.relation} is not joined yet, but {column.name} is read")
        columns = self.window.columns
        if len(self.rows) == self.window.rows and not self.matches:
            return columns.whole(column.name)  # no row is repeated before a join: these are all
        return columns.take(column.name, self.rows)

    def keep(self, passed: Bools) -> Ruster:
        """The rows an operator let through, one step further along the route."""
        positions = np.flatnonzero(passed)
        if len(positions) == len(self):
            return replace(self, token=self.token.pop())
        return self.pick(positions)

    def followed_by(self, others: Sequence[Ruster]) -> Ruster:
        """This ruster's rows and those of others that have joined the same."""
        if not others:
            return self
        every = (self, *others)
        matches = {name: np.concatenate([e.matches[name] for e in every]) for name in self.matches}
        return replace(self, rows=np.concatenate([e.rows for e in every]), matches=matches)

    def pick(self, positions: Ints) -> Ruster:
        """These positions of the selection, repeats allowed, one step further along the route."""
        matches = {name: rows[positions] for name, rows in self.matches.items()}
        return replace(self, rows=self.rows[positions], matches=matches, token=self.token.pop())


def in_parts(compute: Callable[[Ruster], Result], ruster: Ruster) -> Iterator[Result]:
    """What is computed of a ruster; by halves where its texts are too long for one Arrow array.

    An array has at most 2 GB of text: a long one that is joined to many rows soon makes more.
    """
    try:
        result = compute(ruster)
    except (pa.ArrowInvalid, pa.ArrowCapacityError):
        if len(ruster) < 2:
            raise
        for half in np.array_split(np.arange(len(ruster)), 2):
            yield from in_parts(compute, ruster.pick(half))
        return
    yield result
