"""Which partitions to merge, so that a probe meets few of them and a row is merged few times.

Partitions stand from oldest to newest. One is merged with all newer ones as soon as these together
hold FAN - 1 times its rows::

    sizes   64 16 16 16 4 4 1 1 1 +1     ->  64 16 16 16 4 4 4
    sizes   64 16 16 16 4 4 4 +4         ->  64 64

So a row's partition grows by a factor each time the row is moved, which makes O(log n) moves; and
where nothing is left to merge, each partition is more than a part of all that is newer, which makes
O(log n) partitions. In the other direction there is a limit: expired rows go partition by
partition, so a merged one spans at most a quarter of the window, unless it is tiny. One that can
grow no further without being too long takes its neighbours as far as they fit and is left alone.

Where rows come in disorder, each partition reaches back into the times of the one before it, and
what they share does not count: merging keeps no row of it for longer::

    |------ 1 ------|                    1 and 2 share what is marked; merged, the rows of 1 are
        |===========|- 2 -|              kept for longer by no more than the rest of 2
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

FAN = 4
FULL_PER_WINDOW = 4
TINY_ROWS = 4096


def to_merge(
    sizes: Sequence[int], firsts: Sequence[int], lasts: Sequence[int], span: int | None
) -> list[tuple[int, int]]:
    """Ranges [begin, end) of neighbours to merge, from oldest to newest.

    `span` is the length of the window in the unit of `firsts` and `lasts`, None if it never ends.

    >>> to_merge([9, 1, 1, 1], [0, 10, 11, 12], [9, 10, 11, 12], span=1000)
    []
    >>> to_merge([9, 1, 1, 1, 1], [0, 10, 11, 12, 13], [9, 10, 11, 12, 13], span=1000)
    [(1, 5)]
    """
    count = len(sizes)
    newer = list(accumulate(reversed(sizes), initial=0))[::-1]
    overlaps = [last - first for last, first in zip(lasts, firsts[1:], strict=False)]
    later = list(accumulate(reversed(overlaps), max, initial=0))[::-1]
    ranges = []
    begin = 0
    while begin < count:
        end = begin + 1
        if newer[end] >= (FAN - 1) * sizes[begin]:
            end = _reach(sizes, firsts, lasts, span, begin, later)
        if end > begin + 1:
            ranges.append((begin, end))
        begin = end
    return ranges


def _reach(
    sizes: Sequence[int],
    firsts: Sequence[int],
    lasts: Sequence[int],
    span: int | None,
    begin: int,
    later: Sequence[int],
) -> int:
    """How far a merged partition from `begin` on may go. `later` has, for each partition, how far
    any from the next on reaches back into the one before it."""
    if span is None:
        return len(sizes)
    rows, first, last = sizes[begin], firsts[begin], lasts[begin]
    shared = 0
    reach = begin + 1
    for end in range(begin + 1, len(sizes)):
        shared = max(shared, lasts[end - 1] - firsts[end])
        rows += sizes[end]
        first, last = min(first, firsts[end]), max(last, lasts[end])
        if rows < TINY_ROWS or (last - first - shared) * FULL_PER_WINDOW <= span:
            reach = end + 1
        elif lasts[end] - lasts[begin] > span or later[end] <= shared:
            break  # what is too long gets no shorter
    return reach
