"""What routes are expected to cost, and the best order of each row."""

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiles import profile_of
from querymesh.classify.outcomes.expected import expected_us, orders_by_rank
from querymesh.mesh.route import route_fault


def test_of_outcomes_that_are_certain_it_is_what_routes_cost():
    outcomes = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 1], [0, 0, 0]], float)
    profile = profile_of(outcomes, [[1.0, 5.0, 20.0], [2.0, 6.0, 30.0]])
    routes = list(permutations((1, 2, 3)))
    us = expected_us(outcomes, routes, profile.drop_us, profile.pass_us)
    for number, route in enumerate(routes):
        assert us[:, number].tolist() == profile.realized_us(route).tolist()


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_no_order_is_expected_to_cost_less_than_that_by_rank(seed, operators):
    rng = np.random.default_rng(seed)
    passes = rng.random((7, operators))
    us = rng.uniform(0.1, 10, operators)
    routes = list(permutations(range(1, operators + 1)))
    least = expected_us(passes, routes, us, us).min(axis=1)
    orders = orders_by_rank(passes, [frozenset()] * operators, us, us)
    own = [
        expected_us(passes[[k]], [tuple(order)], us, us)[0, 0]
        for k, order in enumerate(orders.tolist())
    ]
    assert np.allclose(own, least)


@given(st.integers(0, 2**32 - 1))
def test_orders_keep_precedence(seed):
    rng = np.random.default_rng(seed)
    after = [frozenset(k for k in range(1, j + 1) if rng.random() < 0.4) for j in range(5)]
    us = rng.random(5)
    for order in orders_by_rank(rng.random((20, 5)), after, us, us).tolist():
        assert not route_fault(tuple(order), after)
