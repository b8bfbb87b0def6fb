import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.cost.index_cost import Prices, Workload, dependent_cost
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.index_plan import BitPlan
from querymesh.index.store.partition import Partition
from querymesh.index.tune import configure
from querymesh.index.tune.configure import best_configuration, openings, visits_us
from querymesh.index.tune.exhaustive import are_few, best_by_total
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
    opening = laid.cells.opening(pattern, None)
    if opening is None:
        assert not any(bits[j] for j in pattern)
    else:
        assert len(opening.open_cells) == openings(configuration, pattern)


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


def test_openings_count_the_bits_between_what_is_asked_too():
    """From the highest bits down a, b, c: by a and c both values of b's bit lie apart."""
    laid = Configuration((2, 1, 3), 3)
    asked = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2), ()]
    assert [openings(laid, pattern) for pattern in asked] == [1, 4, 8, 1, 2, 4, 1, 1]


def test_visits_are_paid_by_request_and_by_range_of_buckets():
    asked = Workload(1.0, 100.0, 1.0, {(0,): 0.5, (1,): 0.25})
    assert visits_us(Configuration((1, 3), 2), asked, 0.5) == 100 * (0.5 * 1 + 0.25 * 2) * 0.5


def test_where_buckets_cost_nothing_attributes_lie_by_how_often_they_are_asked():
    asked = workload({(0,): 0.2, (1,): 0.3, (2,): 0.5})
    placed = best_configuration(asked, PRICES, 3, 3, 12, visit_us=0.0)
    assert all(placed.bits)
    assert placed.sequence == (2, 1, 0)


@pytest.mark.parametrize(("visit_us", "bits"), [(1.99, (1, 1)), (2.01, (0, 1))])
def test_a_second_bit_is_given_as_long_as_it_saves_more_than_the_ranges_it_adds(visit_us, bits):
    """Requests of either attribute compare 2 of 4 rows each with a bit for both, and 2 or 4 with
    one: 1 more on average. With both, half of the requests come to two ranges."""
    asked = Workload(1.0, 100.0, 4.0, {(0,): 0.5, (1,): 0.5})
    placed = best_configuration(asked, Prices(0.0, 1.0), 2, 2, 2, visit_us)
    assert placed.bits == bits


def test_few_bits_may_be_fewer_as_well():
    asked = workload({(0,): 1 / 3, (1,): 1 / 3, (2,): 1 / 3})
    dear = best_configuration(asked, PRICES, 3, 3, 4, visit_us=10.0)
    assert [bits for bits in dear.bits if bits] == [1], "a second attribute's would lie apart"
    hashed = best_configuration(asked, Prices(1e6, 1.0), 3, 3, 4, visit_us=0.0)
    assert hashed.total == 0


@pytest.mark.parametrize(("bits", "asked"), [(12, range(12, 5, -1)), (4, range(4, -1, -1))])
def test_up_to_six_bits_fewer_than_there_may_be_are_tried(monkeypatch, bits, asked):
    found = []

    def searched(load, prices, attributes, number):
        found.append(number)
        return best_bits(load, prices, attributes, number)

    monkeypatch.setattr(configure, "are_few", lambda attributes, bits: False)
    monkeypatch.setattr(configure, "best_bits", searched)
    some = workload({(0,): 0.7, (0, 1): 0.3})
    searching = best_configuration(some, PRICES, 2, 2, bits, 0.01)
    assert found == list(asked)
    monkeypatch.undo()
    assert [len(each.bits) for each in configure._candidates(some, PRICES, 2, bits)] == [2] * len(
        found
    )
    assert best_configuration(some, PRICES, 2, 2, bits, 0.01) == searching


def test_all_sequences_of_four_attributes_are_tried_and_of_five_the_usual_one():
    asked = workload({(j,): (1 + j) / 15 for j in range(5)})
    four = configure._sequences((1, 1, 1, 1, 0), 5, asked)
    assert len(set(four)) == 24
    assert four[0].sequence == (3, 2, 1, 0, 4), "what has no bits comes last"
    (five,) = configure._sequences((1, 1, 1, 1, 1), 5, asked)
    assert five.sequence == (4, 3, 2, 1, 0)


def test_twenty_thousand_configurations_are_few_and_one_more_is_not():
    """One attribute of at most n bits has n + 1 of them."""
    assert are_few(1, 19_999)
    assert not are_few(1, 20_000)


def test_the_best_for_each_number_of_bits_says_how_many_were_tried():
    found = best_by_total(Workload(1.0, 8.0, 4.0, {(0,): 0.5, (1,): 0.5}), Prices(1.0, 1.0), 2, 2)
    # Of 8 requests of 4 rows half ask by each. A hash is paid 5 times, for 4 of them and 1 arrival.
    assert [(each.bits, each.cost, each.explored) for each in found] == [
        ((0, 0), 32.0, 1),
        ((0, 1), 29.0, 3),
        ((0, 2), 25.0, 6),
    ]
