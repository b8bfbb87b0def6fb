import numpy as np
import pytest
from hypothesis import given

from profiles import profile_of, random_profiles
from querymesh.mesh.route import written_route
from querymesh.stats.profile import route_text, survivors


@given(random_profiles())
def test_survivors_of_a_set_are_the_products_of_its_columns(profile):
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
