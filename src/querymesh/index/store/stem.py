"""The STeM of one stream: its partitions from oldest to newest, to insert, probe and evict.

    row ids    0 ........ 5 ... 8 . 9      a row's id is its partition's base plus its number there;
               [ oldest   ][   ][ ][ ]     it holds until the next insert, evict or compact

A probe looks into each partition whose times can meet the request's, through the index for the
request's access pattern: `index/probe/program.py` takes tuples through the states of several
streams, by the tables that a STeM keeps of its partitions. Several attributes are found by
one combined code, and then compared one by one. What is left to the caller: codes of texts and
other wide values are hashes, so where `equality_codes` says that they are not exact, the values of
a match have to be compared as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.index.kernels import travel as t
from querymesh.index.store.columns import NO_INTS
from querymesh.index.store.gather import Gather
from querymesh.index.store.index_plan import HashPlan, IndexPlan
from querymesh.index.store.merging import to_merge
from querymesh.index.store.partition import Partition, concat
from querymesh.index.store.request import Asked, Pattern

_MOST_MERGED_BYTES = 1 << 30
"""Arrow counts the bytes of a text column in 31 bits; well before that, there is no use in more."""


_ABSENT = np.zeros(t.A_WIDTH, np.int64)

_Layout = tuple[int, int, str | None]
"""How a partition is described: room for so many key and order codes, and a column of times."""


class Merged(NamedTuple):
    """Partitions that were merged, and the one that replaces them."""

    old: tuple[Partition, ...]
    new: Partition


class Stem:
    """The state of one stream.

    `plan` is how merged partitions are indexed. From the beginning are counted: `probes`, probing
    rows, also by access pattern (`requests`); `comparisons`, the stored rows they looked at; and
    `index_seconds`, the time it took to merge partitions and to lay them out.
    """

    def __init__(self, schema: pa.Schema | None = None, plan: IndexPlan | None = None) -> None:
        self.partitions: tuple[Partition, ...] = ()
        self.plan: IndexPlan = plan or HashPlan()
        self.probes = 0
        self.comparisons = 0
        self.requests: Counter[Pattern] = Counter()
        self.index_seconds = 0.0
        self._schema = schema
        self._hold(())

    def _hold(self, partitions: tuple[Partition, ...]) -> None:
        self.partitions = partitions
        self._bases: Ints = np.cumsum([0, *map(len, partitions)], dtype=np.int64)
        self._gathered: tuple[Ints, Gather] | None = None
        self._described: dict[_Layout, Ints] = {}
        self._access: dict[Asked, Ints] = {}

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self._bases[-1])

    @property
    def nbytes(self) -> int:
        """Memory of all partitions with their indices."""
        return sum(partition.nbytes for partition in self.partitions)

    @property
    def index_bytes(self) -> int:
        """Memory of the indices alone."""
        return sum(partition.index_bytes for partition in self.partitions)

    def insert(self, partition: Partition) -> None:
        """Add the newest partition, as it is; the tables of the others stand."""
        self._schema = partition.rows.schema
        described = {
            layout: np.concatenate([table, _with_base(partition, layout, self.rows)])
            for layout, table in self._described.items()
        }
        access = {
            asked: np.concatenate([table, _access_of(partition, asked)])
            for asked, table in self._access.items()
        }
        self.partitions = (*self.partitions, partition)
        self._bases = np.append(self._bases, self.rows + len(partition))
        self._gathered, self._described, self._access = None, described, access

    def laid_out(self, partition: Partition) -> Partition:
        """A partition, indexed as planned."""
        started = perf_counter()
        there = self.plan.lay_out(partition)
        self.index_seconds += perf_counter() - started
        return there

    def replan(self, chosen: Sequence[bool]) -> int:
        """Lay partitions out as planned, from the oldest on those that are chosen, and tell how
        many rows were moved."""
        moved = 0
        partitions = []
        for partition, move in zip(self.partitions, chosen, strict=True):
            there = self.laid_out(partition) if move else partition
            moved += len(there) if there is not partition else 0
            partitions.append(there)
        self._hold(tuple(partitions))
        return moved

    def settle(self) -> None:
        """End a step: all rows came earlier than those of the next."""
        unsettled = [n for n, part in enumerate(self.partitions) if part.serials is not None]
        if not unsettled:
            return
        partitions = [*self.partitions]
        for number in unsettled:
            partitions[number] = partitions[number].settled()
        self.partitions = tuple(partitions)
        for (keys, orders, _), table in self._described.items():
            table[t.P_SERIALS :: t.P_CODES + keys + orders] = 0

    def evict(self, before: int) -> int:
        """Drop partitions that have only rows of earlier times, and tell how many rows went."""
        left = tuple(p for p in self.partitions if p.last >= before)
        if len(left) == len(self.partitions):
            return 0
        had = self.rows
        self._hold(left)
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
        started = perf_counter()
        merged = self.plan.lay_out(concat(partitions))
        self.index_seconds += perf_counter() - started
        return merged

    def described(self, keys: int, orders: int, event_time: str | None = None) -> Ints:
        """The partitions as rows of `parts` (`index/kernels/travel.py`), for a program whose
        relations have up to so many key and order codes."""
        layout = keys, orders, event_time
        if layout not in self._described:
            rows = [p.described(*layout) for p in self.partitions]
            table = np.concatenate([*rows, NO_INTS])
            table[t.P_BASE :: t.P_CODES + keys + orders] = self._bases[:-1]
            self._described[layout] = table
        return self._described[layout]

    def access(self, asked: Asked) -> Ints:
        """The ways to matches in all partitions, as rows of `access`; those that nobody came to yet
        are `ABSENT`, to be filled in by who comes."""
        if asked not in self._access:
            rows = [_access_of(partition, asked) for partition in self.partitions]
            self._access[asked] = np.concatenate([*rows, NO_INTS])
        return self._access[asked]

    def count_requests(self, asked: Asked, probes: int, looked: int) -> None:
        """Take note of probing rows, and of the stored rows they looked at."""
        self.probes += probes
        self.comparisons += looked
        if self.partitions and probes:
            self.requests[asked.specified(len(self.partitions[0].keys))] += probes

    def located(self, rows: Ints) -> tuple[Ints, Ints]:
        """The partition of each row id, by number, and the row's number in it."""
        partitions = np.searchsorted(self._bases[1:], rows, "right")
        return partitions, rows - self._bases[partitions]

    def gather(self, rows: Ints) -> Gather:
        """Rows, by id, made ready to take columns of them. The same array object is not sorted
        twice in a row: it must not be changed in between."""
        if self._gathered is None or self._gathered[0] is not rows:
            self._gathered = rows, Gather(np.ascontiguousarray(rows, np.int64), self._bases)
        return self._gathered[1]

    def take(self, name: str, rows: Ints) -> pa.Array:
        """A column of the stream for these row ids."""
        kind = pa.null() if self._schema is None else self._schema.field(name).type
        return self.gather(rows).arrow([p.columns for p in self.partitions], name, kind)

    def key(self, j: int, rows: Ints) -> Ints:
        """Equality codes of a join attribute for these row ids."""
        return self.gather(rows).ints([p.keys[j] for p in self.partitions])

    def order(self, j: int, rows: Ints) -> Ints:
        """Order codes of an order attribute for these row ids."""
        return self.gather(rows).ints([p.orders[j] for p in self.partitions])

    def times(self, rows: Ints) -> Ints:
        """Times of these row ids."""
        return self.gather(rows).ints([p.times for p in self.partitions])


def _with_base(partition: Partition, layout: _Layout, base: int) -> Ints:
    """The row of a partition whose first row has this id."""
    row = partition.described(*layout).copy()
    row[t.P_BASE] = base
    return row


def _access_of(partition: Partition, asked: Asked) -> Ints:
    """The way to a request's matches as far as someone came to it."""
    return partition.access[asked].row if asked in partition.access else _ABSENT
