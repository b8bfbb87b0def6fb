from itertools import permutations

import numpy as np
import pytest
from hypothesis import given

from profiles import profile_of, random_profiles
from querymesh.errors import TrainingError
from querymesh.mesh.route import written_route
from querymesh.optimize.routes.dynamic_programming import exact_route
from querymesh.optimize.routes.greedy import greedy
from querymesh.optimize.routes.rank import rank, rank_of
from querymesh.optimize.routes.route_searches import ROUTE_SEARCHES
from querymesh.optimize.routes.subset import Subset, checked_route
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


def test_a_rank_is_the_dropped_share_over_the_mean_cost_of_what_arrives():
    """Of three rows that arrive one passes, at 8 µs; two are dropped, at 2 each."""
    subset = subset_of(profile_of([[1, 1], [1, 0], [0, 0], [0, 1]], [[2.0, 1.0], [8.0, 1.0]]))
    alive = np.array([0.0, 1.0, 2.0, 0.0])
    assert rank_of(subset, 1, alive) == pytest.approx((2 / 3) / 4.0)
    assert rank_of(subset, 2, alive) == pytest.approx(1.0)
    assert rank_of(subset, 1, np.zeros(4)) == 0.0, "where nothing arrives, nothing is dropped"
    free = subset_of(profile_of([[0, 1], [0, 1]], [0.0, 0.0]))
    assert rank_of(free, 1, np.ones(2)) > 1e9
    assert rank_of(free, 2, np.ones(2)) == 0.0
    many = subset_of(profile_of([[3, 1], [2, 1]], [4.0, 1.0]))
    assert rank_of(many, 1, np.ones(2)) == pytest.approx((1 - 2.5) / 4.0), "a look-up may multiply"


def test_greedy_asks_again_after_each_choice_and_counts_what_a_lookup_multiplied():
    """Operator 1 drops half; of what is left, 3 drops more than 2. Alone 2 drops more than 3."""
    outcomes = np.ones((12, 3))
    outcomes[:6, 0] = 0
    outcomes[:5, 1] = 0  # most of them dropped by 1 already
    outcomes[6:10, 2] = 0
    assert greedy(subset_of(profile_of(outcomes))) == (1, 3, 2)
    assert rank(subset_of(profile_of(outcomes))) == (1, 2, 3)
    fan_out = np.ones((4, 3))
    fan_out[:2, 0] = 5  # the tuples that 1 multiplies are those that 2 drops and 3 keeps
    fan_out[:2, 1] = 0
    fan_out[1:, 2] = 0
    after = [frozenset(), frozenset({1}), frozenset({1})]
    assert greedy(subset_of(profile_of(fan_out, after=after))) == (1, 2, 3)


def test_auto_is_exact_up_to_fourteen_operators_and_greedy_above():
    rng = np.random.default_rng(0)
    for operators, is_exact in ((14, True), (15, False)):
        outcomes = (rng.random((40, operators)) < 0.6).astype(float)
        subset = subset_of(profile_of(outcomes, rng.uniform(1, 9, operators)))
        found = ROUTE_SEARCHES["auto"](subset)
        assert (found == greedy(subset)) is not is_exact
        if is_exact:
            assert found == ROUTE_SEARCHES["dynamic-programming"](subset)
        else:
            with pytest.raises(TrainingError, match="2\\^15 sets of 15"):
                ROUTE_SEARCHES["dynamic-programming"](subset)


def test_a_table_of_survivors_that_is_given_is_used():
    profile = profile_of([[1, 0], [0, 1]])
    given = np.array([2.0, 1.0, 0.5, 0.5])
    subset = Subset(
        profile.outcomes, profile.drop_us, profile.pass_us, profile.after, lambda: given
    )
    assert subset.survivors is given
    assert subset_of(profile).survivors.tolist() == [2.0, 1.0, 1.0, 0.0]
    assert ROUTE_SEARCHES["dynamic-programming"](subset) == (2, 1)


@pytest.mark.parametrize(
    ("returned", "fault"),
    [
        ([2, 1], "visits operator 2 before operator 1"),
        ((1,), "is not a permutation|is not a"),
        (None, "is not a sequence of operator numbers"),
        (("1", "2"), "is not a sequence of operator numbers"),
    ],
)
def test_a_route_that_is_none_is_refused(returned, fault):
    def mine(_):
        return returned

    profile = profile_of(np.ones((2, 2)), after=[frozenset(), frozenset({1})])
    with pytest.raises(TrainingError, match=f"route search mine returned .*(?:{fault})"):
        checked_route(mine, subset_of(profile))
    assert checked_route(lambda _: np.array([1, 2]), subset_of(profile)) == (1, 2)
