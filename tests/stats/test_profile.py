import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles import profile_of, random_profiles, three_classes
from querymesh.mesh.route import written_route
from querymesh.stats.profile import meetings, route_text, survivors


@given(random_profiles(), st.booleans())
def test_survivors_of_a_set_are_the_products_of_its_columns(profile, filters):
    if filters:
        profile = profile_of(np.minimum(profile.outcomes, 1))
    groups = np.arange(profile.rows) % 2
    table = survivors(profile.outcomes, groups, 2, chunk=3)
    for mask in range(1 << profile.operators):
        chosen = [j for j in range(profile.operators) if mask >> j & 1]
        products = profile.outcomes[:, chosen].prod(axis=1)
        for group in (0, 1):
            assert table[group, mask] == pytest.approx(products[groups == group].sum())


def test_a_tuple_pays_every_operator_it_reaches_and_none_after_it_is_dropped():
    profile = profile_of([[1, 0], [0, 1], [3, 1]], cost_us=[10, 2])
    assert profile.realized_us((1, 2)).tolist() == [12, 10, 16]
    assert profile.realized_us((2, 1)).tolist() == [2, 12, 12]
    assert profile.arriving((1, 2)).tolist() == [[1, 1], [1, 0], [1, 3]]


@given(random_profiles())
def test_no_route_beats_the_clairvoyant_bound_on_filters(profile):
    filters = profile_of(
        np.minimum(profile.outcomes, 1),
        np.array([profile.drop_us, profile.pass_us]),
        profile.after,
        profile.sample,
    )
    route = written_route(filters.after)
    assert (filters.realized_us(route) >= filters.clairvoyant_us() - 1e-9).all()


def test_the_pass_rate_of_a_guarded_operator_counts_only_what_its_guard_lets_through():
    profile = profile_of([[1, 1], [1, 0], [0, 0], [0, 0]], after=[frozenset(), frozenset({1})])
    assert profile.pass_rates().tolist() == [0.5, 0.5]


def test_a_route_reads_as_an_order():
    assert route_text((3, 1, 2)) == "3 > 1 > 2"
    assert route_text((2, 1), ("cheap", "dear")) == "dear > cheap"


def test_outcomes_must_fit_the_sample():
    with pytest.raises(ValueError, match="one row a tuple"):
        profile_of([[1, 0]], sample=profile_of([[1], [1]]).sample)


def test_the_clairvoyant_bound_by_hand():
    outcomes = [[0, 1], [1, 0], [1, 1], [0, 0]]
    costs = [[5.0, 3.0], [4.0, 2.0]]  # on dropped tuples, on passed ones
    assert profile_of(outcomes, costs).clairvoyant_us().tolist() == [5, 3, 6, 3]
    guarded = profile_of(outcomes, costs, after=[frozenset(), frozenset({1})])
    assert guarded.clairvoyant_us().tolist() == [5, 4 + 3, 6, 5]


def test_a_tuple_costs_by_what_each_operator_does_with_it():
    profile = profile_of([[0, 1], [1, 0], [4, 1]], [[5.0, 3.0], [4.0, 2.0]])
    assert profile.realized_us((1, 2)).tolist() == [5, 4 + 3, 4 + 4 * 2]
    assert profile.realized_us((2, 1)).tolist() == [2 + 5, 3, 2 + 4]


def test_the_mean_cost_of_an_operator_is_by_its_pass_rate_and_a_fan_out_passes():
    profile = profile_of([[0, 2], [0, 3], [0, 2], [1, 1]], [[5.0, 3.0], [1.0, 2.0]])
    assert profile.cost_us.tolist() == [5 - 4 * 0.25, 2]
    guarded = profile_of([[0, 0], [0, 0]], after=[frozenset(), frozenset({1})])
    assert guarded.pass_rates().tolist() == [0, 0], "nothing comes to the second"


TWO_QUERIES = (0b01, 0b11, 0b10)
"""The first operator is of one query, the last of the other, the second of both."""


def test_an_operator_of_two_queries_meets_what_either_leaves():
    outcomes = [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 1, 0], [2, 1, 1]]
    profile = profile_of(outcomes, serves=TWO_QUERIES)
    assert profile.arriving((1, 2, 3)).tolist() == [
        [1, 1, 1],
        [1, 1, 0],
        [1, 1, 1],
        [1, 1, 1],
        [1, 2, 1],
    ]
    assert profile.arriving((1, 3, 2)).tolist() == [
        [1, 1, 1],
        [1, 1, 1],
        [1, 1, 1],
        [1, 1, 0],
        [1, 1, 2],
    ]


def test_the_clairvoyant_bound_of_two_queries_pays_for_results_and_the_dearest_way_out():
    outcomes = [[1, 1, 1], [0, 1, 1], [0, 1, 0], [1, 0, 1], [0, 0, 0]]
    costs = [[5.0, 30.0, 7.0], [1.0, 2.0, 4.0]]
    profile = profile_of(outcomes, costs, serves=TWO_QUERIES)
    assert profile.clairvoyant_us().tolist() == [
        1 + 2 + 4,
        2 + 4 + 5,  # a result of the second query, and the way out of the first
        7,  # out of both: the dearer of two cheapest ways
        30,
        7,
    ]


@given(random_profiles(), st.data())
def test_meetings_count_what_each_operator_meets_behind_each_set_of_others(profile, data):
    queries = data.draw(st.integers(1, 2))
    masks = st.integers(1, (1 << queries) - 1)
    serves = [data.draw(masks) for _ in range(profile.operators)]
    alive = np.ones((queries, profile.rows))
    weights = data.draw(st.none() | st.just(np.arange(profile.rows) + 1.0))
    met, passed = meetings(profile.outcomes, serves, alive, weights)
    for j in range(profile.operators):
        for done in range(1 << profile.operators):
            left = [
                np.prod(
                    [
                        profile.outcomes[:, k]
                        for k in range(profile.operators)
                        if done >> k & 1 and serves[k] >> query & 1
                    ]
                    or [np.ones(profile.rows)],
                    axis=0,
                )
                for query in range(queries)
                if serves[j] >> query & 1
            ]
            reaching = np.max(left, axis=0) * (1.0 if weights is None else weights)
            assert met[j, done] == pytest.approx(reaching.sum())
            through = reaching * np.minimum(profile.outcomes[:, j], 1)
            assert passed[j, done] == pytest.approx(through.sum())


def test_some_tuples_of_a_profile_keep_their_outcomes_and_all_else():
    profile = three_classes(rows=10)
    some = profile.take(np.array([7, 2]))
    assert some.rows == 2
    assert some.sample["id"].to_pylist() == [7, 2]
    assert some.outcomes.tolist() == profile.outcomes[[7, 2]].tolist()
    assert (some.operators, some.names) == (3, profile.names)


def test_of_three_operators_the_last_meets_what_both_before_leave():
    profile = profile_of([[2, 3, 1], [1, 0, 1], [0, 1, 1]])
    assert profile.arriving((1, 2, 3)).tolist() == [[1, 2, 6], [1, 1, 0], [1, 0, 0]]
    assert profile.arriving((3, 2, 1)).tolist() == [[1, 1, 3], [1, 1, 0], [1, 1, 1]]
