"""Tests that say about the same as a long list of values, in fewer words.

A list is learned value by value, and a value that the sample has three times is learned from three
tuples. Of the tuples that reach a test each value has a say: what its tuples save, in standard
errors, on the side of yes. Candidates keep those values that have enough tuples and save enough;
where values have an order, a range may do; and so may another column that the tree asks anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Floats
from querymesh.classify.attributes import as_floats
from querymesh.classify.tree import Member, Test, Threshold

FEW_VALUES = 4
"""A test of no more values is as general as a list can be."""
MOST_VALUES = 256
"""A column of more values than this is not looked at."""
SUPPORTS = (1, 2, 3, 5, 8, 13)
LEAST_SCORES = (0.0, 1.0, 2.0)
"""A value is kept that has so many tuples at least, which save by more than so many errors."""


def is_long(test: Test) -> bool:
    """Whether a test is a list that a more general one could replace."""
    return isinstance(test, Member) and len(test.values) > FEW_VALUES


def size_of(test: Test) -> int:
    """How much a test says: the values that it lists, 1 for a range."""
    return len(test.values) if isinstance(test, Member) else 1


def general_tests(
    test: Member, name: str, column: pa.Array, saved_us: Floats
) -> Iterator[tuple[Test, bool]]:
    """More general tests on the column `name`, each with whether yes is still the side of yes.

    `column` has the tuples that reach the test, and `saved_us` what each saves on that side.
    """
    kind = column.type
    own = frozenset(test.values) if name == test.attribute else None
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        yield from _ranges(name, column, saved_us)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind) or _is_text(kind):
        yield from ((Member(name, few), True) for few in _lists(own, column, saved_us))
        if pa.types.is_integer(kind):
            yield from _ranges(name, column, saved_us)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _lists(
    own: frozenset[Any] | None, column: pa.Array, saved_us: Floats
) -> Iterator[tuple[Any, ...]]:
    """Lists of the values that save enough, of those in `own` if it is given; each once."""
    coded = pc.dictionary_encode(column)
    values = coded.dictionary.to_pylist()
    if len(values) > MOST_VALUES:
        return
    codes = np.asarray(pc.fill_null(coded.indices, len(values)), dtype=np.int64)
    tuples = np.bincount(codes, minlength=len(values) + 1)[:-1]
    saved = np.bincount(codes, saved_us, minlength=len(values) + 1)[:-1]
    error = float(saved_us.std()) * np.sqrt(np.maximum(tuples, 1))
    known = np.array([own is None or value in own for value in values], dtype=bool)
    made = set()
    for support in SUPPORTS:
        for least in LEAST_SCORES:
            keep = known & (tuples >= support) & (saved > least * error)
            few = tuple(sorted(value for value, kept in zip(values, keep, strict=True) if kept))
            if few and few not in made:
                made.add(few)
                yield few


def _ranges(name: str, column: pa.Array, saved_us: Floats) -> Iterator[tuple[Test, bool]]:
    """The cut below which, and the one above which, tuples save most; NULL stays with no."""
    there = np.flatnonzero(np.asarray(pc.is_valid(column)))
    numbers = as_floats(column)[there]
    there, numbers = there[~np.isnan(numbers)], numbers[~np.isnan(numbers)]
    order = np.argsort(numbers, kind="stable")
    numbers, upto = numbers[order], np.cumsum(saved_us[there][order])
    ends = np.flatnonzero(np.diff(numbers) > 0)
    if len(ends) == 0:
        return
    for yes_below in (True, False):
        saved = upto[ends] if yes_below else upto[-1] - upto[ends]
        at = int(ends[saved.argmax()])
        cut = float(numbers[at] + (numbers[at + 1] - numbers[at]) / 2)
        if np.isfinite(cut) and cut < numbers[at + 1]:
            yield Threshold(name, cut, null=not yes_below), yes_below
