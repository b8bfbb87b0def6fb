"""What happens to rows that are stored already when a state's index changes, AMRI § 8.

    all        every partition is laid out anew: one index for the whole state
    nothing    none is: old partitions keep their index until they expire or are merged
    partial    those are for which it pays (eq. 3)

    B_m(IC, BIC) = C_s(IC) - (C_s(BIC) + C_m(IC, BIC))

C_s is what the requests still to come cost in the partition, C_m what it costs to move its rows.
Merging lays rows out anew in any case, and gives them the newest index for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from querymesh.cost.index_cost import Workload, dependent_cost
from querymesh.index.probe.access_row import suitable
from querymesh.index.store.index_plan import BitPlan, HashPlan, IndexPlan, plan_of
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import Pattern
from querymesh.index.tune.prices import IndexPrices

Frequencies = Mapping[Pattern, float]


def search_us(plan: IndexPlan, rows: int, frequencies: Frequencies, prices: IndexPrices) -> float:
    """C_s of one request, on average: hashing what it specifies, and comparing what is left."""
    if isinstance(plan, BitPlan):
        one_request = Workload(0.0, 1.0, 1.0, frequencies)
        bits = plan.configuration.for_rows(rows).bits
        hashed = dependent_cost(bits, one_request, prices.eq1)
        compared = sum(
            share * rows * 0.5 ** sum(bits[j] for j in pattern)
            for pattern, share in frequencies.items()
        )
        return hashed + compared * prices.eq1.compare_us + prices.cell_probe
    cost = 0.0
    for pattern, share in frequencies.items():
        scans = plan.patterns is not None and not suitable(pattern, plan.patterns)
        cost += share * (rows * prices.eq1.compare_us if scans else prices.hash_probe)
    return cost


def move_us(old: IndexPlan, new: IndexPlan, rows: int, prices: IndexPrices) -> float:
    """C_m: hashing each row for the old and the new index, and moving it."""
    return rows * (prices.move + _hashes(old) * prices.eq1.hash_us + _build(new, prices))


def _hashes(plan: IndexPlan) -> int:
    return sum(bits > 0 for bits in plan.configuration.bits) if isinstance(plan, BitPlan) else 0


def _build(plan: IndexPlan, prices: IndexPrices) -> float:
    if isinstance(plan, HashPlan):
        return prices.build * len(plan.patterns or ((),))
    return _hashes(plan) * prices.eq1.hash_us


def benefit_us(
    partition: Partition,
    new: IndexPlan,
    requests: float,
    frequencies: Frequencies,
    prices: IndexPrices,
) -> float:
    """B_m of eq. 3 for one partition that `requests` in process will still come to."""
    old, rows = plan_of(partition), len(partition)
    saved = search_us(old, rows, frequencies, prices) - search_us(new, rows, frequencies, prices)
    return requests * saved - move_us(old, new, rows, prices)


def to_move(
    migration: str,
    partitions: Sequence[Partition],
    new: IndexPlan,
    in_process: Sequence[float],
    frequencies: Frequencies,
    prices: Callable[[], IndexPrices],
) -> list[bool]:
    """Which partitions are laid out anew; `in_process` are the requests each will still serve."""
    if migration == "nothing":
        return [False] * len(partitions)
    other = [not new.suits(partition) for partition in partitions]
    if migration == "all":
        return other
    return [
        differs and benefit_us(partition, new, requests, frequencies, prices()) > 0
        for partition, requests, differs in zip(partitions, in_process, other, strict=True)
    ]


MIGRATIONS = ("nothing", "all", "partial")
