"""The lattice of partitions, QM § 4.3: the search space of multi-route configurations.

A node is a partition of the training tuples, written as in the paper's example 2: `12/34`. One step
along an edge splits a subset or merges two; a move of one tuple is a split and a merge in one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

Partition = tuple[tuple[int, ...], ...]


def partition(groups: Iterable[Iterable[int]]) -> Partition:
    """The one way to write a partition: tuples sorted, groups by their first tuple, none empty."""
    return tuple(sorted(tuple(sorted(group)) for group in groups if group))


def partition_text(groups: Partition) -> str:
    """A partition as the paper writes it, tuples numbered from 1.

    >>> partition_text(partition([[2, 0], [1], [3]]))
    '13/2/4'
    """
    names = [[str(tuple_ + 1) for tuple_ in group] for group in groups]
    joiner = "" if all(len(name) == 1 for group in names for name in group) else ","
    return "/".join(joiner.join(group) for group in names)


def random_neighbour(groups: Partition, rng: np.random.Generator) -> Partition:
    """One random split, merge or move away; the partition itself where it has no neighbour."""
    steps = []
    if len(groups) > 1:
        steps += [_merge, _move]
    if any(len(group) > 1 for group in groups):
        steps.append(_split)
    if not steps:
        return groups
    return steps[int(rng.integers(len(steps)))](groups, rng)


def _merge(groups: Partition, rng: np.random.Generator) -> Partition:
    a, b = rng.choice(len(groups), size=2, replace=False)
    rest = [group for i, group in enumerate(groups) if i not in (a, b)]
    return partition([*rest, groups[a] + groups[b]])


def _split(groups: Partition, rng: np.random.Generator) -> Partition:
    large = [i for i, group in enumerate(groups) if len(group) > 1]
    chosen = large[int(rng.integers(len(large)))]
    members = rng.permutation(groups[chosen]).tolist()
    cut = int(rng.integers(1, len(members)))
    rest = [group for i, group in enumerate(groups) if i != chosen]
    return partition([*rest, members[:cut], members[cut:]])


def _move(groups: Partition, rng: np.random.Generator) -> Partition:
    source, target = rng.choice(len(groups), size=2, replace=False)
    moved = groups[source][int(rng.integers(len(groups[source])))]
    changed = [list(group) for group in groups]
    changed[source].remove(moved)
    changed[target].append(moved)
    return partition(changed)
