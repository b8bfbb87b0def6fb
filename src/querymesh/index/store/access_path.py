"""How the matches of a request are found in one partition, and what is left to check of them.

cells    rows lie by bucket: look into the buckets that the request leaves open
hash     an index of the request's access pattern, or of the largest part of it that has one
order    no equality: the range of an attribute that is compared
scan     none of these: look at all rows
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from querymesh.arrays import Ints
from querymesh.index.store.access import Access
from querymesh.index.store.bit_index import Visit, scan
from querymesh.index.store.order_index import Ranges
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import OPS, OrderComparison, Pattern, Request


class Check(NamedTuple):
    """A condition that the index leaves open: a stored column, the comparison, and its values."""

    stored: Ints
    holds: Callable[[Ints, Ints], Any]
    probing: Ints


class AccessPath(NamedTuple):
    """Which index to look into, what to ask of it, and what to check of what is found."""

    access: Access | Visit | Ranges
    request: Request
    checks: list[Check]


def access_path(partition: Partition, request: Request) -> AccessPath:
    """How the matches of a request are found in a partition."""
    if partition.cells is not None:
        visit = partition.cells.visit(request, partition.keys, len(partition))
        if visit is None:
            return _scan(partition, request)
        checks = _equal(partition, request, visit.unchecked)
        return AccessPath(visit, request, checks + _ordered(partition, request.comparisons))
    if request.pattern:
        return _by_hash(partition, request)
    return _by_order(partition, request) if request.comparisons else _scan(partition, request)


def suitable(pattern: Pattern, patterns: Collection[Pattern]) -> Pattern:
    """The largest of some access patterns that the given one specifies in full (AMRI § 2.2); () if
    there is none.

    >>> suitable((0, 2), [(0,), (0, 1), (1, 2)])
    (0,)
    """
    within = [each for each in patterns if set(each) <= set(pattern)]
    return max(within, key=lambda each: (len(each), each), default=())


def _by_hash(partition: Partition, request: Request) -> AccessPath:
    pattern, asked = request.pattern, request
    if partition.patterns is not None:
        pattern = suitable(pattern, partition.patterns)
        if not pattern:
            return _scan(partition, request)
        asked = request.only(pattern)
    # The code of a single attribute is compared by the index; a combined one may be another's.
    seen_to = pattern if len(pattern) == 1 else ()
    checks = _equal(partition, request, set(request.pattern) - set(seen_to))
    index = partition.index_for(pattern)
    return AccessPath(index, asked, checks + _ordered(partition, request.comparisons))


def _by_order(partition: Partition, request: Request) -> AccessPath:
    """By an attribute that is bounded on both sides, or the first."""
    compared = request.comparisons
    sides = {(c.order, c.op[0]) for c in compared}
    banded = (c.order for c in compared if {(c.order, "<"), (c.order, ">")} <= sides)
    by = next(banded, compared[0].order)
    ranges = partition.order_index_for(by).ranges([c for c in compared if c.order == by])
    left = tuple(c for c in compared if c.order != by)
    return AccessPath(ranges, request, _ordered(partition, left))


def _scan(partition: Partition, request: Request) -> AccessPath:
    """All rows; attributes that are specified are compared as they are come to."""
    compared = _ordered(partition, request.comparisons)
    if not request.pattern:
        return AccessPath(Ranges.everything(len(request), len(partition)), request, compared)
    everything = scan(request, partition.keys, len(partition))
    checks = _equal(partition, request, everything.unchecked)
    return AccessPath(everything, request, checks + compared)


def _equal(partition: Partition, request: Request, which: Collection[int]) -> list[Check]:
    return [
        Check(partition.keys[j], operator.eq, codes)
        for j, codes in zip(request.pattern, request.codes, strict=True)
        if j in which
    ]


def _ordered(partition: Partition, comparisons: tuple[OrderComparison, ...]) -> list[Check]:
    return [Check(partition.orders[c.order], OPS[c.op], c.values) for c in comparisons]
