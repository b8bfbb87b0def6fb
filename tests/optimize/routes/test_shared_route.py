from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import profile_of, random_profiles
from querymesh.optimize.routes import shared_route
from querymesh.optimize.routes.shared_route import SharedRoutes
from querymesh.optimize.routes.subset import Subset


@st.composite
def shared_profiles(draw):
    """Filters of up to three queries; an operator's predecessors serve all its queries."""
    profile = draw(random_profiles())
    queries = draw(st.integers(1, 3))
    serves = [draw(st.integers(1, (1 << queries) - 1)) for _ in range(profile.operators)]
    for j in reversed(range(profile.operators)):
        for k in profile.after[j]:
            serves[k - 1] |= serves[j]
    outcomes = np.minimum(profile.outcomes, 1)
    costs = np.array([profile.drop_us, profile.pass_us])
    return profile_of(outcomes, costs, profile.after, profile.sample, tuple(serves))


def by_hand_us(profile, route):
    """Tuple by tuple: an operator is asked while one of its queries is left."""
    total = 0.0
    for outcome in profile.outcomes:
        left = (1 << 3) - 1
        for k in route:
            if not left & profile.serves[k - 1]:
                continue
            total += profile.pass_us[k - 1] if outcome[k - 1] else profile.drop_us[k - 1]
            if not outcome[k - 1]:
                left &= ~profile.serves[k - 1]
    return total


def allowed(profile):
    for order in permutations(range(1, profile.operators + 1)):
        if all(not profile.after[k - 1] - set(order[:p]) for p, k in enumerate(order)):
            yield order


@given(shared_profiles())
@settings(max_examples=100, deadline=None)
def test_the_best_shared_order_is_the_cheapest_of_all(profile):
    costs = {order: by_hand_us(profile, order) for order in allowed(profile)}
    for order, cost in costs.items():
        assert profile.realized_us(order).sum() == pytest.approx(cost)
    found = SharedRoutes(profile.serves)(subset_of(profile))
    assert costs[found] == pytest.approx(min(costs.values()))
    assert profile.clairvoyant_us().sum() <= min(costs.values()) + 1e-9


@given(shared_profiles())
@settings(max_examples=50, deadline=None)
def test_above_the_limit_the_greedy_order_is_allowed(profile):
    before = shared_route.EXACT_LIMIT
    shared_route.EXACT_LIMIT = 0
    try:
        assert SharedRoutes(profile.serves)(subset_of(profile)) in set(allowed(profile))
    finally:
        shared_route.EXACT_LIMIT = before


def test_an_operator_that_ends_two_queries_comes_before_one_that_ends_a_single_one():
    """Alone each would go for its own 2 or 3 first; 1 serves both queries and drops nearly all."""
    outcomes = [[0, 0, 0]] * 9 + [[1, 1, 1]]
    profile = profile_of(outcomes, [1.5, 1.0, 1.0], serves=(0b11, 0b01, 0b10))
    assert SharedRoutes(profile.serves)(subset_of(profile))[0] == 1


def greedily(profile, monkeypatch):
    monkeypatch.setattr(shared_route, "EXACT_LIMIT", 0)
    return SharedRoutes(profile.serves)(subset_of(profile))


def test_the_greedy_order_takes_most_queries_away_per_microsecond(monkeypatch):
    """1 ends both queries of a tuple in 1.5 µs, 2 and 3 end one each in 1: of ten tuples nine."""
    outcomes = [[0, 0, 0]] * 9 + [[1, 1, 1]]
    costs = np.array([[1.5, 1.0, 0.9], [1.5, 1.0, 0.9]])
    profile = profile_of(outcomes, costs, serves=(0b11, 0b01, 0b10))
    assert greedily(profile, monkeypatch) == (1, 2, 3)
    costs[:, 0] = 2.5
    dear = profile_of(outcomes, costs, serves=(0b11, 0b01, 0b10))
    assert greedily(dear, monkeypatch) == (3, 2, 1)


def test_the_greedy_order_counts_what_is_left_of_each_query(monkeypatch):
    """2 would drop most of query A, but 1 dropped the same tuples before; 3 serves query B."""
    outcomes = np.ones((10, 3))
    outcomes[:8, 0] = 0
    outcomes[:7, 1] = 0
    outcomes[:3, 2] = 0
    profile = profile_of(outcomes, [1.0, 1.0, 1.0], serves=(0b01, 0b01, 0b10))
    assert greedily(profile, monkeypatch) == (1, 3, 2)


def test_the_greedy_order_costs_tuples_by_what_becomes_of_them(monkeypatch):
    """1 drops three of five tuples and 2 drops two; 1 may take long for those that pass."""
    outcomes = [[1, 1], [0, 0], [1, 1], [0, 0], [0, 1]]
    dear_to_pass = [[1.0, 3.0], [12.0, 3.0]]
    assert greedily(profile_of(outcomes, dear_to_pass, serves=(1, 1)), monkeypatch) == (2, 1)
    cheap_to_pass = [[1.0, 3.0], [1.5, 3.0]]
    assert greedily(profile_of(outcomes, cheap_to_pass, serves=(1, 1)), monkeypatch) == (1, 2)
    free = profile_of(outcomes, [0.0, 1.0], serves=(1, 1))
    assert greedily(free, monkeypatch) == (2, 1), "a free one may come last as well"
    idle = profile_of(np.ones((4, 2)), [0.0, 1.0], serves=(1, 1))
    assert greedily(idle, monkeypatch) == (1, 2), "of two that drop nothing, as written"


def subset_of(profile):
    return Subset(profile.outcomes, profile.drop_us, profile.pass_us, profile.after)


@st.composite
def shared_lookups(draw):
    """As `shared_profiles`, with operators that multiply rows."""
    profile = draw(shared_profiles())
    rows = st.lists(st.integers(0, 3), min_size=profile.operators, max_size=profile.operators).map(
        tuple
    )
    outcomes = draw(st.lists(rows, min_size=2, max_size=8))
    costs = np.array([profile.drop_us, profile.pass_us])
    return profile_of(outcomes, costs, profile.after, serves=profile.serves)


@given(shared_lookups())
@settings(max_examples=100, deadline=None)
def test_the_greedy_order_has_at_each_step_the_operator_that_is_best_by_hand(profile):
    left = [[1.0] * 3 for _ in profile.outcomes]  # of each tuple, rows for each query

    def score(k):
        pairs = cost = 0.0
        mine = [q for q in range(3) if profile.serves[k - 1] & 1 << q]
        for rows, outcome in zip(left, profile.outcomes[:, k - 1], strict=True):
            met = max(rows[q] for q in mine)
            if outcome == 0:
                pairs += sum(rows[q] for q in mine)
            cost += met * (profile.drop_us if outcome == 0 else profile.pass_us)[k - 1]
        return pairs / cost if cost else 0.0

    subset = subset_of(profile)
    patterns, weights = np.unique(profile.outcomes, axis=0, return_counts=True)
    alive = np.ones((3, len(patterns)))
    route = SharedRoutes(profile.serves)._greedy(subset, patterns, weights.astype(float), alive)
    for place, chosen in enumerate(route):
        ready = [
            k
            for k in range(1, profile.operators + 1)
            if k not in route[:place] and profile.after[k - 1] <= set(route[:place])
        ]
        assert score(chosen) >= max(map(score, ready)) * (1 - 1e-9)
        for rows, outcome in zip(left, profile.outcomes[:, chosen - 1], strict=True):
            for q in range(3):
                if profile.serves[chosen - 1] & 1 << q:
                    rows[q] *= outcome


def test_the_greedy_order_goes_on_with_a_query_of_which_something_is_left(monkeypatch):
    """Of query A 1 drops five of ten tuples and 2 four of the others; 3 drops three of query B."""
    outcomes = np.ones((10, 3))
    outcomes[:5, 0] = 0
    outcomes[5:9, 1] = 0
    outcomes[:3, 2] = 0
    profile = profile_of(outcomes, [1.0, 1.0, 1.0], serves=(0b01, 0b01, 0b10))
    assert greedily(profile, monkeypatch) == (1, 2, 3)


def test_the_greedy_order_costs_a_tuple_that_is_dropped_as_such(monkeypatch):
    """1 drops three of five tuples, at 12 µs each; 2 drops two, at 3 whatever becomes of them."""
    outcomes = [[1, 1], [0, 0], [1, 1], [0, 0], [0, 1]]
    dear_to_drop = [[12.0, 3.0], [1.0, 3.0]]
    assert greedily(profile_of(outcomes, dear_to_drop, serves=(1, 1)), monkeypatch) == (2, 1)


def test_what_a_look_up_multiplies_does_not_make_up_for_what_it_drops(monkeypatch):
    """1 drops two of four tuples and has two matches for each other; 2 drops one."""
    outcomes = [[0, 1], [0, 1], [2, 1], [2, 0]]
    profile = profile_of(outcomes, [1.0, 1.0], serves=(1, 1))
    assert greedily(profile, monkeypatch) == (1, 2)


@pytest.mark.parametrize(("operators", "is_exact"), [(10, True), (11, False)])
def test_up_to_ten_operators_are_ordered_exactly(monkeypatch, operators, is_exact):
    def not_asked(*_):
        raise AssertionError

    hidden = (SharedRoutes, "_greedy") if is_exact else (shared_route, "order_by_meetings")
    monkeypatch.setattr(*hidden, not_asked)
    profile = profile_of(np.ones((2, operators)), serves=(1,) * operators)
    assert sorted(SharedRoutes(profile.serves)(subset_of(profile))) == [*range(1, operators + 1)]
