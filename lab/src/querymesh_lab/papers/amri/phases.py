"""AMRI § 9.1's synthetic streams: what is selective shifts, and with it the best order of states.

Each two of the streams a, b, c, d share a join attribute, whose values are uniform below a domain
size. In each phase the six sizes are dealt to the six pairs anew::

    tuple of each stream    0 ......... 5,000 ........ 10,000 ....... 15,000
    level of ab ac ad       3 0 4        1 5 2          4 0 3
             bc bd cd       5 1 2        0 4 3          2 5 1
    best order from a       d > b > c    c > d > b      b > d > c

A window holds tuples of up to three phases, and two values below D and D' are equal with a chance
of 1 / max(D, D'). So the tuples that an order makes are known exactly, and so is the best order of
each stream in each phase. `search` finds phases in which a stream has as many best orders as asked
for; those used are written down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats, Ints

STREAMS = "abcd"
PAIRS = ("ab", "ac", "ad", "bc", "bd", "cd")
Phase = tuple[int, ...]
"""The level of each pair, 0 for the smallest domain."""

ProbeOrder = tuple[str, ...]

MARGIN = 1.1
"""The second best order makes at least so many times the tuples of the best one: else a router
that learns could not tell them apart."""


@dataclass(frozen=True)
class Fluctuation:
    """How selectivities shift: phases of `phase_tuples` of each stream, over and over.

    `spread` is the factor from one level's domain to the next. With a geometric mean of the root of
    the window, a tuple would be in one result if selectivities stood still; `mean` is by how much
    it is larger.
    """

    phases: tuple[Phase, ...]
    phase_tuples: int = 5_000
    window: int = 10_000
    spread: float = 3.0
    mean: float = 1.5

    @property
    def domains(self) -> list[int]:
        """The number of values of an attribute, by level."""
        middle = self.mean * self.window**0.5
        return [round(middle * self.spread ** (level - 2.5)) for level in range(len(PAIRS))]

    def domain(self, pair: str, phase: int) -> int:
        """How many values a pair's attribute has in a phase."""
        return self.domains[self.phases[phase % len(self.phases)][PAIRS.index(pair)]]

    def streams(self, tuples: int, seed: int) -> dict[str, pa.RecordBatch]:
        """So many tuples of each stream, one a microsecond."""
        rng = np.random.default_rng(seed)
        phase = np.arange(tuples) // self.phase_tuples
        made = {}
        for stream in STREAMS:
            columns: dict[str, object] = {"id": np.arange(tuples)}
            for pair in PAIRS:
                if stream in pair:
                    sizes = np.array([self.domain(pair, p) for p in range(len(self.phases))])
                    columns[pair] = rng.integers(0, sizes[phase % len(sizes)])
            columns["ts"] = pa.array(np.arange(tuples), pa.timestamp("us"))
            made[stream] = pa.RecordBatch.from_pydict(columns)
        return made

    def tuples_made(self, stream: str, phase: int) -> dict[ProbeOrder, float]:
        """By order, the intermediate tuples that an arrival in the middle of a phase makes."""
        rows, phases = zip(*self._window_fill(phase), strict=True)
        sizes = np.stack([self._sizes(each) for each in phases])
        own = STREAMS.index(stream)
        one = np.array(rows)[:, None] / np.maximum(self._sizes(phase)[own], sizes[:, own])
        agreeing = 1 / np.maximum(sizes[:, None], sizes[None, :])
        two = np.einsum("qx,ry,qrxy->xy", one, one, agreeing)
        places = {order: [STREAMS.index(other) for other in order] for order in orders_of(stream)}
        return {
            order: float(one[:, first].sum() + two[first, second])
            for order, (first, second, _) in places.items()
        }

    def _sizes(self, phase: int) -> Floats:
        """The domain size of the attribute that two streams share, as a matrix."""
        sizes = np.ones((len(STREAMS), len(STREAMS)))
        for pair in PAIRS:
            one, other = map(STREAMS.index, pair)
            sizes[one, other] = sizes[other, one] = self.domain(pair, phase)
        return sizes

    def _window_fill(self, phase: int) -> list[tuple[int, int]]:
        """What a window holds in the middle of a phase: tuples, and the phase they came in."""
        parts: list[tuple[int, int]] = []
        left, this = self.window, self.phase_tuples // 2
        while left > 0:
            parts.append((min(this, left), phase - len(parts)))
            left, this = left - this, self.phase_tuples
        return parts

    def best_orders(self, stream: str) -> list[ProbeOrder]:
        """A stream's best order in each phase."""
        return [
            min((made := self.tuples_made(stream, phase)), key=made.__getitem__)
            for phase in range(len(self.phases))
        ]

    def paths(self) -> dict[str, int]:
        """By stream, how many orders are the best one at some time."""
        return {stream: len(set(self.best_orders(stream))) for stream in STREAMS}

    def margin(self) -> float:
        """How many times the best order's tuples the second best makes, where that is least."""
        return min(
            second / best
            for stream in STREAMS
            for phase in range(len(self.phases))
            for best, second in [sorted(self.tuples_made(stream, phase).values())[:2]]
        )


def orders_of(stream: str) -> list[ProbeOrder]:
    """The six orders in which a stream can probe the other three."""
    return list(permutations(other for other in STREAMS if other != stream))


def search(
    wanted: Mapping[str, int],
    phases: int,
    phase_tuples: int = 5_000,
    seed: int = 0,
    tries: int = 3_000,
) -> Fluctuation:
    """Phases with so many best orders of each stream and a margin between them, by climbing."""
    rng = np.random.default_rng(seed)
    best = Fluctuation(tuple(_dealt(rng) for _ in range(phases)), phase_tuples)
    score = _score(best, wanted)
    for _ in range(tries):
        if score >= 0:
            break
        changed = list(best.phases)
        changed[int(rng.integers(phases))] = _dealt(rng)
        other = replace(best, phases=tuple(changed))
        if (reached := _score(other, wanted)) >= score:
            best, score = other, reached
    return best


def _dealt(rng: np.random.Generator) -> Phase:
    dealt: Ints = rng.permutation(len(PAIRS))
    return tuple(dealt.tolist())


def _score(found: Fluctuation, wanted: Mapping[str, int]) -> float:
    off = sum(abs(count - wanted[stream]) for stream, count in found.paths().items())
    return min(found.margin() - MARGIN, 0.0) - off


def levels(text: Sequence[str]) -> tuple[Phase, ...]:
    """Phases written as the levels of ab, ac, ad, bc, bd, cd."""
    return tuple(tuple(map(int, phase)) for phase in text)
