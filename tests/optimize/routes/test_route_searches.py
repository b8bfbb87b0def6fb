from itertools import permutations

import numpy as np
import pytest
from hypothesis import given

from profiles import profile_of, random_profiles
from querymesh.errors import TrainingError
from querymesh.mesh.route import written_route
from querymesh.optimize.routes.dynamic_programming import exact_route
from querymesh.optimize.routes.greedy import greedy
from querymesh.optimize.routes.rank import rank
from querymesh.optimize.routes.route_searches import ROUTE_SEARCHES
from querymesh.optimize.routes.subset import Subset
from querymesh.optimize.train.describe import best_single
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
    assert greedy(subset_of(profile)) in allowed
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


def subset_of(profile):
    return Subset(profile.outcomes, profile.drop_us, profile.pass_us, profile.after)


@pytest.mark.parametrize("search", ROUTE_SEARCHES)
@given(profile=random_profiles())
def test_every_route_search_keeps_precedence_and_none_beats_dynamic_programming(search, profile):
    route = ROUTE_SEARCHES[search](subset_of(profile))
    assert route in set(allowed_routes(profile.after))
    best = ROUTE_SEARCHES["dynamic-programming"](subset_of(profile))
    least = profile.realized_us(best).sum()
    assert profile.realized_us(route).sum() >= least * (1 - 1e-9)


def test_rank_is_optimal_for_independent_filters():
    rng = np.random.default_rng(2)
    grid = np.stack(np.meshgrid(*[np.arange(5)] * 4), axis=-1).reshape(-1, 4)
    outcomes = (grid < rng.integers(1, 5, 4)).astype(float)  # every combination once: independent
    profile = profile_of(outcomes, rng.uniform(1, 9, 4))
    best = min(profile.realized_us(route).sum() for route in allowed_routes(profile.after))
    assert profile.realized_us(rank(subset_of(profile))).sum() == pytest.approx(best)


def test_rank_is_fooled_by_correlation_where_greedy_is_not():
    outcomes = np.ones((100, 3))
    outcomes[:60, 0] = outcomes[:60, 1] = 0
    outcomes[50:, 2] = 0
    profile = profile_of(outcomes)
    assert ROUTE_SEARCHES["rank"](subset_of(profile)) == (1, 2, 3)
    assert ROUTE_SEARCHES["greedy"](subset_of(profile)) == (1, 3, 2)


@pytest.mark.parametrize(("passed_of_survivors", "second"), [(1, 3), (0, 2)])
def test_rank_judges_an_operator_by_the_tuples_it_may_meet_first(passed_of_survivors, second):
    """Operator 2 waits for 1 and drops half of all tuples: of those it can meet, none or all."""
    outcomes = np.ones((100, 3))
    outcomes[:50, 0] = 0
    outcomes[:50, 1] = 1 - passed_of_survivors
    outcomes[50:, 1] = passed_of_survivors
    outcomes[::4, 2] = 0
    profile = profile_of(outcomes, [1.0, 1.0, 1.0], [frozenset(), frozenset({1}), frozenset()])
    assert rank(subset_of(profile))[:2] == (1, second)


def test_dynamic_programming_refuses_more_sets_than_it_can_hold():
    profile = profile_of(np.ones((2, 20)))
    with pytest.raises(TrainingError, match=r"2\^20 sets.*at most 14: use 'auto', 'greedy'"):
        ROUTE_SEARCHES["dynamic-programming"](subset_of(profile))
    assert len(ROUTE_SEARCHES["auto"](subset_of(profile))) == 20


@pytest.mark.parametrize("search", ROUTE_SEARCHES)
def test_precedence_that_contradicts_itself_is_refused(search):
    profile = profile_of(np.ones((2, 3)), after=[frozenset({2}), frozenset({1}), frozenset()])
    with pytest.raises(TrainingError, match=r"contradicts itself: each of the operators \[1, 2\]"):
        ROUTE_SEARCHES[search](subset_of(profile))
