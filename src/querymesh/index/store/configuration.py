"""An index configuration (AMRI § 4.1): how many bits of a bucket's number each join attribute gets.

Attributes are numbered: first those compared for equality, then those compared by < <= > >=. Five
bits for A1, two for A2 and three for A3 put a row whose values map to 00111, 11 and 010 here::

    A1      A2   A3
    00111   11   010     bucket 250

and a probe that specifies A1 and A3 looks into 226, 234, 242 and 250. Where the attributes that a
probe leaves open have the lowest bits, its buckets lie side by side, and are one range of rows:
`sequence` says which attribute comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from querymesh.index.store.request import Pattern

MOST_BITS = 20
"""A million buckets, whose offsets take 4 MB."""


@dataclass(frozen=True)
class Configuration:
    """Bits by attribute, of which `keys` are compared for equality; `sequence` from the highest
    bits to the lowest, those that are compared by order always last.

    >>> Configuration((5, 2, 3), keys=3).shifts
    (5, 3, 0)
    """

    bits: tuple[int, ...]
    keys: int
    sequence: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(bits < 0 for bits in self.bits) or sum(self.bits) > MOST_BITS:
            raise ValueError(
                f"an index configuration has 0 to {MOST_BITS} bits in all, not {self.bits}"
            )
        given = self.sequence or tuple(range(len(self.bits)))
        if sorted(given) != list(range(len(self.bits))):
            raise ValueError(f"{given} is no sequence of {len(self.bits)} attributes")
        ordered = sorted(given, key=lambda j: j >= self.keys)
        object.__setattr__(self, "sequence", tuple(ordered))

    @property
    def total(self) -> int:
        """All bits: there are two to the power of this buckets."""
        return sum(self.bits)

    @property
    def shifts(self) -> tuple[int, ...]:
        """By attribute, how many bits lie below its own."""
        shifts = [0] * len(self.bits)
        below = 0
        for j in reversed(self.sequence):
            shifts[j] = below
            below += self.bits[j]
        return tuple(shifts)

    def bucket(self, cells: Sequence[int]) -> int:
        """The bucket of a row whose values map to these cells, one an attribute.

        >>> Configuration((5, 2, 3), keys=3).bucket((0b00111, 0b11, 0b010))
        250
        """
        return sum(cell << shift for cell, shift in zip(cells, self.shifts, strict=True))

    def buckets(self, cells: Mapping[int, int]) -> list[int]:
        """The buckets of a probe that specifies some attributes, all values of the others tried.

        >>> Configuration((5, 2, 3), keys=3).buckets({0: 0b00111, 2: 0b010})
        [226, 234, 242, 250]
        """
        found = [0]
        for j, shift in enumerate(self.shifts):
            tried = [cells[j]] if j in cells else range(1 << self.bits[j])
            found = [bucket + (cell << shift) for bucket in found for cell in tried]
        return sorted(found)

    def for_rows(self, rows: int) -> Configuration:
        """The same with no more buckets than rows: bits go where there are most of them.

        >>> Configuration((5, 2, 3), keys=3).for_rows(70).bits
        (2, 2, 2)
        """
        bits = list(self.bits)
        most = max(rows.bit_length() - 1, 0)
        while sum(bits) > most:
            bits[max(reversed(self.sequence), key=bits.__getitem__)] -= 1
        return Configuration(tuple(bits), self.keys, self.sequence)

    def to_json(self) -> dict[str, Any]:
        """The configuration as plain data, for JSON."""
        return {"bits": list(self.bits), "keys": self.keys, "sequence": list(self.sequence)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Configuration:
        """The configuration that `to_json` wrote."""
        bits, sequence = tuple(map(int, stored["bits"])), tuple(map(int, stored["sequence"]))
        return cls(bits, int(stored["keys"]), sequence)


def in_sequence(
    bits: Sequence[int], keys: int, frequencies: Mapping[Pattern, float]
) -> Configuration:
    """A configuration whose attributes lie by how often they are specified, most often first."""

    def asked(j: int) -> float:
        return sum(share for pattern, share in frequencies.items() if j in pattern)

    return Configuration(
        tuple(bits), keys, tuple(sorted(range(len(bits)), key=lambda j: -asked(j)))
    )


def evenly(bits: int, attributes: int, keys: int) -> Configuration:
    """Bits for an unknown workload: the same for all, as far as they go."""
    bits = min(bits, MOST_BITS)
    each, more = divmod(bits, max(attributes, 1))
    shared = tuple(each + (j < more) for j in range(attributes))
    return Configuration(shared, keys)
