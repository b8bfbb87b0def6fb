"""The classifier as a table: the leaf of each tuple, without walking the tree for every one.

All tests on a column cut its values into bins: between two thresholds nothing changes, nor does it
among values that the same tests name. So the bins of a tuple's columns tell its leaf, and a table
has the leaf for each combination of bins::

    kind in {3}?                   bins of kind    3 | others | NULL
      yes  leaf 0                  bins of price   <= 10.5 | above | NULL
      no   price <= 10.5?
             yes  leaf 1           table           0 0 0 | 1 2 2 | 1 2 2
             no   leaf 2

A tree with more combinations than `MOST_COMBINATIONS` is walked (`classify.tree.leaves_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Ints
from querymesh.classify.attributes import as_floats, null_mask
from querymesh.classify.classifier import ColumnOf, classes_of
from querymesh.classify.tree import (
    Classes,
    Leaf,
    Member,
    Split,
    Test,
    Threshold,
    Tree,
    classifiers_of,
    leaves_of,
    tests_of,
)

MOST_COMBINATIONS = 1 << 18
DENSE_RANGE = 1 << 12
"""Whole numbers within so narrow a range are looked up by their distance from the least."""


@dataclass(frozen=True)
class Bins:
    """The values of one column as far as its tests tell them apart: bins between thresholds, or
    groups of values that the same tests name and one bin for all others; the last bin is NULL."""

    limits: tuple[float, ...]
    groups: tuple[tuple[Any, ...], ...]

    @property
    def count(self) -> int:
        """How many bins there are."""
        return (len(self.limits) if self.limits else len(self.groups)) + 2

    def of(self, column: pa.Array) -> Ints:
        """The bin of each row."""
        if self.limits:
            # NaN, the greatest number, is above every threshold.
            bins = np.searchsorted(self.limits, as_floats(column), "left").astype(np.int64)
        elif self.groups:
            bins = self._among(column)
        else:
            bins = np.zeros(len(column), np.int64)
        if column.null_count:
            bins[null_mask(column)] = self.count - 1
        return bins

    @cached_property
    def _group_of(self) -> dict[Any, int]:
        """The group of each value that a test names."""
        return {value: n for n, group in enumerate(self.groups) for value in group}

    def _among(self, column: pa.Array) -> Ints:
        if self._dense is not None and pa.types.is_integer(column.type) and not column.null_count:
            least, table = self._dense
            # What lies outside wraps around or is large: either way it is beyond the table.
            places = np.asarray(column).astype(np.int64).view(np.uint64) - np.uint64(least)
            return np.asarray(table[np.minimum(places, np.uint64(len(table) - 1)).view(np.int64)])
        found = pc.index_in(column, value_set=pa.array([*self._group_of], column.type))
        numbers = np.array([*self._group_of.values(), len(self.groups)])
        return numbers[np.asarray(pc.fill_null(found, len(numbers) - 1), dtype=np.int64)]

    @cached_property
    def _dense(self) -> tuple[int, Ints] | None:
        """The least value and, from there on, the bin of each whole number; None if values are far
        apart or no numbers. (Differences are taken modulo 2^64, as are those of the rows.)"""
        values = self._group_of
        if not all(type(value) is int for value in values):
            return None
        least, greatest = min(values), max(values)
        if greatest - least >= DENSE_RANGE:
            return None
        table = np.full(greatest - least + 2, len(self.groups))
        table[np.array([value - least for value in values])] = [*values.values()]
        return int(least) % 2**64, table

    def answers(self, test: Test) -> Bools:
        """What a test says of all values of each bin."""
        if isinstance(test, Threshold):
            below = np.arange(self.count) <= self.limits.index(test.value)
            below[-1] = test.null
            return np.asarray(below, bool)
        if isinstance(test, Member):
            named = [group[0] in test.values for group in self.groups]
            return np.array([*named, False, False])
        return np.asarray(np.arange(self.count) == self.count - 1, bool)


@dataclass(frozen=True)
class LeafNumbers:
    """A decision tree that tells each row the number of its leaf, from left to right."""

    tree: Tree

    @cached_property
    def _bins(self) -> dict[str, Bins] | None:
        """The bins of each column; None where they do not tell the leaf, or are too many."""
        if any(classifiers_of(self.tree)):
            return None
        tests: dict[str, list[Test]] = {}
        for test in tests_of(self.tree):
            tests.setdefault(test.attribute, []).append(test)
        bins = {name: _bins_of(each) for name, each in tests.items()}
        known = {name: each for name, each in bins.items() if each is not None}
        combinations = int(np.prod([float(each.count) for each in known.values()]))
        return known if len(known) == len(bins) and combinations <= MOST_COMBINATIONS else None

    @cached_property
    def _table(self) -> Ints:
        """The leaf of each combination of bins, those of the last column side by side."""
        bins = self._bins or {}
        table = np.empty([each.count for each in bins.values()], np.int64)
        self._fill(table, self.tree, {n: np.arange(b.count) for n, b in bins.items()}, 0)
        return table.ravel()

    def _fill(self, table: Ints, node: Tree, reaching: Mapping[str, Ints], number: int) -> int:
        """Number the leaves below a node, which rows with these bins reach; the next number."""
        if not isinstance(node, Split):
            table[np.ix_(*reaching.values())] = number
            return number + 1
        assert self._bins is not None
        name = node.test.attribute
        bins = reaching[name]
        yes = self._bins[name].answers(node.test)[bins]
        number = self._fill(table, node.yes, {**reaching, name: bins[yes]}, number)
        return self._fill(table, node.no, {**reaching, name: bins[~yes]}, number)

    def of(self, column: ColumnOf, rows: int) -> Ints:
        """The leaf of each row."""
        if isinstance(self.tree, Leaf):
            return np.zeros(rows, np.int64)
        if isinstance(self.tree, Classes):
            return classes_of(self.tree.classifier, column, rows, len(self.tree.ends))
        if self._bins is None:
            leaves = np.empty(rows, np.int64)
            for leaf, reached in enumerate(leaves_of(self.tree, column, rows)):
                leaves[reached] = leaf
            return leaves
        combined: Ints | None = None
        for name, bins in self._bins.items():
            own = bins.of(column(name))
            combined = own if combined is None else combined * bins.count + own
        return np.asarray(self._table[combined])


def _bins_of(tests: Sequence[Test]) -> Bins | None:
    """The bins of a column; None where some tests ask for a threshold and some for values."""
    limits = sorted({test.value for test in tests if isinstance(test, Threshold)})
    members = [test for test in tests if isinstance(test, Member)]
    if limits and members:
        return None
    groups: dict[tuple[bool, ...], list[Any]] = {}
    for value in dict.fromkeys(value for test in members for value in test.values):
        groups.setdefault(tuple(value in test.values for test in members), []).append(value)
    return Bins(tuple(limits), tuple(map(tuple, groups.values())))
