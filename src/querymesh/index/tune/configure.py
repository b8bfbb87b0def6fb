"""The cheapest index configuration: how many bits, for which attributes, in which sequence.

AMRI's eq. 1 counts hashes and comparisons. To come to a bucket takes time as well, and a request
that leaves attributes open comes to many, unless these have the lowest bits::

    a 4, b 4 bits    by a    16 buckets side by side, one range of rows
                     by b    16 buckets apart, one after the other

So of the best bits for each number of them (`selection.py`) the one is taken whose requests cost
least with the buckets they come to, in the sequence that is best for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from querymesh.cost.index_cost import Pattern, Prices, Workload
from querymesh.index.store.configuration import Configuration, in_sequence
from querymesh.index.tune.exhaustive import are_few, best_by_total
from querymesh.index.tune.selection import Selected, best_bits

_TRIED = 4
"""Sequences of so many attributes are all tried; of more, they go by how often they are asked."""

_FEWER_BITS = 6
"""How many bits less than there may be are tried."""


def openings(configuration: Configuration, pattern: Pattern) -> int:
    """How many ranges of buckets a request comes to.

    >>> [openings(Configuration((4, 4), 2), pattern) for pattern in ((0,), (1,), (0, 1))]
    [1, 16, 1]
    """
    bits, shifts = configuration.bits, configuration.shifts
    fixed = [j for j in pattern if bits[j]]
    floor = min((shifts[j] for j in fixed), default=configuration.total)
    above = sum(bits[j] for j in range(len(bits)) if j not in fixed and shifts[j] > floor)
    return 1 << above


def visits_us(configuration: Configuration, workload: Workload, visit_us: float) -> float:
    """What requests cost by the buckets they come to, in one partition."""
    each = sum(
        share * openings(configuration, pattern) for pattern, share in workload.frequencies.items()
    )
    return workload.requests * each * visit_us


def best_configuration(
    workload: Workload, prices: Prices, keys: int, attributes: int, bits: int, visit_us: float
) -> Configuration:
    """The cheapest configuration of at most `bits` bits; `visit_us` is the time a range of buckets
    takes in all partitions."""
    best: tuple[float, Configuration] | None = None
    tried: set[tuple[int, ...]] = set()
    for selected in _candidates(workload, prices, attributes, bits):
        if selected.bits in tried:
            continue
        tried.add(selected.bits)
        for configuration in _sequences(selected.bits, keys, workload):
            cost = selected.cost + visits_us(configuration, workload, visit_us)
            if best is None or cost < best[0]:
                best = cost, configuration
    assert best is not None
    return best[1]


def _candidates(workload: Workload, prices: Prices, attributes: int, bits: int) -> list[Selected]:
    """The best bits for each number of them that is tried, most first."""
    fewest = max(bits - _FEWER_BITS, 0)
    if are_few(attributes, bits):
        return best_by_total(workload, prices, attributes, bits)[fewest:][::-1]
    numbers = range(bits, fewest - 1, -1)
    return [best_bits(workload, prices, attributes, number) for number in numbers]


def _sequences(bits: Sequence[int], keys: int, workload: Workload) -> list[Configuration]:
    usual = in_sequence(bits, keys, workload.frequencies)
    used = [j for j in usual.sequence if bits[j]]
    idle = [j for j in usual.sequence if not bits[j]]
    if len(used) > _TRIED:
        return [usual]
    return [Configuration(tuple(bits), keys, (*some, *idle)) for some in permutations(used)]
