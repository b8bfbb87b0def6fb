import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.cost.index_cost import (
    Prices,
    Workload,
    benefit,
    dependent_cost,
    hash_cost,
    split_ranges,
)

WORKLOAD = Workload(
    arrivals=10, requests=20, window=6, frequencies={(0,): 0.5, (0, 1): 0.25, (): 0.25}
)
PRICES = Prices(hash_us=2, compare_us=0.5)
SHARE = st.floats(0, 1)


def test_without_bits_every_request_compares_every_row():
    assert dependent_cost((0, 0), WORKLOAD, PRICES) == 20 * 60 * 0.5


def test_equation_1_by_hand():
    arrivals_us = 10 * 2 * 2
    probes_us = 20 * (0.5 * 1 + 0.25 * 2) * 2
    compared_us = 20 * 60 * (0.5 / 4 + 0.25 / 8 + 0.25) * 0.5
    assert dependent_cost((2, 1), WORKLOAD, PRICES) == arrivals_us + probes_us + compared_us


@pytest.mark.parametrize(("attribute", "bits"), [(0, 3), (1, 3), (1, 1)])
def test_the_benefit_is_what_an_attribute_saves_alone(attribute, bits):
    alone = [0, 0]
    alone[attribute] = bits
    saved = dependent_cost((0, 0), WORKLOAD, PRICES) - dependent_cost(alone, WORKLOAD, PRICES)
    assert benefit(attribute, bits, WORKLOAD, PRICES) == pytest.approx(saved)


def test_an_attribute_saves_less_beside_another():
    saved = dependent_cost((3, 0), WORKLOAD, PRICES) - dependent_cost((3, 3), WORKLOAD, PRICES)
    assert saved < benefit(1, 3, WORKLOAD, PRICES)


def test_an_attribute_nobody_asks_for_costs_its_arrivals():
    assert benefit(2, 4, WORKLOAD, PRICES) == -hash_cost(2, WORKLOAD, PRICES) == -20


@given(SHARE, SHARE, st.tuples(*[st.integers(0, 8)] * 3))
def test_split_ranges_scan_the_share_that_comparisons_leave(first, second, bits):
    split = split_ranges({(0, 1, 2): 0.8}, {0: first, 2: second})
    scanned = sum(
        weight / 2 ** sum(bits[attribute] for attribute in pattern)
        for pattern, weight in split.items()
    )
    left = [share + (1 - share) * 2 ** -bits[at] for at, share in ((0, first), (2, second))]
    assert scanned == pytest.approx(0.8 * left[0] * left[1] * 2 ** -bits[1])


def test_split_ranges_add_to_patterns_that_are_there():
    split = split_ranges({(0,): 0.5, (0, 1): 0.5}, {1: 0.5})
    assert split == {(0,): 0.75, (0, 1): 0.25}


def test_a_share_beyond_one_is_refused():
    with pytest.raises(ValueError, match="leaves a share"):
        split_ranges({(0,): 1.0}, {0: 1.5})
