"""Condensing: from a sample to a few weighted training tuples (QM § 4.3).

The paper condenses a sample of 1,000 into 10 or 100 generated tuples that keep the densities, so
that partitions of the training set can be searched at all. Here a training tuple stands for the
tuples of one region of content within which the operators behave alike: the regions are the leaves
of a tree induced to tell the *outcome patterns* (which operators passed the tuple), grown only
where an attribute's say over the outcomes is no accident. Its density is the tuples in the region.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from querymesh.classify.attributes import (
    Attribute,
    Codes,
    LeftOut,
    choose_attributes,
    one_piece,
)
from querymesh.classify.induce import Growth, induce
from querymesh.classify.tree import Split, Threshold, Tree, leaves_of
from querymesh.stats.profile import Floats, Ints, Profile

MAX_PATTERNS = 16


@dataclass(frozen=True)
class TrainingSet:
    """Profiled tuples, their attributes as bins, and the training tuple each belongs to."""

    profile: Profile
    attributes: list[Attribute]
    left_out: list[LeftOut]
    codes: list[Codes]
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


def condense(profile: Profile, size: int, chance: float = 0.01) -> TrainingSet:
    """At most `size` training tuples for the profiled sample."""
    attributes, left_out = choose_attributes(profile.sample)
    columns = {a.name: one_piece(profile.sample.column(a.name)) for a in attributes}
    codes = [attribute.codes(columns[attribute.name]) for attribute in attributes]
    rows = profile.rows
    growth = Growth(max_leaves=size, min_weight=max(5.0, 0.01 * rows), chance=chance)
    tree = induce(attributes, codes, outcome_patterns(profile.outcomes), np.ones(rows), growth)
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


def outcome_patterns(outcomes: Floats) -> npt.NDArray[np.int64]:
    """Each tuple's outcomes as one label: dropped, passed or multiplied by each operator.

    The rarest patterns share a last label, so that many operators do not drown the gain.
    """
    kinds = np.minimum(outcomes, 2.0).round().astype(np.int64)
    _, pattern, counts = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank[pattern.reshape(-1)], MAX_PATTERNS - 1)
