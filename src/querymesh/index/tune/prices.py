"""What this machine takes for what an index does: C_h and C_c of AMRI's eq. 1, and the like.

Measured with the kernels themselves, on a partition of a usual size, once in a process; about 30 ms
after they are compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.cost.index_cost import Prices
from querymesh.index.kernels import kernels
from querymesh.index.probe.one_state import probe
from querymesh.index.store.columns import NO_BYTES
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import Request
from querymesh.index.store.stem import Stem
from querymesh.stats.least_time import least_seconds

_ROWS = 8192
_PROBES = 1024
_REPEATS = 5


@dataclass(frozen=True)
class IndexPrices:
    """Prices in microseconds.

    `eq1`: hashing an attribute and comparing a row. `move`: laying a row out in another order.
    `build`: a row's share of one more hash index. `hash_probe`: one request of one hash index, and
    `cell_probe` of one bit-address index, beside what is compared there and what it takes to come
    to more buckets than one, `visit` for each.
    """

    eq1: Prices
    move: float
    build: float
    hash_probe: float
    cell_probe: float
    visit: float = 0.0


@lru_cache(maxsize=1)
def machine_prices() -> IndexPrices:
    """The prices of this machine, measured once in a process."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2 * _ROWS, _ROWS)
    hash_us = _shortest_us(lambda: kernels.cells(codes, NO_BYTES, 8)) / _ROWS
    rows = pa.RecordBatch.from_arrays([pa.array(codes)], names=["x"])
    partition = Partition(rows, [codes], [], np.zeros(_ROWS, np.int64))
    coarse = partition.in_cells(Configuration((5,), 1))
    fine = partition.in_cells(Configuration((13,), 1))
    two = Partition(rows, [codes, rng.permutation(codes)], [], np.zeros(_ROWS, np.int64))
    apart = two.in_cells(Configuration((8, 5), 2))
    order = rng.permutation(_ROWS).astype(np.int32)
    move_us = _shortest_us(lambda: partition.taken(order)) / _ROWS
    build_us = _shortest_us(lambda: _fresh(partition).index_for((0,))) / _ROWS
    asked = rng.integers(0, 2 * _ROWS, _PROBES)
    everywhere = np.zeros(_PROBES, np.int64)
    request = Request((0,), (asked,), everywhere, everywhere)
    coarse_us = _probe_us(coarse, request)
    fine_us = _probe_us(fine, request)
    compare_us = max((coarse_us - fine_us) / (_ROWS / 32 - _ROWS / 2**13), 1e-5)
    # By the second attribute 2^8 buckets of a row each are come to, one after the other.
    second = Request((1,), (asked,), everywhere, everywhere)
    visit_us = max((_probe_us(apart, second) - coarse_us) / (2**8 - 1), 1e-5)
    hash_probe_us = _probe_us(partition, request)
    return IndexPrices(
        Prices(hash_us, compare_us), move_us, build_us, hash_probe_us, fine_us, visit_us
    )


def _fresh(partition: Partition) -> Partition:
    return Partition(partition.rows, partition.keys, partition.orders, partition.times)


def _probe_us(partition: Partition, request: Request) -> float:
    stem = Stem()
    stem.insert(partition)
    return _shortest_us(lambda: list(probe(stem, request, 1 << 16))) / len(request)


def _shortest_us(action: Callable[[], object]) -> float:
    return 1e6 * least_seconds(action, _REPEATS, perf_counter)
