"""What an Eddy decides for a chunk of tuples, as a table: where each class goes, visit by visit.

Tuples that cannot be told apart by what decisions go by are a *class*. All that an Eddy would be
asked about a class on its way can be asked before it sets out: what it learns meanwhile is of use
to the next chunk::

    class   of               first visit        second visit     third visit
    0       plain tuples     {1,2,3} -> 2       {1,3} -> 1       {3} -> 3
    1       plain tuples     {1,2,3} -> 3       {1,2} -> 1       {2} -> 2
    2       one that         {1,2,3} -> 1       {2,3} -> 2       {3} -> 3
            profiles 1

A visit is an operator with its context, the operators that are still ahead. Each cell is a state of
the program that takes the tuples along (`index/probe/program.py`), and counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.classify.partitions import Attributes
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.routers.tables.alone import Alone
from querymesh.fabric.routers.visit_context import VisitContext

Visit = tuple[VisitContext, int]
"""A context, and the operator that is visited in it."""

CutBy = tuple[Attributes, int]
"""Attributes, and into how many partitions they are cut."""


class Asking(NamedTuple):
    """Tuples, or classes of them, that stand before a decision: so many, of one leaf, with one
    token; `codes` tells the partition that each is in."""

    token: RouteToken
    leaf: int
    rows: int
    codes: Callable[[CutBy], Ints]


Decide = Callable[[Asking], tuple[list[int], int | Ints]]
"""The operators that may be next, and the number of that which those who ask go to: one for all of
them, or one for each."""


@dataclass(frozen=True)
class Classes:
    """The leaf of each class, and the partitions that its tuples are in."""

    leaves: Ints
    codes: Mapping[CutBy, Ints] = field(default_factory=dict)

    def some(self, numbers: Ints) -> Classes:
        """The classes with these numbers, repeats allowed."""
        codes = {cut_by: each[numbers] for cut_by, each in self.codes.items()}
        return Classes(self.leaves[numbers], codes)


@dataclass(frozen=True)
class Table:
    """The visits that there are, and by level and class the number of the one that is made."""

    classes: Classes
    visits: tuple[Visit, ...]
    visit_of: Ints

    @cached_property
    def visit_of_state(self) -> Ints:
        """The visit of each state; those of the first level come first, in the order of classes."""
        return self.visit_of.ravel()

    @cached_property
    def operator_of_state(self) -> Ints:
        """The operator of each state."""
        return np.array([index for _, index in self.visits], np.int64)[self.visit_of_state]

    @cached_property
    def class_of_state(self) -> Ints:
        """The class of each state."""
        levels, count = self.visit_of.shape
        return np.tile(np.arange(count), levels)

    @cached_property
    def leaf_of_state(self) -> Ints:
        """The leaf of each state."""
        return np.tile(self.classes.leaves, self.visit_of.shape[0])

    def by_visit(self, numbers: Ints | Floats) -> list[float]:
        """Numbers by state, as sums by visit."""
        sums: list[float] = np.bincount(self.visit_of_state, numbers, len(self.visits)).tolist()
        return sums

    def some(self, numbers: Ints) -> Table:
        """A table of the classes with these numbers, repeats allowed."""
        return Table(self.classes.some(numbers), self.visits, self.visit_of[:, numbers])


class Chunk(NamedTuple):
    """The tuples of a chunk by class, and those that profile an operator, if there are any."""

    table: Table
    of_tuple: Ints
    alone: Alone | None


def table_of(
    token: RouteToken,
    classes: Classes,
    decide: Decide,
    leaf_at: Callable[[int, RouteToken], int],
) -> Table:
    """Decide where each class goes, from a token to its end; `leaf_at` is the leaf by which tuples
    are decided on where only this is ahead of them."""
    numbers: dict[Visit, int] = {}
    visit_of = np.zeros((token.ahead, len(classes.leaves)), np.int64)
    standing: dict[tuple[RouteToken, int], list[Ints]] = {}
    for leaf, count in enumerate(np.bincount(classes.leaves).tolist()):
        if not count:
            continue
        members = np.flatnonzero(classes.leaves == leaf)
        standing.setdefault((token, leaf_at(leaf, token)), []).append(members)
    for level in range(token.ahead):
        onward: dict[tuple[RouteToken, int], list[Ints]] = {}
        for (here, leaf), parts in standing.items():
            members = parts[0] if len(parts) == 1 else np.concatenate(parts)
            ready, chosen = decide(Asking(here, leaf, len(members), _codes_of(classes, members)))
            for index, going in _parted(ready, chosen, members):
                visit_of[level, going] = numbers.setdefault((here.context, index), len(numbers))
                after = (here.choose(index) if here.choices else here).pop()
                onward.setdefault((after, leaf_at(leaf, after)), []).append(going)
        standing = onward
    return Table(classes, tuple(numbers), visit_of)


def _parted(ready: list[int], chosen: int | Ints, members: Ints) -> Iterator[tuple[int, Ints]]:
    """Classes by the operator that they go to."""
    if isinstance(chosen, int):
        yield ready[chosen], members
        return
    for number, count in enumerate(np.bincount(chosen).tolist()):
        if count:
            yield ready[number], members if count == len(members) else members[chosen == number]


def _codes_of(classes: Classes, members: Ints) -> Callable[[CutBy], Ints]:
    return lambda cut_by: classes.codes[cut_by][members]
