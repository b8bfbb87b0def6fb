"""What this machine takes is worked out of probes whose cost is known beforehand."""

import numpy as np
import pyarrow as pa
import pytest

from querymesh.cost.index_cost import Prices
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import Request
from querymesh.index.tune import prices
from querymesh.index.tune.configure import openings
from querymesh.index.tune.prices import IndexPrices


def probed(compare_us, visit_us):
    """A probe of a hash index takes 7 µs; of buckets 3, and for each comparison and bucket."""

    def probe_us(partition, request):
        if partition.cells is None:
            return 7.0
        laid = partition.cells.configuration
        compared = len(partition) / 2 ** sum(laid.bits[j] for j in request.pattern)
        return 3.0 + compared * compare_us + openings(laid, request.pattern) * visit_us

    return probe_us


def measured(monkeypatch, compare_us, visit_us):
    """The prices of a machine that hashes, moves and builds 8192 rows in 2048, 4096 and 6144 µs."""
    lasted = iter([2048.0, 4096.0, 6144.0])

    def shortest_us(action):
        action()
        return next(lasted)

    monkeypatch.setattr(prices, "_shortest_us", shortest_us)
    monkeypatch.setattr(prices, "_probe_us", probed(compare_us, visit_us))
    return prices.machine_prices.__wrapped__()


def test_a_comparison_and_a_bucket_are_told_apart(monkeypatch):
    found = measured(monkeypatch, compare_us=0.5, visit_us=2.0)
    assert found.eq1 == Prices(pytest.approx(0.25), pytest.approx(0.5))
    assert (found.move, found.build) == (0.5, 0.75)
    assert found.hash_probe == 7.0
    assert found.cell_probe == pytest.approx(3.0 + 0.5 + 2.0), "one row compared, in one bucket"
    assert found.visit == pytest.approx(2.0)


def test_what_is_too_quick_to_be_measured_still_costs_something(monkeypatch):
    found = measured(monkeypatch, compare_us=0.0, visit_us=0.0)
    assert (found.eq1.compare_us, found.visit) == (1e-5, 1e-5)


def test_buckets_cost_nothing_unless_they_were_measured():
    assert IndexPrices(Prices(1.0, 1.0), 1.0, 1.0, 1.0, 1.0).visit == 0.0


def test_the_shortest_of_five_times_counts(monkeypatch):
    clock = iter([0.0, 5.0, 10.0, 13.0, 20.0, 29.0, 30.0, 34.0, 40.0, 42.5])
    monkeypatch.setattr(prices, "perf_counter", lambda: next(clock))
    done = []
    assert prices._shortest_us(lambda: done.append(1)) == 2.5e6
    assert len(done) == 5


def test_a_probe_is_timed_by_request_and_to_its_end(monkeypatch):
    """Eight requests find 10,000 rows each: more than one buffer holds."""

    def shortest_us(action):
        action()
        return 1000.0

    monkeypatch.setattr(prices, "_shortest_us", shortest_us)
    keys = np.zeros(10_000, np.int64)
    rows = pa.RecordBatch.from_arrays([pa.array(keys)], names=["x"])
    asked = np.zeros(8, np.int64)
    request = Request((0,), (asked,), asked, asked)
    assert prices._probe_us(Partition(rows, [keys], [], keys), request) == 125.0
