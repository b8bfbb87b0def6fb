"""Condensing: from a sample to a few weighted training tuples (QM § 4.3).

The paper condenses a sample of 1,000 into 10 or 100 generated tuples that keep the densities, so
that partitions of the training set can be searched at all. Here a training tuple stands for the
tuples of one region of content within which the operators behave alike: the regions are the leaves
of a tree induced to tell the *outcome patterns* (which operators passed the tuple; with very many,
which one drops it at the least cost), grown only where an attribute's say over the outcomes is no
accident. Its density is the tuples in the region.

Below the training tuples lie the cells: the sampled tuples that no test of a classifier over these
regions can tell apart. A search handles one weighted cell instead of all its tuples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats, Ints
from querymesh.classify.attributes import Attribute, LeftOut, choose_attributes, one_piece
from querymesh.classify.induce import Growth, induce
from querymesh.classify.tree import Split, Threshold, Tree, leaves_of
from querymesh.deadline import NEVER, Deadline
from querymesh.stats.profile import Profile

MAX_PATTERNS = 16
MOST_RARE = 0.5


@dataclass(frozen=True)
class Cells:
    """Sampled tuples of the same bin in every attribute, as one.

    `of_row` is each sampled tuple's cell; `codes`, `member` (training tuple) and `weights` (how
    many sampled tuples) are by cell.
    """

    of_row: Ints
    codes: list[Ints]
    member: Ints
    weights: Floats

    @property
    def count(self) -> int:
        """How many cells there are."""
        return len(self.weights)

    def sums(self, of_rows: Floats) -> Floats:
        """The sum over each cell of one number a sampled tuple."""
        return np.bincount(self.of_row, of_rows, minlength=self.count).astype(np.float64)


@dataclass(frozen=True)
class TrainingSet:
    """Profiled tuples, their attributes as bins, and the training tuple each belongs to."""

    profile: Profile
    attributes: list[Attribute]
    left_out: list[LeftOut]
    codes: list[Ints]
    columns: dict[str, pa.Array]
    member: Ints
    size: int

    def column(self, name: str) -> pa.Array:
        """One column of the sample in one piece."""
        return self.columns[name]

    @property
    def weights(self) -> Floats:
        """The density of each training tuple: how many sampled tuples it stands for."""
        return np.bincount(self.member, minlength=self.size).astype(np.float64)

    @cached_property
    def cells(self) -> Cells:
        """The distinct combinations of bins. A cell lies in one training tuple's region."""
        together = np.zeros(len(self.member), dtype=np.int64)
        for attribute, codes in zip(self.attributes, self.codes, strict=True):
            _, together = np.unique(together * attribute.bins + codes, return_inverse=True)
        _, first, of_row = np.unique(together, return_index=True, return_inverse=True)
        weights = np.bincount(of_row, minlength=len(first)).astype(np.float64)
        codes_of_cell = [codes[first] for codes in self.codes]
        return Cells(of_row, codes_of_cell, self.member[first], weights)


def condense(
    profile: Profile, size: int, chance: float = 0.01, deadline: Deadline = NEVER
) -> TrainingSet:
    """At most `size` training tuples for the profiled sample, fewer at the deadline.

    A training tuple stands for at least 5 sampled ones, and for 1 % of them or, where many training
    tuples are asked for, a quarter of an even share.
    """
    attributes, left_out = choose_attributes(profile.sample)
    columns = {a.name: one_piece(profile.sample.column(a.name)) for a in attributes}
    codes = [attribute.codes(columns[attribute.name]) for attribute in attributes]
    rows = profile.rows
    least = max(5.0, min(0.01, 0.25 / size) * rows)
    growth = Growth(max_leaves=size, min_weight=least, chance=chance)
    tree = induce(attributes, codes, behaviours(profile), np.ones(rows), growth, deadline)
    member = np.zeros(rows, dtype=np.int64)
    filled = [region for region in leaves_of(tree, columns.__getitem__, rows) if len(region)]
    for number, region in enumerate(filled):
        member[region] = number
    asked = _asked(tree, attributes)
    codes = [attribute.codes(columns[attribute.name]) for attribute in asked]
    return TrainingSet(profile, asked, left_out, codes, columns, member, len(filled))


def _asked(tree: Tree, attributes: list[Attribute]) -> list[Attribute]:
    """The attributes the regions are made of, with only the thresholds that bound a region.

    Whatever partition of the regions a search proposes, no other test can tell its groups apart.
    """
    thresholds: dict[str, set[float]] = {}

    def collect(node: Tree) -> None:
        if isinstance(node, Split):
            found = thresholds.setdefault(node.test.attribute, set())
            if isinstance(node.test, Threshold):
                found.add(node.test.value)
            collect(node.yes)
            collect(node.no)

    collect(tree)
    return [
        replace(attribute, edges=np.array(sorted(thresholds[attribute.name])))
        if attribute.numeric
        else attribute
        for attribute in attributes
        if attribute.name in thresholds
    ]


def behaviours(profile: Profile) -> Ints:
    """What the operators did with each tuple, as one label: its outcome pattern or, where the
    operators are so many that most patterns are rare, its cheapest way out."""
    patterns = outcome_patterns(profile.outcomes)
    rare = patterns == MAX_PATTERNS - 1
    return cheapest_way_out(profile) if rare.mean() > MOST_RARE else patterns


def cheapest_way_out(profile: Profile) -> Ints:
    """The operator that drops each tuple at the least cost, with those that must precede it; 0 for
    a tuple that none drops."""
    least = np.full(profile.rows, np.inf)
    label = np.zeros(profile.rows, dtype=np.int64)
    for j, after in enumerate(profile.after):
        cost = float(profile.pass_us[[k - 1 for k in sorted(after)]].sum() + profile.drop_us[j])
        cheaper = (profile.outcomes[:, j] == 0) & (cost < least)
        least[cheaper], label[cheaper] = cost, j + 1
    return label


def outcome_patterns(outcomes: Floats) -> Ints:
    """Each tuple's outcomes as one label: dropped, passed or multiplied by each operator.

    The rarest patterns share a last label, so that many operators do not drown the gain.
    """
    kinds = np.minimum(outcomes, 2.0).round().astype(np.int64)
    _, pattern, counts = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank[pattern.reshape(-1)], MAX_PATTERNS - 1)
