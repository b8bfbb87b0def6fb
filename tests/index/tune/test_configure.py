import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.cost.index_cost import Prices, Workload, dependent_cost
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.index_plan import BitPlan
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import Request
from querymesh.index.tune.configure import best_configuration, openings, visits_us
from querymesh.index.tune.exhaustive import best_by_total
from querymesh.index.tune.selection import all_bits, best_bits

PRICES = Prices(0.001, 0.001)
PATTERNS = st.sets(st.integers(0, 2), min_size=1).map(lambda some: tuple(sorted(some)))


def workload(frequencies, requests=1000.0):
    return Workload(100.0, requests, 100.0, frequencies)


def test_what_is_asked_alone_gets_the_highest_bits():
    asked = workload({(1,): 0.8, (0, 1): 0.2})
    placed = best_configuration(asked, PRICES, 2, 2, 12, visit_us=0.005)
    assert placed.sequence[0] == 1
    assert openings(placed, (1,)) == 1


def test_dear_visits_make_fewer_buckets():
    alike = workload({(0,): 1 / 3, (1,): 1 / 3, (2,): 1 / 3})
    free = best_configuration(alike, PRICES, 3, 3, 12, visit_us=0.0)
    dear = best_configuration(alike, PRICES, 3, 3, 12, visit_us=0.1)
    assert free.bits == best_bits(alike, PRICES, 3, 12).bits
    assert dear.total < free.total


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(PATTERNS, st.floats(0.05, 1), min_size=1), st.sampled_from([0.0, 0.01, 0.3]))
def test_no_sequence_of_the_same_bits_is_cheaper(frequencies, visit_us):
    asked = workload(frequencies)
    placed = best_configuration(asked, PRICES, 3, 3, 8, visit_us)

    def cost(configuration):
        own = visits_us(configuration, asked, visit_us)
        return dependent_cost(configuration.bits, asked, PRICES) + own

    others = [Configuration(placed.bits, 3, s) for s in [(0, 1, 2), (2, 1, 0), (1, 0, 2)]]
    assert all(cost(placed) <= cost(other) * (1 + 1e-9) for other in others)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=3), PATTERNS, st.permutations(range(3)))
def test_openings_are_those_of_a_real_probe(bits, pattern, sequence):
    configuration = Configuration(tuple(bits), 3, tuple(sequence))
    rng = np.random.default_rng(0)
    keys = [rng.integers(0, 50, 1024) for _ in range(3)]
    rows = np.zeros(1024, np.int64)
    laid = BitPlan(configuration).lay_out(
        Partition(pa.record_batch({"x": pa.array(rows)}), keys, [], rows)
    )
    one = np.zeros(1, np.int64)
    visit = laid.cells.visit(Request(pattern, (one,) * len(pattern), one, one), laid.keys, 1024)
    if visit is None:
        assert not any(bits[j] for j in pattern)
    else:
        assert len(visit.open_cells) == openings(configuration, pattern)


def test_nothing_to_index_is_placed_as_well():
    assert best_configuration(workload({(): 1.0}), PRICES, 2, 2, 5, 0.01).total == 0
    assert best_configuration(workload({(0,): 1.0}), PRICES, 1, 1, 0, 0.01).total == 0
    with pytest.raises(ValueError, match="bits"):
        Configuration((21,), 1)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(PATTERNS, st.floats(0.05, 1), min_size=1), st.integers(0, 7))
def test_trying_all_at_once_finds_what_trying_one_by_one_finds(frequencies, bits):
    asked = workload(frequencies)
    found = best_by_total(asked, PRICES, 3, bits)
    for most, each in enumerate(found):
        assert each.bits == all_bits(asked, PRICES, 3, most).bits
        assert each.cost == pytest.approx(dependent_cost(each.bits, asked, PRICES))
