"""What an index configuration costs a state, AMRI § 5.1 eq. 1, and what an attribute is worth in
one, § 6.1 eq. 2.

    C_D = λ_d · N_A · C_h  +  λ_r · Σ F_ap · N_AP,ap · C_h  +  λ_r · Σ λ_d · W · F_ap / 2^B_ap · C_c

An attribute is indexed if it has bits. Each arriving row pays a hash for each of the N_A indexed
attributes; each search request pays one for each of the N_AP,ap indexed attributes that its access
pattern specifies, and then compares the stored rows of all buckets that the B_ap bits of these
attributes leave. Inserting and deleting cost the same in every configuration and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Pattern = tuple[int, ...]
"""An access pattern: the rising numbers of the join attributes that a probe specifies."""


@dataclass(frozen=True)
class Workload:
    """What a state has to do.

    `arrivals` (λ_d) and `requests` (λ_r) are per time unit, `window` (W) is in time units, and
    `frequencies` (F_ap) are shares of all requests. They need not add up to one: an assessment may
    have left out what is rare. The paper allows a window for each pattern; a state here has one.
    """

    arrivals: float
    requests: float
    window: float
    frequencies: Mapping[Pattern, float]

    @property
    def stored(self) -> float:
        """Rows in the state."""
        return self.arrivals * self.window


@dataclass(frozen=True)
class Prices:
    """What the machine takes for hashing one attribute (C_h) and for comparing one row (C_c)."""

    hash_us: float
    compare_us: float


def dependent_cost(bits: Sequence[int], workload: Workload, prices: Prices) -> float:
    """C_D of eq. 1, in microseconds per time unit, with bits[j] bits for attribute j.

    The paper's sum over N_AP,ap is not weighted by F_ap, so that a pattern's hashes would be paid
    by every request. Its eq. 2 weights the same cost, and so does this.
    """
    hashes = workload.arrivals * sum(count > 0 for count in bits)
    compared = 0.0
    for pattern, frequency in workload.frequencies.items():
        requests = workload.requests * frequency
        hashes += requests * sum(bits[attribute] > 0 for attribute in pattern)
        compared += requests * workload.stored / 2 ** sum(bits[attribute] for attribute in pattern)
    return hashes * prices.hash_us + compared * prices.compare_us


def hash_cost(attribute: int, workload: Workload, prices: Prices) -> float:
    """What eq. 1 takes for hashing one attribute, if it is indexed."""
    return (workload.arrivals + workload.requests * _asked(attribute, workload)) * prices.hash_us


def benefit(attribute: int, bits: int, workload: Workload, prices: Prices) -> float:
    """MB of eq. 2: the most that C_D can fall if an attribute gets so many bits.

    It falls by that if no other attribute of a pattern is indexed, and by less otherwise. The
    equation has λ_d inside the sum over patterns, the text before it outside; the text is right,
    since a row is hashed once however many patterns there are.
    """
    scanned = workload.requests * workload.stored * _asked(attribute, workload)
    saved = scanned * (1 - 2.0**-bits) * prices.compare_us
    return saved - hash_cost(attribute, workload, prices)


def split_ranges(
    frequencies: Mapping[Pattern, float], shares: Mapping[int, float]
) -> dict[Pattern, float]:
    """Frequencies that make eq. 1 right for comparisons on attributes stored in order.

    Equality leaves one of an attribute's 2^n cells. A comparison such as a < x leaves those up to
    the cell of x: of infinitely many a share s, of a single one that one, of 2^n about

        s + (1 - s) · 2^-n

    which is a pattern without the attribute, of weight s, and one with it, of weight 1 - s. So a
    pattern of frequency F becomes F · s without and F · (1 - s) with it, one such attribute after
    the other, and eq. 1 stays a sum of powers of two. `shares` has s by attribute; attributes that
    are not in it are asked for equality. The part without an attribute does not pay for hashing
    it: of the hashes of such requests the share s is left out.
    """
    split: dict[Pattern, float] = {}
    for pattern, frequency in frequencies.items():
        parts: dict[Pattern, float] = {(): frequency}
        for attribute in pattern:
            share = shares.get(attribute, 0.0)
            if not 0 <= share <= 1:
                raise ValueError(f"attribute {attribute} leaves a share of {share}: not in [0, 1]")
            extended = {(*part, attribute): weight * (1 - share) for part, weight in parts.items()}
            kept = {part: weight * share for part, weight in parts.items()}
            parts = extended | kept
        for part, weight in parts.items():
            if weight > 0:
                split[part] = split.get(part, 0.0) + weight
    return split


def _asked(attribute: int, workload: Workload) -> float:
    """The share of requests that specify an attribute."""
    return sum(share for pattern, share in workload.frequencies.items() if attribute in pattern)
