"""The STeM of one stream: its partitions from oldest to newest, to insert, probe and evict.

    row ids    0 ........ 5 ... 8 . 9      a row's id is its partition's base plus its number there;
               [ oldest   ][   ][ ][ ]     it holds until the next insert, evict or compact

A probe looks into each partition whose times can meet the request's, through the index for the
request's access pattern. Several attributes are found by one combined code, and then compared one
by one. What is left to the caller: codes of texts and other wide values are hashes, so where
`equality_codes` says that they are not exact, the values of a match have to be compared as well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from querymesh.index.access import Access
from querymesh.index.codes import Ints
from querymesh.index.gather import Gather
from querymesh.index.merging import to_merge
from querymesh.index.order_index import Ranges
from querymesh.index.partition import Partition, concat
from querymesh.index.request import OPS, Comparison, Found, Matches, Pattern, Place, Request

__all__ = ["Comparison", "Matches", "Merged", "Request", "Stem"]

_MOST_MERGED_BYTES = 1 << 30
"""Arrow counts the bytes of a text column in 31 bits; well before that, there is no use in more."""


class Merged(NamedTuple):
    """Partitions that were merged, and what stands in their place."""

    old: tuple[Partition, ...]
    new: Partition


class Stem:
    """The state of one stream.

    `layout` is the access pattern in whose order merged partitions are laid out. `probes` counts
    probing rows and `comparisons` the stored rows they looked at, from the beginning.
    """

    def __init__(self, schema: pa.Schema | None = None, layout: Pattern | None = None) -> None:
        self.partitions: tuple[Partition, ...] = ()
        self.probes = 0
        self.comparisons = 0
        self._schema = schema
        self._layout = layout
        self._hold(())

    def _hold(self, partitions: tuple[Partition, ...]) -> None:
        self.partitions = partitions
        self._bases: Ints = np.cumsum([0, *map(len, partitions)], dtype=np.int64)
        self._gathered: tuple[Ints, Gather] | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self._bases[-1])

    @property
    def nbytes(self) -> int:
        """Memory of all partitions with their indices."""
        return sum(partition.nbytes for partition in self.partitions)

    def insert(self, partition: Partition) -> None:
        """Add the newest partition."""
        self._schema = partition.rows.schema
        self._hold((*self.partitions, partition))

    def settle(self) -> None:
        """End a step: all rows came earlier than those of the next."""
        self._hold(tuple(partition.settled() for partition in self.partitions))

    def evict(self, before: int) -> int:
        """Drop partitions that have only rows of earlier times, and tell how many rows went."""
        had = self.rows
        self._hold(tuple(p for p in self.partitions if p.last >= before))
        return had - self.rows

    def compact(self, span: int | None, oldest: int | None = None) -> list[Merged]:
        """Merge neighbours as `to_merge` says, dropping rows with times before `oldest`.

        `span` is the length of the window, None if it never ends.
        """
        old = self.partitions
        firsts, lasts = [p.first for p in old], [p.last for p in old]
        ranges = to_merge([len(p) for p in old], firsts, lasts, span)
        partitions: list[Partition] = []
        merged = []
        done = 0
        for begin, end in ranges:
            if sum(p.rows.nbytes for p in old[begin:end]) > _MOST_MERGED_BYTES:
                continue
            new = self._merge(old[begin:end], oldest)
            partitions += [*old[done:begin], new]
            merged.append(Merged(old[begin:end], new))
            done = end
        if merged:
            self._hold((*partitions, *old[done:]))
        return merged

    def _merge(self, partitions: tuple[Partition, ...], oldest: int | None) -> Partition:
        if oldest is not None:
            partitions = tuple(
                p if p.first >= oldest else p.filter(p.times >= oldest) for p in partitions
            )
        merged = concat(partitions)
        return merged if self._layout is None else merged.in_order_of(self._layout)

    def probe(self, request: Request, most: int) -> Iterator[Matches]:
        """All matches of the request, in pieces of at most `most`, in no particular order."""
        self.probes += len(request)
        if len(request) == 0:
            return
        lowest, highest = int(request.low.min()), int(request.high.max())
        found = Found(most, len(request))
        for partition, base in zip(self.partitions, self._bases.tolist(), strict=False):
            if partition.last < lowest or partition.first > highest:
                continue
            way, checks = _way(partition, request)
            stored = partition.stored(base)
            place = Place(0, 0)
            while place.row < len(request):
                begin = found.filled
                place, looked = way.probe(request, stored, found, place)
                self.comparisons += looked
                if checks and found.filled > begin:
                    _verify(checks, found, begin, base)
                if found.is_full():
                    yield found.hand_over()
        if found.filled:
            yield found.hand_over()

    def gather(self, rows: Ints) -> Gather:
        """Rows, by id, made ready to take columns of them. The same array object is not sorted
        twice in a row: it must not be changed in between."""
        if self._gathered is None or self._gathered[0] is not rows:
            self._gathered = rows, Gather(np.ascontiguousarray(rows, np.int64), self._bases)
        return self._gathered[1]

    def take(self, name: str, rows: Ints) -> pa.Array:
        """A column of the stream for these row ids."""
        kind = pa.null() if self._schema is None else self._schema.field(name).type
        return self.gather(rows).arrow([p.rows.column(name) for p in self.partitions], kind)

    def key(self, j: int, rows: Ints) -> Ints:
        """Equality codes of a join attribute for these row ids."""
        return self.gather(rows).ints([p.keys[j] for p in self.partitions])

    def order(self, j: int, rows: Ints) -> Ints:
        """Order codes of an order attribute for these row ids."""
        return self.gather(rows).ints([p.orders[j] for p in self.partitions])

    def times(self, rows: Ints) -> Ints:
        """Times of these row ids."""
        return self.gather(rows).ints([p.times for p in self.partitions])


class _Check(NamedTuple):
    """What the index does not see to: a stored column, how it is compared, and with what."""

    stored: Ints
    holds: Callable[[Ints, Ints], Any]
    probing: Ints


def _way(partition: Partition, request: Request) -> tuple[Access | Ranges, list[_Check]]:
    """How matches are found in a partition, and what is left to be checked of them.

    Without equality, the attribute to search by is one bounded on both sides, or the first.
    """
    left = request.comparisons
    checks = []
    if request.pattern:
        way: Access | Ranges = partition.index_for(request.pattern)
        if len(request.pattern) > 1:
            checks = [
                _Check(partition.keys[j], operator.eq, codes)
                for j, codes in zip(request.pattern, request.codes, strict=True)
            ]
    elif left:
        sides = {(c.order, c.op[0]) for c in left}
        banded = (c.order for c in left if {(c.order, "<"), (c.order, ">")} <= sides)
        by = next(banded, left[0].order)
        way = partition.order_index_for(by).ranges([c for c in left if c.order == by])
        left = tuple(c for c in left if c.order != by)
    else:
        way = Ranges.everything(len(request), len(partition))
    checks += [_Check(partition.orders[c.order], OPS[c.op], c.values) for c in left]
    return way, checks


def _verify(checks: Sequence[_Check], found: Found, begin: int, base: int) -> None:
    """Of the matches from `begin` on, keep those of which all checks hold."""
    rows = found.rows[begin : found.filled] - base
    positions = found.positions[begin : found.filled]
    keep = np.ones(len(rows), np.bool_)
    for check in checks:
        keep &= check.holds(check.stored[rows], check.probing[positions])
    found.keep(begin, keep)
