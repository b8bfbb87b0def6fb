"""Where a search starts (QM § 4.7, "Selecting a start solution").

A start is a function from a problem and a random generator to a partition; a caller may give their
own in place of a name from `STARTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from querymesh.classify.attributes import one_piece
from querymesh.classify.tree import Tree, leaves_of
from querymesh.optimize.lattice import Partition, partition
from querymesh.optimize.problem import Problem
from querymesh.stats.profile import Floats, Route

PICKS = 4
CLOSENESS = 1 / 3


class Start(Protocol):
    """Chooses the partition that a search sets out from."""

    def __call__(self, problem: Problem, rng: np.random.Generator, /) -> Partition:
        """A partition of the problem's training tuples, numbered from 0."""
        ...


def content_driven(problem: Problem, _: np.random.Generator) -> Partition:
    """CDA: tuples of similar content form a group, whatever the operators do with them.

    The heaviest tuple leads the first group; each next one joins the first leader to which it is
    closer than CLOSENESS in *every* attribute, or leads a group of its own. The distance of two
    tuples in a number is that of their mean ranks, as a share of the domain; in a set of values it
    is the share of their sampled tuples that have different values.
    """
    distance = _content_distance(problem)
    groups: dict[int, list[int]] = {}
    for number in np.argsort(-problem.training.weights, kind="stable").tolist():
        near = (leader for leader in groups if distance[leader, number] < CLOSENESS)
        groups.setdefault(next(near, number), []).append(number)
    return partition(groups.values())


def _content_distance(problem: Problem) -> Floats:
    """The largest distance over the attributes of each two training tuples, from 0 to 1."""
    training = problem.training
    size, weights = training.size, training.weights
    distance = np.zeros((size, size))
    for attribute, codes in zip(training.attributes, training.codes, strict=True):
        bins = attribute.bins
        counts = np.bincount(training.member * bins + codes, minlength=size * bins)
        shares = counts.reshape(size, bins) / weights[:, None]
        if attribute.numeric:
            present = np.maximum(1.0 - shares[:, 0], 1e-12)
            mean = shares[:, 1:] @ np.arange(bins - 1) / present / max(bins - 2, 1)
            apart = np.abs(mean[:, None] - mean[None, :])
            missing = np.abs(shares[:, None, 0] - shares[None, :, 0])
            apart = np.maximum(apart * (1 - missing), missing)
        else:
            apart = 0.5 * np.abs(shares[:, None, :] - shares[None, :, :]).sum(axis=2)
        distance = np.maximum(distance, apart)
    return distance


def route_driven(problem: Problem, _: np.random.Generator) -> Partition:
    """RDA: the best route of each training tuple alone; tuples of one route form a group."""
    groups: dict[Route, list[int]] = {}
    for number in range(problem.training.size):
        groups.setdefault(problem.route((number,)), []).append(number)
    return partition(groups.values())


def random_pick(problem: Problem, rng: np.random.Generator) -> Partition:
    """RP: the cheapest of PICKS random partitions."""
    size = problem.training.size
    picks = []
    for _ in range(PICKS):
        labels = rng.integers(0, max(2, int(np.sqrt(size)) + 1), size)
        picks.append(partition([np.flatnonzero(labels == k).tolist() for k in np.unique(labels)]))
    return min(picks, key=lambda groups: problem.solve(groups).cost_us)


def extreme_1(problem: Problem, _: np.random.Generator) -> Partition:
    """E1R: one route for everything."""
    return partition([range(problem.training.size)])


def extreme_n(problem: Problem, _: np.random.Generator) -> Partition:
    """The other end of the lattice: a route for each training tuple."""
    return partition([number] for number in range(problem.training.size))


def from_tree(tree: Tree) -> Start:
    """A warm start from a classifier in use: training tuples are grouped by the leaf that most of
    their sampled tuples reach."""

    def from_leaves(problem: Problem, _: np.random.Generator) -> Partition:
        training = problem.training
        sample = training.profile.sample

        reached = leaves_of(tree, lambda name: one_piece(sample.column(name)), sample.num_rows)
        votes = np.stack(
            [np.bincount(training.member[rows], minlength=training.size) for rows in reached]
        )
        leaf = votes.argmax(axis=0)
        return partition([np.flatnonzero(leaf == k).tolist() for k in np.unique(leaf)])

    return from_leaves


STARTS: Mapping[str, Start] = {
    "content-driven": content_driven,
    "route-driven": route_driven,
    "random-pick": random_pick,
    "extreme-1": extreme_1,
    "extreme-n": extreme_n,
}
