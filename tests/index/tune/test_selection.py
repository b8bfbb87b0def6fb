import math
from itertools import product
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.cost.index_cost import Prices, Workload, benefit, dependent_cost
from querymesh.index.tune import selection
from querymesh.index.tune.assessment import Cdia, Csria, Sria
from querymesh.index.tune.selection import all_bits, best_bits, configuration_count, split_bits
from tuners import TABLE_2

CHEAP_HASH = Prices(hash_us=1e-6, compare_us=1)


def workload(frequencies, arrivals=100.0, requests=100.0, window=10.0):
    return Workload(arrivals, requests, window, frequencies)


def assessed(assessment):
    """What an assessment makes of Table 2, fed percent by percent for a while."""
    for _ in range(50):
        for pattern, percent in TABLE_2.items():
            assessment.see(pattern, percent)
    return workload(assessment.result())


@st.composite
def workloads(draw):
    attributes = draw(st.integers(1, 4))
    pattern = st.sets(st.integers(0, attributes - 1)).map(lambda each: tuple(sorted(each)))
    weights = draw(st.dictionaries(pattern, st.floats(0.001, 1), min_size=1))
    total = sum(weights.values())
    hash_us = draw(st.sampled_from([0.0, 0.01, 1.0, 10.0, 40.0, 100.0]))
    frequencies = {each: weight / total for each, weight in weights.items()}
    return workload(frequencies, draw(st.floats(1, 200))), Prices(hash_us, 0.1), attributes


@pytest.mark.parametrize("select", [all_bits, best_bits])
class TestTable2:
    def test_the_full_statistics_give_the_optimum(self, select):
        assert select(assessed(Sria()), CHEAP_HASH, 3, 4).bits == (1, 1, 2)

    def test_csria_misses_it(self, select):
        assert select(assessed(Csria(0.05, 0.001)), CHEAP_HASH, 3, 4).bits == (0, 1, 3)

    def test_cdia_finds_it_if_chance_takes_the_parent_of_figure_7(self, select):
        choices = [assessed(Cdia(0.05, 0.001, "random", seed)) for seed in range(8)]
        figure_7 = next(each for each in choices if (0,) in each.frequencies)
        assert select(figure_7, CHEAP_HASH, 3, 4).bits == (1, 1, 2)

    def test_the_highest_count_gives_no_bit_to_the_first_attribute(self, select):
        # The paper's example is one of random combination. The highest count adds <A1, A2, *> to
        # <*, A2, *>, and the 4 % of <A1, *, *> end below θ at the top. That is better than CSRIA's
        # choice and worse than the optimum, by the full statistics.
        full = assessed(Sria())
        chosen = select(assessed(Cdia(0.05, 0.001, "highest")), CHEAP_HASH, 3, 4).bits
        assert chosen == (0, 2, 2)
        costs = [dependent_cost(bits, full, CHEAP_HASH) for bits in ((1, 1, 2), chosen, (0, 1, 3))]
        assert costs == sorted(costs)


@settings(max_examples=150, deadline=None)
@given(workloads(), st.integers(0, 6))
def test_the_search_costs_what_trying_all_does(case, bits):
    load, prices, attributes = case
    found = best_bits(load, prices, attributes, bits)
    best = all_bits(load, prices, attributes, bits)
    assert found.cost == pytest.approx(best.cost, rel=1e-9)
    assert found.cost == dependent_cost(found.bits, load, prices)
    assert len(found.bits) == attributes
    assert sum(found.bits) <= bits


@settings(max_examples=150, deadline=None)
@given(workloads(), st.integers(0, 6))
def test_no_bound_cuts_off_an_optimum_that_is_hardly_better_than_what_is_known(case, bits):
    load, prices, attributes = case
    best = all_bits(load, prices, attributes, bits)
    worth = sum(benefit(each, bits, load, prices) > 0 for each in range(attributes))
    pretended = selection._Incumbent([0] * worth, best.cost * (1 + 1e-6))
    with (
        mock.patch.object(selection, "_WORTH_DECIDING", math.inf),
        mock.patch.object(selection._Search, "_bit_by_bit", return_value=pretended),
    ):
        found = best_bits(load, prices, attributes, bits)
    assert found.cost == pytest.approx(best.cost, rel=1e-9)


def test_bits_that_save_nothing_are_not_given():
    load = workload({(0,): 1.0})
    assert best_bits(load, Prices(0, 1), 3, 4).bits == (4, 0, 0)
    assert best_bits(workload({(): 1.0}), Prices(0, 1), 3, 4).bits == (0, 0, 0)
    assert best_bits(load, Prices(1e6, 1), 3, 4).bits == (0, 0, 0)


def test_a_first_bit_that_only_pays_with_a_second_one_is_found():
    load, prices = workload({(0,): 0.6, (1,): 0.4}, 100, 100, 1), Prices(32.0, 1.0)
    assert best_bits(load, prices, 2, 1).bits == (0, 0)
    assert best_bits(load, prices, 2, 4).bits == (4, 0) == all_bits(load, prices, 2, 4).bits


def test_of_attributes_that_gain_the_same_the_first_gets_the_bits():
    load = workload({(0, 1, 2, 3, 4, 5, 6, 7, 8, 9): 1.0})
    found = best_bits(load, Prices(0, 1), 10, 20)
    assert found.bits == (20, *[0] * 9)
    assert found.explored < 100


def test_few_of_all_ways_are_explored():
    frequencies = {
        tuple(at for at in range(8) if number >> at & 1): 1 + math.sin(number * number)
        for number in range(1, 256)
    }
    total = sum(frequencies.values())
    load = workload({pattern: share / total for pattern, share in frequencies.items()})
    for hash_us in (0.0, 1.0, 30.0):
        found = best_bits(load, Prices(hash_us, 1), 8, 16)
        assert 0 < found.explored < configuration_count(8, 16) / 50


@pytest.mark.parametrize(("attributes", "bits"), [(1, 5), (3, 4), (4, 2), (5, 1)])
def test_ways_counts_the_configurations_that_use_all_bits(attributes, bits):
    tried = [each for each in product(range(bits + 1), repeat=attributes) if sum(each) == bits]
    assert configuration_count(attributes, bits) == len(tried)


COSTS = st.lists(
    st.lists(st.integers(0, 20).map(float), min_size=1, max_size=5), min_size=1, max_size=4
)


@settings(max_examples=100, deadline=None)
@given(COSTS, st.integers(0, 8))
def test_bits_are_divided_among_states_as_trying_all_would(costs, budget):
    best = min(
        (sum(state[own] for state, own in zip(costs, each, strict=True)), sum(each))
        for each in product(*(range(len(state)) for state in costs))
        if sum(each) <= budget
    )
    division = split_bits(costs, budget)
    cost = sum(state[own] for state, own in zip(costs, division, strict=True))
    assert (cost, sum(division)) == best


def test_a_division_of_nothing_is_empty():
    assert split_bits([], 5) == ()


def every_pattern(attributes):
    """Every pattern of the attributes, some asked often and some hardly ever."""
    shares = {
        tuple(at for at in range(attributes) if number >> at & 1): 1 + math.sin(number * number)
        for number in range(1, 1 << attributes)
    }
    total = sum(shares.values())
    return workload({pattern: share / total for pattern, share in shares.items()})


@pytest.mark.parametrize(
    ("attributes", "bits", "hash_us", "most"),
    [
        (8, 16, 0.0, 150),
        (8, 16, 1.0, 240),
        (8, 16, 10.0, 435),
        (8, 16, 30.0, 440),
        (8, 16, 100.0, 5200),
        (6, 12, 0.0, 70),
        (6, 12, 1.0, 108),
        (6, 12, 10.0, 88),
        (6, 12, 30.0, 103),
        (6, 12, 100.0, 120),
    ],
)
def test_the_bound_leaves_little_to_look_at(attributes, bits, hash_us, most):
    """A bound that is too low is not wrong, but the search then looks at everything."""
    found = best_bits(every_pattern(attributes), Prices(hash_us, 1), attributes, bits)
    assert found.explored <= most


def test_what_cannot_pay_is_not_looked_at():
    assert best_bits(workload({(): 1.0}), Prices(0, 1), 3, 4) == ((0, 0, 0), 100_000.0, 0)
    assert best_bits(workload({(0,): 1.0}), Prices(1e6, 1), 1, 4).explored == 0


def nodes(left, hash_us, weights_us, contact, paid_us=0.0):
    """One node, at which as many attributes as there are hashes are undecided."""
    return selection._Nodes(
        np.zeros((1, 0), np.int64),
        np.array([left]),
        np.array([paid_us]),
        np.array([hash_us], np.float64),
        np.array([weights_us], np.float64),
        np.array([contact], np.float64),
        np.zeros(1),
    )


LN2 = math.log(2)


@pytest.mark.parametrize(
    ("node", "bound", "gains"),
    [
        # Of 8 and 16 compared 4 and 4 are left at the contact; a bit of the first costs 4 / 2.
        (
            nodes(2, [4, 0], [8, 16], [1, 1], 5.0),
            5 + (8 + 2) + (12 * LN2 - 2) - 2 * (8 * LN2 - 2),
            [8 * LN2 - 2, 4 * LN2],
        ),
        # With one bit left a hash is paid for it alone.
        (
            nodes(1, [4, 0], [8, 16], [1, 0]),
            (4 + 8 + 4) + (12 * LN2 - 4) - 8 * LN2,
            [12 * LN2 - 4, 8 * LN2],
        ),
        # With none left nothing is gained; a hash still is no less than itself.
        (nodes(0, [4, 0], [8, 16], [0, 0]), 24.0, [24 * LN2 - 4, 16 * LN2]),
        # Where no bit gains, the tangent is least at no bits.
        (nodes(2, [20, 20], [8, 4], [0, 0]), 12.0, [12 * LN2 - 10, 4 * LN2 - 10]),
        (nodes(2, [18, 18], [8, 4], [0, 0]), 12.0, [12 * LN2 - 9, 4 * LN2 - 9]),
    ],
)
def test_a_tangent_by_hand(node, bound, gains):
    """Requests of the first attribute alone and of both."""
    found, found_gains = selection._tangent(node, np.array([[1.0, 0.0], [1.0, 1.0]]))
    assert found.tolist() == pytest.approx([bound])
    assert found_gains[0].tolist() == pytest.approx(gains)


@pytest.mark.parametrize(
    ("left", "contact", "gains", "next_contact"),
    [
        (4, [1.0, 3.0], [8.0, 2.0], [1.7, 2.3]),  # 0.7 of the two bits between them, then in sum 4
        (4, [1.0, 3.0], [5.0, 5.0], [1.0, 3.0]),  # they gain the same
        (4, [1.0, 3.0], [-5.0, -1.0], [1.0, 3.0]),  # nothing gains
        (4, [1.0, 3.0], [0.0, 0.0], [1.0, 3.0]),
        (1, [0.0, 1.0], [16.0, 1.0], [1.0, 0.0]),  # 0 and 1 - 2.8, and none below nothing
        (2, [1.0, 1.0], [1.0, -5.0], [2.0, 0.0]),
        (100, [50.0, 50.0], [1.0, 0.0], [71.0, 29.0]),  # no more than 0.7 of 60 bits at once
        (0, [0.0, 0.0], [4.0, 1.0], [0.0, 0.0]),
        (3, [1.0, 1.0, 1.0], [0.5, 0.25, 0.125], [1.7, 1.0, 0.3]),
    ],
)
def test_the_contact_goes_to_where_attributes_gain_the_same(left, contact, gains, next_contact):
    width = len(contact)
    node = nodes(left, [0.0] * width, [0.0], contact)
    found = selection._toward(node, np.array([gains]))
    assert found[0].tolist() == pytest.approx(next_contact)


def test_a_hash_that_is_small_against_the_bound_s_error_is_left_undecided():
    """A tenth of 100 - 60 is 4: a hash of 4 waits, one of 4.1 is decided, paid or out of reach."""
    node = nodes(3, [4.0, 4.1], [1.0], [1.0, 2.0], 7.0)._replace(bound_us=np.array([60.0]))
    assert selection._used_or_not(node, 0, 100.0).hash_us.tolist() == [[4.0, 4.1]]
    decided = selection._used_or_not(node, 1, 100.0)
    assert decided.hash_us.tolist() == [[4.0, 0.0], [4.0, 100_000.0]]
    assert decided.paid_us.tolist() == [7.0 + 4.1, 7.0]
    assert decided.contact.tolist() == [[1.0, 2.0], [1.0, 0.0]]
    assert node.hash_us.tolist() == [[4.0, 4.1]], "the node itself stays"


def test_an_opened_node_has_a_child_for_each_number_of_bits_and_of_the_last_attribute_two():
    search = selection._Search(workload({(0,): 0.5, (0, 1): 0.5}), Prices(0.1, 0.01), [0, 1])
    root = search._root(2)
    assert root.contact.tolist() == [[1.0, 1.0]]
    first = search._opened(root)
    # Hashes cost 200 and 150 times 0.1; comparisons of either pattern 500 rows of 0.01, for each
    # of 100 requests.
    assert first.decided.tolist() == [[0], [1], [2]]
    assert first.left.tolist() == [2, 1, 0]
    assert first.paid_us.tolist() == pytest.approx([0.0, 20.0, 20.0])
    assert first.hash_us.tolist() == [[pytest.approx(15.0)]] * 3
    assert first.weights_us.tolist() == [
        pytest.approx([500.0, 500.0]),
        pytest.approx([250.0, 250.0]),
        pytest.approx([125.0, 125.0]),
    ]
    assert first.contact.tolist() == [[2.0], [1.0], [0.0]]
    last = search._opened(first)
    assert last.decided.tolist() == [[0, 0], [0, 2], [1, 0], [1, 1], [2, 0]]
    assert last.left.tolist() == [2, 0, 1, 0, 0]
    assert last.paid_us.tolist() == pytest.approx([0.0, 15.0, 20.0, 35.0, 20.0])
    assert last.weights_us.sum(axis=1).tolist() == pytest.approx([1000, 625, 500, 375, 250])


def test_nodes_wait_in_portions_the_most_promising_last(monkeypatch):
    monkeypatch.setattr(selection, "_TOGETHER", 2)
    search = selection._Search(workload({(0,): 0.5, (1,): 0.5}), Prices(0.0, 0.01), [0, 1])
    opened = search._opened(search._root(4))
    portions = list(search._promising(opened, math.inf))
    assert [len(portion.left) for portion in portions] == [2, 2, 1]
    bounds = [bound for portion in portions for bound in portion.bound_us.tolist()]
    assert bounds == sorted(bounds, reverse=True)
    # Of 1000 comparisons each pattern has half: 2 and 2 bits leave 125 + 125.
    assert portions[-1].decided.tolist() == [[2]]
    assert portions[-1].bound_us.tolist() == pytest.approx([250.0])
    below = list(search._promising(opened, 251.0))
    assert [portion.decided.tolist() for portion in below] == [[[2]]]


def test_bit_by_bit_each_goes_to_whom_it_saves_most_and_the_best_on_the_way_stays():
    """0.6 of all requests ask by the first attribute, whose hash is 30, 0.4 by the second: 10."""
    search = selection._Search(workload({(0,): 0.6, (1,): 0.4}), Prices(0.0, 0.01), [0, 1])
    root = search._root(3)._replace(hash_us=np.array([[30.0, 10.0]]))
    assert search._bit_by_bit(root) == ([2, 1], pytest.approx(150 + 30 + 200 + 10))
    dear = root._replace(hash_us=np.array([[1000.0, 190.0]]))
    assert search._bit_by_bit(dear) == ([0, 3], pytest.approx(600 + 50 + 190))
    too_dear = root._replace(hash_us=np.array([[1000.0, 1000.0]]), paid_us=np.array([5.0]))
    assert search._bit_by_bit(too_dear) == ([0, 0], pytest.approx(1005.0))


def test_trying_all_takes_the_fewest_bits_of_those_that_cost_the_same():
    load = workload({(0,): 0.5, (1,): 0.5})
    assert all_bits(load, Prices(0, 0), 2, 3) == ((0, 0), 0.0, 10)
    assert all_bits(load, Prices(0, 1), 2, 1) == ((0, 1), 75_000.0, 3)


def test_of_divisions_that_cost_the_same_earlier_states_have_more_bits_and_none_is_idle():
    assert split_bits([[2.0, 1.0], [2.0, 1.0]], 1) == (1, 0)
    assert split_bits([[2.0, 1.0, 1.0], [2.0, 2.0]], 3) == (1, 0)
    assert split_bits([[5.0, 4.0, 0.0], [5.0, 1.0]], 2) == (2, 0)
    assert split_bits([[5.0, 4.0, 0.0], [5.0, 1.0]], 3) == (2, 1)
    assert split_bits([[0.3, 0.1 + 0.2]], 1) == (0,), "rounding saves nothing"


def test_bits_that_save_nothing_are_taken_back_and_those_that_save_stay():
    load = workload({(0,): 1.0})
    assert selection._without_idle([2, 3, 1], load, Prices(0, 1)) == (2, 0, 0)
    assert selection._without_idle([2, 3, 1], load, Prices(1, 1)) == (2, 0, 0)
    assert selection._without_idle([2, 1], workload({(0, 1): 1.0}), Prices(0, 1)) == (2, 1)
    assert selection._without_idle([2, 1], workload({(): 1.0}), Prices(0, 1)) == (0, 0)
