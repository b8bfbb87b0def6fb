"""Folding: what a mesh keeps once tuples that its search never saw have had their say.

A search prunes by the tuples it learned from (`search/prune.py`), and so keeps what these cannot
speak against: a leaf that gained by chance, a test that lists values by heart. Here every test is
asked again, from the leaves up, on tuples that were kept back::

    symbol in {A, B, … 20 more}?      fewer values, a range, or another column that does as well
      yes  3 > 1 > 2                  within the error takes its place; and where the test saves
      no   1 > 2 > 3                  nothing, both leaves are one, or one side is for all tuples

The tests to choose from are made of tuples that the search saw, the choice is by those it did not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Floats, Ints
from querymesh.classify.attributes import one_piece
from querymesh.classify.tree import (
    Leaf,
    Member,
    Split,
    Test,
    Tree,
    answers,
    attributes_of,
    leaves,
    leaves_of,
    only_used,
    paths_us,
)
from querymesh.cost.route_time import Overheads
from querymesh.optimize.train.general_tests import general_tests, is_long, size_of
from querymesh.stats.profile import Profile, Route

LEAST_JUDGES = 20
"""Fewer unseen tuples than this say nothing about a test."""


def folded(
    profile: Profile,
    tree: Tree,
    routes: tuple[Route, ...],
    unseen: Ints,
    overheads: Overheads,
) -> tuple[Tree, tuple[Route, ...]]:
    """The classifier without what does not pay on the `unseen` rows of the profile, and the routes
    that its labels now index."""
    if isinstance(tree, Leaf) or len(unseen) < LEAST_JUDGES:
        return tree, routes
    judges = np.zeros(profile.rows, dtype=bool)
    judges[unseen] = True
    folding = _Folding(profile, routes, judges, overheads, sorted(attributes_of(tree)))
    every = np.arange(profile.rows)
    return only_used(folding.reached(folding.part(tree, every).tree, every), routes)


@dataclass(frozen=True)
class _Part:
    """A subtree, and what each tuple that reaches it costs there, its tests included."""

    tree: Tree
    us: Floats


@dataclass(frozen=True)
class _Folding:
    """Folds one tree; `judges` marks the unseen tuples, `names` are the columns it asks about."""

    profile: Profile
    routes: tuple[Route, ...]
    judges: Bools
    overheads: Overheads
    names: list[str]
    columns: dict[str, pa.Array] = field(default_factory=dict)

    @cached_property
    def us(self) -> Floats:
        """What each tuple costs on each route."""
        return np.stack([self.profile.realized_us(route) for route in self.routes], axis=1)

    def column(self, name: str, rows: Ints) -> pa.Array:
        if name not in self.columns:
            self.columns[name] = one_piece(self.profile.sample.column(name))
        return self.columns[name].take(pa.array(rows))

    def reached(self, tree: Tree, rows: Ints) -> Tree:
        """The tree without tests of which all these rows know the answer: another test above may
        have taken it from them."""
        if not isinstance(tree, Split):
            return tree
        yes = answers(tree.test, self.column(tree.test.attribute, rows))
        if yes.all() or not yes.any():
            return self.reached(tree.yes if yes.any() else tree.no, rows)
        yes_tree, no_tree = self.reached(tree.yes, rows[yes]), self.reached(tree.no, rows[~yes])
        return Split(tree.test, yes_tree, no_tree)

    def can_judge(self, rows: Ints) -> bool:
        """Whether enough of these rows are judges."""
        return int(self.judges[rows].sum()) >= LEAST_JUDGES

    def part(self, tree: Tree, rows: Ints) -> _Part:
        """What is left of a subtree that these rows reach."""
        if isinstance(tree, Leaf):
            return self.costed(tree, rows)
        simpler: list[Tree] = []
        if len(rows):
            simpler.append(Leaf(int(self.us[rows].sum(axis=0).argmin())))
        whole = tree
        if isinstance(tree, Split):
            yes = answers(tree.test, self.column(tree.test.attribute, rows))
            sides = self.part(tree.yes, rows[yes]).tree, self.part(tree.no, rows[~yes]).tree
            if sides[0] == sides[1]:
                return self.costed(sides[0], rows)
            whole = Split(tree.test, *sides)
            moved = ((sides[0], rows[~yes]), (sides[1], rows[yes]))
            for_all = [side for side, others in moved if self.can_judge(others)]
            simpler += sorted(for_all, key=_leaf_count)
        split = self.split(whole, rows) if isinstance(whole, Split) else self.costed(whole, rows)
        for each in simpler:
            without = self.costed(each, rows)
            if not self.pays(split, without, rows):
                return without
        return split

    def costed(self, tree: Tree, rows: Ints) -> _Part:
        """A subtree with what these rows cost in it."""
        us = np.empty(len(rows))
        reached = leaves_of(tree, lambda name: self.column(name, rows), len(rows))
        paths = paths_us(tree, self.overheads.node_us)
        for (leaf, path_us), here in zip(paths, reached, strict=True):
            us[here] = self.us[rows[here], leaf.label] + path_us
        return _Part(tree, us)

    def pays(self, split: _Part, without: _Part, rows: Ints) -> bool:
        """Whether the judges save more by a split, over one leaf or one of its sides for all of
        them, than its leaves cost. That they save at all is enough, since the tuples of the search
        saved by more than the error of that; too few of them leave it as it is."""
        if not self.can_judge(rows):
            return True
        judging = self.judges[rows]
        saved = (without.us - split.us)[judging]
        more = _leaf_count(split.tree) - _leaf_count(without.tree)
        fixed_us = more * self.overheads.route_us(self.profile.operators) * int(self.judges.sum())
        return float(saved.sum()) > fixed_us

    def split(self, split: Split, rows: Ints) -> _Part:
        """The split by the most general of the tests that do as well as the best of them."""
        as_found = self.costed(split, rows)
        judging = self.judges[rows]
        if not isinstance(split.test, Member) or not is_long(split.test):
            return as_found
        if not self.can_judge(rows):
            return as_found
        yes, no = (self.costed(side, rows) for side in (split.yes, split.no))
        made: list[tuple[Test, _Part]] = [(split.test, as_found)]
        for test, as_yes in self._candidates(split.test, no.us - yes.us, rows):
            sides = (yes, no) if as_yes else (no, yes)
            answered = answers(test, self.column(test.attribute, rows))
            us = np.where(answered, sides[0].us, sides[1].us) + self.overheads.node_us
            made.append((test, _Part(Split(test, sides[0].tree, sides[1].tree), us)))
        _, best = min(made, key=lambda each: float(each[1].us[judging].sum()))
        for _, each in sorted(made, key=lambda each: size_of(each[0])):
            lost = (each.us - best.us)[judging]
            if float(lost.sum()) <= _error_of_sum(lost):
                return each
        return best

    def _candidates(self, test: Member, saved_us: Floats, rows: Ints) -> list[tuple[Test, bool]]:
        seen = ~self.judges[rows]
        return [
            found
            for name in self.names
            for found in general_tests(test, name, self.column(name, rows[seen]), saved_us[seen])
        ]


def _leaf_count(tree: Tree) -> int:
    return sum(1 for _ in leaves(tree))


def _error_of_sum(each: Floats) -> float:
    """The standard error of the sum."""
    return float(each.std(ddof=1)) * len(each) ** 0.5 if len(each) > 1 else 0.0
