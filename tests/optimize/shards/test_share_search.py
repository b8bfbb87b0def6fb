"""The search for shares in its parts: the walk it begins with, its bound, and what it enters."""

from itertools import combinations
from math import log

import pytest

from querymesh.optimize.shards import share_search
from querymesh.optimize.shards.share_search import ShareSearch

LN2 = log(2)
PAIRS_OF_TEN = list(combinations(range(10), 2))


def test_numbers_fall_apart_into_primes_the_largest_first():
    assert share_search._primes(360) == [5, 3, 3, 2, 2, 2]
    assert share_search._primes(7) == [7]
    assert share_search._primes(1) == []


def test_a_walk_gives_each_prime_to_the_dimension_where_it_costs_least():
    """3 goes to the second dimension (12 + 24 rows, or 36 + 8), then 2 to the first (12 + 12, or
    6 + 24), then 2 to the first of two where it costs the same (12 + 6, or 6 + 12)."""
    assert share_search._downhill([(1,), (0,)], [3.0, 2.0], 12) == [4, 3]


def test_a_walk_moves_primes_on_as_long_as_that_saves():
    """Prime by prime it comes to 1, 2, 4; the first 2 then saves a row in the first dimension."""
    owners, rates = [(1, 3), (0, 3), (0, 2)], [3.0, 1.0, 2.0, 1.0]
    assert share_search._downhill(owners, rates, 8) == [2, 1, 4]
    assert share_search._cost(owners, rates, 8, [1, 2, 4]) == 3 + 8 + 2 * 2 + 4
    assert share_search._cost(owners, rates, 8, [2, 1, 4]) == 3 * 2 + 4 + 2 * 2 + 4


def test_the_search_finds_what_no_walk_of_single_primes_comes_to():
    assert ShareSearch([(1,), (0,)], [3.0, 2.0], 12).run() == (3, 4), "9 + 8 rows, not 12 + 6"


@pytest.mark.parametrize(
    ("owners", "rates", "shards", "most"),
    [
        (list(combinations(range(4), 2)), [1.0] * 4, 24, 5),
        (list(combinations(range(5), 2)), [1.0] * 5, 720, 40),
        (list(combinations(range(6), 2)), [1.0, 1.0, 2.0, 9.0, 1.0, 2.0], 24, 30),
        (PAIRS_OF_TEN, [1.0] * 10, 1024, 45),
        (PAIRS_OF_TEN, [1.0] * 10, 840, 1300),
        ([(s,) for s in range(6)], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 360, 6),
        ([(0, 1, 2), (2, 3), (3, 4, 5), (0, 5), (1, 4)], [5.0, 1.0, 2.0, 7.0, 1.0, 3.0], 720, 3),
        ([(0, 1), (1, 2), (2, 3), (3, 4)], [1.0, 2.0, 3.0, 4.0, 5.0], 1024, 4),
    ],
)
def test_the_bound_leaves_few_states_to_enter(owners, rates, shards, most):
    """A bound that is too low is not wrong, but the search then looks at everything."""
    search = ShareSearch(owners, rates, shards)
    search.run()
    assert search.is_exact
    assert 0 < len(search._seen) <= most


def test_a_hundred_thousand_states_are_too_many():
    search = ShareSearch([(0,), (1,)], [1.0, 1.0], 4)
    search._seen = {(number,): 0.0 for number in range(99_999)}
    assert search.is_exact is True
    search._seen[100_000,] = 0.0
    assert search.is_exact is False


def test_a_state_is_entered_again_where_what_is_done_cost_less():
    """From the second dimension on the first stream is done: cut in 2 of 4 it costs 2, in 4 one."""
    search = ShareSearch([(0,), (1,), (2,)], [1.0, 1.0, 1.0], 4)
    assert not search._was_here(1, 2, [2, 1, 1])
    assert search._was_here(1, 2, [2, 1, 1]), "the same again"
    assert not search._was_here(1, 1, [2, 1, 1]), "less is left"
    assert not search._was_here(1, 2, [2, 1, 2]), "another stream is cut"
    assert search._was_here(1, 2, [2, 2, 1]), "or one that is like it"
    assert not search._was_here(1, 2, [4, 1, 1]), "what is done is cheaper"
    assert search._was_here(1, 2, [2, 1, 1])
    assert not search._was_here(2, 2, [2, 1, 1]), "another dimension is next"


def test_shares_as_good_as_the_walk_are_taken_and_then_only_better_ones():
    search = ShareSearch([(0,), (1,)], [1.0, 1.0], 4)
    search._best_cost = 10.0
    assert [search._worth(cost) for cost in (9.9, 10.0, 10.1)] == [True, True, False]
    search._offer((2, 2))
    assert (search._best, search._best_cost) == ((2, 2), 4.0)
    assert [search._worth(cost) for cost in (3.9, 4.0, 4.1)] == [True, False, False]
    search._offer((4, 1))
    assert search._best == (2, 2)


def test_the_lines_between_divisors_are_as_steep_as_the_cost_falls():
    half, quarter = 0.5 / LN2, 0.25 / LN2
    assert share_search._pieces(4) == (pytest.approx((half, LN2)), pytest.approx((quarter, LN2)))
    assert share_search._pieces(3) == (pytest.approx((2 / 3 / log(3), log(3))),)
    assert share_search._pieces(1) == ()


@pytest.mark.parametrize(
    ("costs", "weights", "least"),
    [
        # 4 for one bit of the first, 2 for a bit of the second, at half the weight, 1 for half of
        # the next bit of the first.
        ([8.0, 4.0], [1.0, 0.5], 12.0 - 4.0 - 2.0 - 1.0),
        ([8.0], [1.0], 2.0),
        ([8.0], [0.25], 2.0),  # there is more to spend than divisors take
        ([8.0, 3.0], [1.0, 0.0], 2.0 + 3.0),  # what owns nothing stays
        ([3.0], [0.0], 3.0),
        ([8.0, 8.0], [1.0, 1.0], 4.0 + 4.0),
    ],
)
def test_a_bound_spends_where_costs_fall_fastest_for_their_weight(costs, weights, least):
    assert share_search._spend(costs, weights, 4) == pytest.approx(least)


def test_a_stream_weighs_one_over_the_owners_of_its_largest_dimension():
    third = 1 / 3
    assert share_search._weights_by_size([(0, 1), (1, 2, 3), (0,)], 5) == [
        [0.5, third, third, third, 0.0],
        [1.0, third, third, third, 0.0],
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0],
    ]


@pytest.mark.parametrize(
    ("owners", "costs", "weights"),
    [
        # Cut by 8 and 2 both cost 1.
        ([(0,), (1,)], [8.0, 2.0], [1.0, 1.0]),
        # Two streams of one dimension count as one of twice the cost.
        ([(0, 1), (2,)], [3.0, 3.0, 3.0], [0.5, 0.5, 1.0]),
        # All of it goes to the first dimension: 32 / 16 is still twice the other.
        ([(0,), (1,)], [32.0, 1.0], [1.0, 0.5]),
        ([(0, 1)], [3.0, 1.0, 7.0], [0.75, 0.25, 0.0]),
        ([(0,), (1,)], [0.08, 0.02], [1.0, 1.0]),
    ],
)
def test_fitted_weights_are_those_of_the_best_shares_that_need_not_be_integers(
    owners, costs, weights
):
    assert share_search._fitted_weights(owners, costs, 16) == pytest.approx(weights, abs=2e-3)


def test_a_stream_that_costs_nothing_still_weighs_something_where_it_owns():
    found = share_search._fitted_weights([(0, 1), (2,)], [1.0, 0.0, 1.0, 5.0], 4)
    assert (found[1], found[3]) == (1e-12, 0.0)
    assert share_search._fitted_weights([(0,)], [0.0], 4) == [1e-12]


@pytest.mark.parametrize(
    ("owners", "costs", "left", "least"),
    [
        ([(0,), (1,), (2,)], [1.0, 5.0, 25.0], 30, 5.155),
        ([(0, 1), (0, 2)], [1.0, 5.0, 9.0], 6, 5.66),
        ([(0, 1), (1, 2), (2, 3)], [1.0, 2.0, 3.0, 4.0], 64, 1.152),
    ],
)
def test_the_highest_of_sixty_tangents_is_a_good_bound(owners, costs, left, least):
    fitted = share_search._fitted_weights(owners, costs, left)
    for owning in owners:
        assert sum(fitted[s] for s in owning) <= 1 + 1e-9
    assert share_search._spend(costs, fitted, left) > least
