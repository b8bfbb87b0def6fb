from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from profiles import profile_of, random_profiles

from querymesh.optimize.best_route import exact_route, greedy_route, written_route
from querymesh.optimize.train import best_single
from querymesh.stats.profile import survivors


def allowed_routes(after):
    for route in permutations(range(1, len(after) + 1)):
        if all(after[k - 1] <= set(route[:i]) for i, k in enumerate(route)):
            yield route


@given(random_profiles())
def test_the_dynamic_program_finds_the_cheapest_of_all_allowed_orders(profile):
    table = survivors(profile.outcomes, np.zeros(profile.rows, np.int64), 1)[0]
    route, cost = exact_route(table, profile.drop_us, profile.pass_us, profile.after)
    costs = {r: profile.realized_us(r).sum() for r in allowed_routes(profile.after)}
    assert route in costs
    assert cost == pytest.approx(min(costs.values()))
    assert costs[route] == pytest.approx(cost)


@given(random_profiles())
def test_greedy_and_written_orders_keep_precedence(profile):
    allowed = set(allowed_routes(profile.after))
    assert (
        greedy_route(profile.outcomes, profile.drop_us, profile.pass_us, profile.after) in allowed
    )
    assert written_route(profile.after) in allowed


def test_correlated_predicates_that_marginals_cannot_rank_come_out_right():
    # p1 and p2 each drop 60 %, but the same rows; p3 drops 50 % of the others.
    outcomes = np.ones((100, 3))
    outcomes[:60, 0] = outcomes[:60, 1] = 0
    outcomes[50:, 2] = 0
    profile = profile_of(outcomes)
    assert best_single(profile)[:2] in {(1, 3), (2, 3)}


def test_many_operators_are_ordered_greedily():
    rng = np.random.default_rng(1)
    outcomes = (rng.random((200, 20)) < 0.7).astype(float)
    profile = profile_of(outcomes, rng.uniform(1, 5, 20))
    route = best_single(profile)
    assert sorted(route) == list(range(1, 21))
    assert profile.realized_us(route).sum() < profile.realized_us(tuple(range(1, 21))).sum()
