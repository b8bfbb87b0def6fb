"""The lattice of partitions, QM § 4.3: the search space of multi-route configurations.

A node is a partition of the training tuples, written as in the paper's example 2: `12/34`. One step
along an edge splits a subset or merges two; a move of one tuple is a split and a merge in one.
There are Bell(n) nodes (eq. 1), one for each restricted growth string: the number of the subset of
each tuple, where a new subset takes the next free number::

    0000 = 1234      0001 = 123/4      0011 = 12/34      0123 = 1/2/3/4
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from math import comb, factorial

import numpy as np

Group = tuple[int, ...]
Partition = tuple[Group, ...]


def partition(groups: Iterable[Iterable[int]]) -> Partition:
    """The one way to write a partition: tuples sorted, groups by their first tuple, none empty.

    A group is whatever has numbers: a list, a range, a set, a numpy array.
    """
    lists = (group.tolist() if isinstance(group, np.ndarray) else group for group in groups)
    ordered = (tuple(sorted(group)) for group in lists)
    return tuple(sorted(group for group in ordered if group))


def partition_text(groups: Partition) -> str:
    """A partition as the paper writes it, tuples numbered from 1.

    >>> partition_text(partition([[2, 0], [1], [3]]))
    '13/2/4'
    """
    names = [[str(tuple_ + 1) for tuple_ in group] for group in groups]
    joiner = "" if all(len(name) == 1 for group in names for name in group) else ","
    return "/".join(joiner.join(group) for group in names)


def stirling_number(n: int, k: int) -> int:
    """S(n, k): the ways to partition n tuples into exactly k subsets."""
    signed: list[int] = [(-1) ** (k - j) * comb(k, j) * j**n for j in range(k + 1)]
    return sum(signed) // factorial(k)


def bell_number(n: int) -> int:
    """Eq. 1, the size of the search space: the sum of the Stirling numbers.

    The paper prints C(n, j) in the inner sum; the Stirling number, and its own B_4 = 15, ask for
    C(k, j).

    >>> [bell_number(n) for n in range(1, 9)]
    [1, 2, 5, 15, 52, 203, 877, 4140]
    """
    return sum(stirling_number(n, k) for k in range(n + 1))


def every_partition(n: int) -> Iterator[Partition]:
    """All Bell(n) partitions of n tuples, once each, in the order of their growth strings.

    >>> [partition_text(groups) for groups in every_partition(3)]
    ['123', '12/3', '13/2', '1/23', '1/2/3']
    """
    groups: list[list[int]] = []

    def assign(number: int) -> Iterator[Partition]:
        if number == n:
            yield tuple(tuple(group) for group in groups)
            return
        for group in groups:
            group.append(number)
            yield from assign(number + 1)
            group.pop()
        groups.append([number])
        yield from assign(number + 1)
        groups.pop()

    return assign(0)


def neighbours(groups: Partition) -> Iterator[Partition]:
    """Every partition one step away, once each: splits, then merges, then moves."""
    yield from splits(groups)
    yield from merges(groups)
    yield from moves(groups)


def neighbour_count(groups: Partition) -> int:
    """How many `neighbours` there are.

    >>> neighbour_count(partition([[0], [1, 2, 3]]))
    7
    """
    count = len(groups)
    to_split: int = sum(2 ** (len(group) - 1) - 1 for group in groups)
    to_move = sum(len(group) for group in groups if len(group) > 1)
    return to_split + comb(count, 2) + to_move * (count - 1)


def splits(groups: Partition) -> Iterator[Partition]:
    """One subset in two: 1/234 gives 1/2/34, 1/23/4 and 1/24/3."""
    for i, group in enumerate(groups):
        rest = groups[:i] + groups[i + 1 :]
        first, others = group[0], group[1:]
        for size in range(len(others)):
            for beside in combinations(others, size):
                away = tuple(t for t in others if t not in beside)
                yield partition([*rest, (first, *beside), away])


def merges(groups: Partition) -> Iterator[Partition]:
    """Two subsets in one: 1/23/4 gives 123/4, 14/23 and 1/234."""
    for a, b in combinations(range(len(groups)), 2):
        yield _merged(groups, a, b)


def moves(groups: Partition) -> Iterator[Partition]:
    """One tuple from a subset that keeps others to another subset: 1/234 gives 12/34 and so on."""
    for source, group in enumerate(groups):
        if len(group) > 1:
            for moved in group:
                for target in range(len(groups)):
                    if target != source:
                        yield _moved(groups, source, target, moved)


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


def _two(count: int, rng: np.random.Generator) -> tuple[int, int]:
    """Two different numbers below `count`."""
    first, second = int(rng.integers(count)), int(rng.integers(count - 1))
    return first, second + (second >= first)


def _merge(groups: Partition, rng: np.random.Generator) -> Partition:
    return _merged(groups, *_two(len(groups), rng))


def _split(groups: Partition, rng: np.random.Generator) -> Partition:
    large = [i for i, group in enumerate(groups) if len(group) > 1]
    chosen = large[int(rng.integers(len(large)))]
    members = rng.permutation(groups[chosen]).tolist()
    cut = int(rng.integers(1, len(members)))
    rest = [group for i, group in enumerate(groups) if i != chosen]
    return partition([*rest, members[:cut], members[cut:]])


def _move(groups: Partition, rng: np.random.Generator) -> Partition:
    source, target = _two(len(groups), rng)
    moved = groups[source][int(rng.integers(len(groups[source])))]
    return _moved(groups, source, target, moved)


def _merged(groups: Partition, a: int, b: int) -> Partition:
    rest = [group for i, group in enumerate(groups) if i not in (a, b)]
    return partition([*rest, groups[a] + groups[b]])


def _moved(groups: Partition, source: int, target: int, moved: int) -> Partition:
    changed = [list(group) for group in groups]
    changed[source].remove(moved)
    changed[target].append(moved)
    return partition(changed)
