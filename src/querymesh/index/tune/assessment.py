"""Which access patterns a state is searched by, counted in little memory, AMRI § 5.2 to 5.4.

    sria           a count for each pattern
    csria          lossy counting: at the end of each segment of 1/ε requests, rare ones are dropped
    dia            as sria; the patterns are seen as a lattice
    cdia-random    hierarchical: rare ones are not dropped but added to a pattern of one attribute
    cdia-highest   less, which an index for them would help too; any one, or the most frequent one

The lattice of three attributes; a pattern provides a search benefit (Definition 4) to all that can
be reached downward, and its parents are those one level up::

                     ()
         (0)        (1)         (2)
        (0, 1)     (0, 2)     (1, 2)
                  (0, 1, 2)

The compact methods return all patterns of at least θ of all requests. The text tests the frequency
against θ (CDIA) or θ - ε (CSRIA, which adds a count, δ, to a frequency); here both test the most
that the count can be, count + δ, against θ. That is what makes the guarantee hold: a pattern of θ
or more is always found, one of less than θ - ε never on its own account. ε must be less than θ.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from querymesh.cost.index_cost import Pattern

Combine = Literal["highest", "random"]

_ROUNDING = 1e-9
"""θ · n may come out a little above the whole number that it is."""


class Assessment(Protocol):
    """Counts the access patterns of one state's search requests."""

    @property
    def requests(self) -> int:
        """How many requests were seen."""

    @property
    def entries(self) -> int:
        """How many patterns are kept: the memory."""

    def see(self, pattern: Pattern, count: int = 1) -> None:
        """Count some requests of one pattern, as if they came one after the other."""

    def result(self) -> dict[Pattern, float]:
        """Frequencies: the counts of the patterns found, by all requests seen."""

    def reset(self) -> None:
        """Forget all requests seen so far."""


def pattern_number(pattern: Pattern, attributes: int) -> int:
    """B(ap) of § 5.3.1: one bit for each attribute, the first of them most significant.

    >>> pattern_number((0,), 3)
    4
    """
    return sum(1 << (attributes - 1 - attribute) for attribute in pattern)


def parents(pattern: Pattern) -> list[Pattern]:
    """The patterns of one attribute less, in order; of the top of the lattice, none."""
    return [pattern[:at] + pattern[at + 1 :] for at in reversed(range(len(pattern)))]


_Count = TypeVar("_Count")


class _Table(Generic[_Count]):
    """Patterns with what is counted of each, and how many requests were seen."""

    def __init__(self) -> None:
        self._kept: dict[Pattern, _Count] = {}
        self.requests = 0

    @property
    def entries(self) -> int:
        """How many patterns are kept."""
        return len(self._kept)

    def reset(self) -> None:
        """Forget all requests seen so far."""
        self._kept = {}
        self.requests = 0


class Sria(_Table[int]):
    """Self reliant index assessment, § 5.3.1: a table of all patterns and their counts."""

    def see(self, pattern: Pattern, count: int = 1) -> None:
        """Count some requests of one pattern."""
        if count > 0:
            self._kept[pattern] = self._kept.get(pattern, 0) + count
            self.requests += count

    def result(self) -> dict[Pattern, float]:
        """All patterns (Definition 2), with their exact frequencies (Definition 1)."""
        return {pattern: count / self.requests for pattern, count in self._kept.items()}


class Dia(Sria):
    """Dependent index assessment, § 5.4.1: a SRIA table whose patterns are nodes of the lattice.

    It keeps and returns what SRIA does; the relations between nodes are there in their names. Only
    its compact form makes use of them.
    """


@dataclass(slots=True)
class _Entry:
    """Requests counted for a pattern, and how many there can have been that were not (δ)."""

    count: int
    missed: int


class _Compact(_Table[_Entry]):
    """What the compact methods share: segments, insertion, and a table that is compressed.

    A segment has ⌈1/ε⌉ requests. Segments are numbered from 1, as in lossy counting: the text's
    s_id = ⌊ε · λ_r⌋ would give the first entries an error δ = s_id - 1 of -1.
    """

    def __init__(self, threshold: float, error: float) -> None:
        if not 0 < error < threshold <= 1:
            raise ValueError(
                f"threshold {threshold} and error {error}: write 0 < error < threshold <= 1, or "
                "frequent patterns may be lost"
            )
        super().__init__()
        self._threshold = threshold
        self._segment_requests = math.ceil(1 / error)

    def see(self, pattern: Pattern, count: int = 1) -> None:
        """Count requests of one pattern, and compress at the end of each segment."""
        while count > 0:
            full = self.requests // self._segment_requests
            room = (full + 1) * self._segment_requests - self.requests
            seen = min(count, room)
            self._kept.setdefault(pattern, _Entry(0, full)).count += seen
            self.requests += seen
            count -= seen
            if seen == room:
                self._compress(full + 1)

    def _compress(self, segment: int) -> None:
        raise NotImplementedError

    def _frequent(self, entry: _Entry) -> bool:
        enough = self._threshold * self.requests * (1 - _ROUNDING)
        return entry.count + entry.missed >= enough


class Csria(_Compact):
    """Compact SRIA, § 5.3.2: Manku and Motwani's lossy counting of patterns.

    Every pattern of frequency θ or more is found. Counts are never too high and at most ε of all
    requests too low. After n requests no more than about 1/ε · ln(ε · n) patterns are kept; the
    paper has the number of possible patterns for n.
    """

    def result(self) -> dict[Pattern, float]:
        """The patterns that may have a frequency of θ or more."""
        return {
            pattern: entry.count / self.requests
            for pattern, entry in self._kept.items()
            if self._frequent(entry)
        }

    def _compress(self, segment: int) -> None:
        self._kept = {
            pattern: entry
            for pattern, entry in self._kept.items()
            if entry.count + entry.missed > segment
        }


class Cdia(_Compact):
    """Compact DIA, § 5.4.2: as a hierarchical heavy hitter, a rare pattern is counted for a parent.

    Nothing is lost, counts only move up: those of all kept patterns add up to the requests seen.
    So for each pattern found, of true frequency F and returned frequency R, and with ⊃ for the
    patterns that it provides a benefit to (Definition 5, read for a lattice, in which it depends on
    the parents chosen where counts go)::

        F - ε  <=  R  <=  F  +  Σ F of those ⊃ not found  +  ε for each of those ⊃ found

    and every pattern of frequency θ or more is found. What arrives at the top, (), and is less
    than θ there is left out: a scan costs the same in every index configuration.

    `combine` says which parent: the one of the highest count, or a random one. Either takes a
    parent that is kept, if there is one, and otherwise makes one.
    """

    def __init__(
        self, threshold: float, error: float, combine: Combine = "highest", seed: int = 0
    ) -> None:
        super().__init__(threshold, error)
        self._combine = combine
        self._random = random.Random(seed)

    def result(self) -> dict[Pattern, float]:
        """The patterns that may have a frequency of θ or more, with what is counted for them.

        From the bottom of the lattice: what is below θ is added to a parent.
        """
        nodes = {pattern: copy.copy(entry) for pattern, entry in self._kept.items()}
        chance = copy.copy(self._random)
        full = self.requests // self._segment_requests
        found: dict[Pattern, float] = {}
        for level in _levels_upward(nodes):
            for pattern in _of_level(nodes, level):
                if self._frequent(nodes[pattern]):
                    found[pattern] = nodes[pattern].count / self.requests
                elif pattern:
                    self._move_up(nodes, pattern, full, chance)
        return found

    def _compress(self, segment: int) -> None:
        """Leaves of less than the segment's number are moved up, from the bottom of the lattice. A
        leaf is a pattern that provides a benefit to no other one kept."""
        below: list[int] = []
        for level in _levels_upward(self._kept):
            for pattern in _of_level(self._kept, level):
                entry, number = self._kept[pattern], _bit_set(pattern)
                rare = entry.count + entry.missed < segment
                if pattern and rare and not any(number & each == number for each in below):
                    self._move_up(self._kept, pattern, segment - 1, self._random)
            below += [_bit_set(pattern) for pattern in self._kept if len(pattern) == level]

    def _move_up(
        self, nodes: dict[Pattern, _Entry], pattern: Pattern, missed: int, chance: random.Random
    ) -> None:
        """Count for a parent what was counted for a pattern; the first of equals, if not random."""
        every = parents(pattern)
        able = [parent for parent in every if parent in nodes] or every
        if self._combine == "random":
            parent = chance.choice(able)
        else:
            parent = max(able, key=lambda each: nodes[each].count if each in nodes else 0)
        nodes.setdefault(parent, _Entry(0, missed)).count += nodes.pop(pattern).count


def _levels_upward(nodes: Iterable[Pattern]) -> range:
    return range(max(map(len, nodes), default=-1), -1, -1)


def _of_level(nodes: Iterable[Pattern], level: int) -> list[Pattern]:
    return sorted(pattern for pattern in nodes if len(pattern) == level)


def _bit_set(pattern: Pattern) -> int:
    return sum(1 << attribute for attribute in pattern)


ASSESSMENTS: Mapping[str, Callable[[float, float, int], Assessment]] = {
    "sria": lambda threshold, error, seed: Sria(),
    "csria": lambda threshold, error, seed: Csria(threshold, error),
    "dia": lambda threshold, error, seed: Dia(),
    "cdia-random": lambda threshold, error, seed: Cdia(threshold, error, "random", seed),
    "cdia-highest": lambda threshold, error, seed: Cdia(threshold, error, "highest", seed),
}
"""By name, an assessment made of threshold θ, error ε and seed."""
