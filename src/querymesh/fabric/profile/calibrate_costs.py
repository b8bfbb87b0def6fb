"""Measure what RBO's Table 3 is made of: the costs of nested loops and of a symmetric hash join.

Tuples of one stream arrive at a join of which the other stream's state holds some rows, each of
them with a key of its own, so that an arrival finds one row whatever is stored::

    move   conditions, keys, codes and columns of an arrival, until it is in its state
    hash   its share of the hash index of the rows that arrived with it
    probe  asking the other state by its hash index, and making the result
    comp   one stored row looked at, where the state has no index and all rows are

Every figure is a slope between two sizes, of arrivals or (comp) of stored rows: what is paid once
for a micro-batch is in none of them. As in `calibrate.py`, the least of several runs in this
thread's processor time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import thread_time
from typing import NamedTuple

import numpy as np

from querymesh.cost.rates import JoinCosts
from querymesh.fabric.core.router import Router
from querymesh.fabric.join.arrivals import in_order
from querymesh.fabric.profile.calibrate import REPEATS
from querymesh.fabric.profile.calibrate_join import Parts, rows_of, two_streams
from querymesh.index.store.index_plan import HashPlan, IndexPlan

ARRIVING, STORED = (1000, 32_000), (1000, 16_000)
"""The sizes between which slopes are taken."""

NESTED, HASHED = "nested loops", "symmetric hash"
PLANS: Mapping[str, IndexPlan] = {NESTED: HashPlan(patterns=()), HASHED: HashPlan()}
"""How states are indexed under each algorithm: not at all, or by what they are asked for."""

_KEY = (0,)


class Spent(NamedTuple):
    """Seconds of all arrivals of a run, and the stored rows that they looked at."""

    move_s: float
    hash_s: float
    probe_s: float
    looked: int

    @property
    def total_s(self) -> float:
        """The seconds of all three parts."""
        return self.move_s + self.hash_s + self.probe_s


@dataclass(frozen=True)
class Table3:
    """The costs of both algorithms, in seconds."""

    nested_loops: JoinCosts
    symmetric_hash: JoinCosts


@lru_cache(maxsize=1)
def table_3() -> Table3:
    """The costs of this machine; takes about a second."""
    hashed = [spent(HASHED, arriving, STORED[1]) for arriving in ARRIVING]
    move_s = _slope(ARRIVING, [each.move_s for each in hashed])
    hash_s = _slope(ARRIVING, [each.hash_s for each in hashed])
    probe_s = _slope(ARRIVING, [each.probe_s for each in hashed])
    looped = [spent(NESTED, ARRIVING[0], stored) for stored in STORED]
    comp_s = _slope([each.looked for each in looped], [each.probe_s for each in looped])
    return Table3(
        JoinCosts(NESTED, move_s=move_s, comp_s=comp_s),
        JoinCosts(HASHED, move_s=move_s, hash_s=hash_s, probe_s=probe_s),
    )


def spent(algorithm: str, arriving: int, stored: int) -> Spent:
    """What so many arrivals take when the other state holds so many rows; the least of several."""
    runs = [_run(algorithm, arriving, stored) for _ in range(REPEATS)]
    return Spent(*map(min, zip(*runs, strict=True)))


def _run(algorithm: str, arriving: int, stored: int) -> Spent:
    fabric = two_streams()
    routers: Mapping[str, Router] = dict.fromkeys("ab", Parts(1))
    a, b = (fabric.streams[alias] for alias in "ab")
    a.plan = b.plan = PLANS[algorithm]
    rng = np.random.default_rng(0)
    there = in_order({"b": rows_of(rng.permutation(stored), 0)}, fabric.join.times)
    list(fabric.results(fabric.admit(there, routers), routers))
    come = in_order({"a": rows_of(rng.integers(0, stored, arriving), stored)}, fabric.join.times)
    if algorithm == HASHED:
        b.partitions[0].index_for(_KEY)
    started = thread_time()
    step = fabric.admit(come, routers)
    moved = thread_time()
    if algorithm == HASHED:
        a.partitions[0].index_for(_KEY)
    hashed = thread_time()
    list(fabric.results(step, routers))
    return Spent(moved - started, hashed - moved, thread_time() - hashed, b.comparisons)


def _slope(rows: Sequence[int], seconds: Sequence[float]) -> float:
    """Seconds a row. Nothing is free: where noise says so, all that the larger size took, by row.

    >>> _slope((10, 110), (1.0, 3.0)), _slope((10, 100), (2.0, 1.0))
    (0.02, 0.01)
    """
    (few, many), (few_s, many_s) = rows, seconds
    return (many_s - few_s) / (many - few) if many_s > few_s else many_s / many
