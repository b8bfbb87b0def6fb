"""One state alone under a load: a hash index for each access pattern against one bit-address index.

A window of rows with three join attributes is kept full: batches arrive, are stored and merged, and
requests of some access patterns come in between. What a stored row costs altogether, storing and
being looked for, is set against what grows::

    patterns        1, 3 or 7 of the seven of three attributes, asked alike
    window          rows in the state
    matches         stored rows that agree in one attribute with a request
    requests        by row that arrives
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from time import process_time

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.index.probe.one_state import probe
from querymesh.index.store.index_plan import BitPlan, HashPlan, IndexPlan
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import Pattern, Request
from querymesh.index.store.stem import Stem
from querymesh.index.tune.indexing import Indexing
from querymesh.index.tune.tuner import Attributes, Load, Tuner
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.measure import Log

ATTRIBUTES = Attributes(3, 0)
SEVEN: tuple[Pattern, ...] = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
ASKED: dict[int, tuple[Pattern, ...]] = {1: SEVEN[6:], 3: (*SEVEN[:2], SEVEN[6]), 7: SEVEN}
WINDOWS = (2_000, 20_000, 200_000)
MATCHES = (0.5, 20.0)
REQUESTS = (0.2, 2.0, 20.0)
BATCHES = 24


@dataclass(frozen=True)
class StateLoad:
    """What a state is asked for: how many rows and access patterns, and how often."""

    patterns: int
    window: int
    matches: float
    requests_a_row: float

    @property
    def batch(self) -> int:
        """How many rows arrive at once."""
        return max(self.window // 16, 100)

    def rows(self, rng: np.random.Generator, count: int) -> list[Ints]:
        """The codes of three join attributes, for so many rows."""
        values = max(round(self.window / self.matches), 1)
        return [rng.integers(0, values, count) for _ in range(ATTRIBUTES.keys)]


@dataclass
class StateCost:
    """What a plan took: nanoseconds by row that arrived, index bytes by stored row."""

    ns: float
    bytes_a_row: float


def crossover(quick: bool, log: Log) -> list[Finding]:
    """All burdens; those that take long for either kind are lighter in requests."""
    made = []
    grid = list(product(ASKED, WINDOWS[:1] if quick else WINDOWS, MATCHES, REQUESTS))
    for number, (patterns, window, matches, requests) in enumerate(grid):
        made.append(_finding(StateLoad(patterns, window, matches, requests), 1 if quick else 3))
        if number % 12 == 11:
            log(f"  {number + 1} of {len(grid)}")
    return made


def _finding(burden: StateLoad, rounds: int) -> Finding:
    tuner = Tuner("auto", {"s": ATTRIBUTES}, Indexing(first=1, steps=1))
    bits = Tuner("bitmap", {"s": ATTRIBUTES}, Indexing(first=1, steps=1))
    load = _load(burden)
    for each in (tuner, bits):
        each.see({"s": load})
    chosen = "bits" if isinstance(tuner.plans["s"], BitPlan) else "hash"
    plans: dict[str, IndexPlan] = {"hash": HashPlan(), "bits": bits.plans["s"]}
    took: dict[str, list[StateCost]] = {name: [] for name in plans}
    for _ in range(rounds):
        for name, plan in plans.items():
            took[name].append(_cost(burden, plan))
    best = {name: min(each.ns for each in kept) for name, kept in took.items()}
    details = {
        "patterns": burden.patterns,
        "window": burden.window,
        "matches": burden.matches,
        "requests_a_row": burden.requests_a_row,
        "hash_ns": best["hash"],
        "bits_ns": best["bits"],
        "hash_bytes_a_row": took["hash"][0].bytes_a_row,
        "bits_bytes_a_row": took["bits"][0].bytes_a_row,
        "auto": chosen,
        "auto_over_best": best[chosen] / min(best.values()),
    }
    claim = (
        f"{burden.patterns} access patterns, {burden.window:,} rows, {burden.matches:g} matches, "
        f"{burden.requests_a_row:g} requests a row: bit-address over hash"
    )
    return Finding("one state", claim, best["bits"] / best["hash"], "×", details=details)


def _load(burden: StateLoad) -> Load:
    """What the state tells the tuner after some batches."""
    each = round(burden.batch * BATCHES * burden.requests_a_row / burden.patterns)
    requests = dict.fromkeys(ASKED[burden.patterns], max(each, 1))
    return Load(requests, burden.batch * BATCHES, burden.window, max(burden.window // 4, 1))


def _cost(burden: StateLoad, plan: IndexPlan) -> StateCost:
    rng = np.random.default_rng(burden.patterns)
    stem = Stem(plan=plan)
    batches = list(_batches(burden, rng))
    now = 0
    while now < burden.window:
        now = _store(stem, burden, batches[0][0], now)
    _ask(stem, burden, batches[0][1], now)
    started = process_time()
    for codes, requests in batches[:BATCHES]:
        now = _store(stem, burden, codes, now)
        _ask(stem, burden, requests, now)
    seconds = process_time() - started
    rows = BATCHES * burden.batch
    return StateCost(1e9 * seconds / rows, stem.index_bytes / max(stem.rows, 1))


Requests = list[tuple[Pattern, tuple[Ints, ...]]]


def _batches(burden: StateLoad, rng: np.random.Generator) -> Iterator[tuple[list[Ints], Requests]]:
    """Rows that arrive, and the requests that come with them."""
    patterns = ASKED[burden.patterns]
    each = max(round(burden.batch * burden.requests_a_row / len(patterns)), 1)
    for _ in range(BATCHES):
        asked = []
        for pattern in patterns:
            codes = burden.rows(rng, each)
            asked.append((pattern, tuple(codes[j] for j in pattern)))
        yield burden.rows(rng, burden.batch), asked


def _store(stem: Stem, burden: StateLoad, codes: list[Ints], now: int) -> int:
    rows = len(codes[0])
    batch = pa.record_batch({"id": pa.array(np.arange(now, now + rows))})
    stem.insert(stem.laid_out(Partition(batch, codes, [], np.arange(now, now + rows))))
    stem.evict(now + rows - burden.window)
    stem.compact(burden.window, now + rows - burden.window)
    return now + rows


def _ask(stem: Stem, burden: StateLoad, requests: Requests, now: int) -> None:
    for pattern, codes in requests:
        low = np.full(len(codes[0]), now - burden.window)
        for _ in probe(stem, Request(pattern, codes, low, np.full(len(low), now)), 1 << 16):
            pass
