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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.routers.visit_context import VisitContext

Visit = tuple[VisitContext, int]
"""A context, and the operator that is visited in it."""

Decide = Callable[[Ruster], tuple[list[int], int | Ints]]
"""The operators that may be next, and the number of that which a ruster's tuples go to: one for all
of them, or one for each."""


@dataclass(frozen=True)
class Classes:
    """The tuples of a chunk by class: the class of each tuple; and of each class a tuple that
    stands for all, and the leaf."""

    of_tuple: Ints
    rows: Ints
    leaves: Ints


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

    def by_visit(self, counts: Ints | Floats) -> Floats:
        """Numbers by state, as sums by visit."""
        return np.bincount(self.visit_of_state, counts, len(self.visits))


def table_of(
    window: ClassificationWindow, token: RouteToken, classes: Classes, decide: Decide
) -> Table:
    """Decide where each class goes, from a token to its end."""
    numbers: dict[Visit, int] = {}
    visit_of = np.zeros((token.ahead, len(classes.rows)), np.int64)
    standing: dict[tuple[RouteToken, int], list[Ints]] = {}
    for leaf in np.unique(classes.leaves).tolist():
        standing[token, leaf] = [np.flatnonzero(classes.leaves == leaf)]
    for level in range(token.ahead):
        onward: dict[tuple[RouteToken, int], list[Ints]] = {}
        for (here, leaf), parts in standing.items():
            members = parts[0] if len(parts) == 1 else np.concatenate(parts)
            ready, chosen = decide(Ruster(window, classes.rows[members], here, leaf))
            for number in [chosen] if isinstance(chosen, int) else np.unique(chosen).tolist():
                going = members if isinstance(chosen, int) else members[chosen == number]
                index = ready[number]
                visit_of[level, going] = numbers.setdefault((here.context, index), len(numbers))
                sent = here.choose(index) if here.choices else here
                onward.setdefault((sent.pop(), leaf), []).append(going)
        standing = onward
    return Table(classes, tuple(numbers), visit_of)
