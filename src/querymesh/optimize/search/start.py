"""Where a search starts (QM § 4.7, "Selecting a start solution").

A start is a function from a problem and a random generator to a partition; a caller may give their
own in place of a name from `STARTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats, Ints
from querymesh.classify.attributes import as_floats, null_mask, one_piece
from querymesh.classify.condense import TrainingSet
from querymesh.classify.tree import Tree, leaves_of
from querymesh.errors import TrainingError
from querymesh.optimize.search.lattice import Partition, partition
from querymesh.optimize.search.problem import Problem
from querymesh.optimize.strategy import name_of
from querymesh.stats.profile import Route

PICKS = 4
CLOSENESS = 1 / 3


class Start(Protocol):
    """Chooses the partition that a search sets out from."""

    def __call__(self, problem: Problem, rng: np.random.Generator, /) -> Partition:
        """A partition of the problem's training tuples, numbered from 0."""
        ...


def checked(start: Start) -> Start:
    """The start, perhaps a caller's own, with what it returns checked and written the one way."""

    def checked_start(problem: Problem, rng: np.random.Generator) -> Partition:
        returned: Any = start(problem, rng)
        every = list(range(problem.training.size))
        try:
            groups = partition([[index(number) for number in group] for group in returned])
        except TypeError:
            fault = "is no collection of groups of tuple numbers"
        else:
            fault = _fault(groups, every)
        if fault:
            raise TrainingError(
                f"start {name_of(start)} returned {returned!r}, which {fault}: a start "
                f"gives a partition of the training tuples 0 to {every[-1]}, see lattice.partition"
            )
        return groups

    return checked_start


def _fault(groups: Partition, every: list[int]) -> str:
    """What makes groups no partition, as the end of a sentence about them; empty if nothing."""
    given = sorted(number for group in groups for number in group)
    unknown = sorted(set(given).difference(every))
    missing = sorted(set(every).difference(given))
    twice = sorted({number for number in given if given.count(number) > 1})
    if unknown:
        return f"has unknown tuples {unknown}"
    if twice:
        return f"has the tuples {twice} more than once"
    return f"leaves out the tuples {missing}" if missing else ""


def content_driven(problem: Problem, _: np.random.Generator) -> Partition:
    """CDA: tuples of similar content form a group, whatever the operators do with them.

    The heaviest tuple leads the first group; each next one joins the first leader to which it is
    closer than CLOSENESS in *every* attribute, or leads a group of its own. The distance of two
    training tuples in a number is that of the mean ranks of their sampled tuples, as a share of the
    sample; in a set of values it is the share of their sampled tuples that have different values.
    """
    distance = _content_distance(problem.training)
    groups: dict[int, list[int]] = {}
    for number in np.argsort(-problem.training.weights, kind="stable").tolist():
        near = (leader for leader in groups if distance[leader, number] < CLOSENESS)
        groups.setdefault(next(near, number), []).append(number)
    return partition(groups.values())


def _content_distance(training: TrainingSet) -> Floats:
    """The largest distance over the attributes of each two training tuples, from 0 to 1."""
    distance = np.zeros((training.size, training.size))
    for attribute, codes in zip(training.attributes, training.codes, strict=True):
        if attribute.numeric:
            apart = _numbers_apart(training, training.column(attribute.name))
        else:
            shares = _shares(training, codes, attribute.bins)
            apart = 0.5 * np.abs(shares[:, None, :] - shares[None, :, :]).sum(axis=2)
        distance = np.maximum(distance, apart)
    return distance


def _numbers_apart(training: TrainingSet, column: pa.Array) -> Floats:
    """Distances by the values themselves: the regions' thresholds come from what operators do."""
    missing = null_mask(column)
    _, value, counts = np.unique(
        as_floats(column)[~missing], return_inverse=True, return_counts=True
    )
    middle = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1)  # equal values, equal ranks
    member = training.member[~missing]
    present = np.bincount(member, minlength=training.size)
    rank = np.bincount(member, middle[value.reshape(-1)], minlength=training.size)
    mean = rank / np.maximum(present, 1)
    absent = 1.0 - present / training.weights
    missing_apart = np.abs(absent[:, None] - absent[None, :])
    apart = np.abs(mean[:, None] - mean[None, :]) * (1 - missing_apart)
    return np.asarray(np.maximum(apart, missing_apart))


def _shares(training: TrainingSet, codes: Ints, bins: int) -> Floats:
    """The share of each bin in the sampled tuples of each training tuple."""
    counts = np.bincount(training.member * bins + codes, minlength=training.size * bins)
    return np.asarray(counts.reshape(training.size, bins) / training.weights[:, None])


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
