from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import querymesh as qm
from profiles import profile_of, random_profiles, three_classes
from querymesh.cost.route_time import Overheads
from querymesh.errors import OptionError
from querymesh.mesh.mesh_file import mesh_from_json, mesh_to_json
from querymesh.mesh.route import certain, uncertain_text, written_route
from querymesh.optimize.routes.uncertain import MOST_CHOICES, dearest_us, uncertain_route
from querymesh.optimize.train.describe import reach
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training


def allowed(order, after):
    return all(not after[k - 1] - set(order[:place]) for place, k in enumerate(order))


def orders_of(steps, after):
    """Every order that the choices and precedence leave open, one by one."""
    for parts in product(*(permutations(choice) for choice in steps)):
        order = tuple(k for part in parts for k in part)
        if allowed(order, after):
            yield order


@given(random_profiles(), st.sampled_from([0.0, 0.01, 0.1, 0.5, 3.0]))
@settings(max_examples=150, deadline=None)
def test_every_order_left_open_costs_less_than_the_tolerance_more(profile, tolerance):
    route = written_route(profile.after)
    steps = uncertain_route(route, profile, tolerance)
    assert route in set(orders_of(steps, profile.after))
    best = profile.realized_us(route).sum()
    costs = [profile.realized_us(order).sum() for order in orders_of(steps, profile.after)]
    assert dearest_us(steps, profile) == pytest.approx(max(costs))
    if len(costs) > 1 or any(len(choice) > 1 for choice in steps):
        assert max(costs) < (1 + tolerance) * best + 1e-9


def test_two_operators_that_might_as_well_change_places_become_one_choice():
    """The paper's token <2, 3|1, 4>: 3 and 1 are alike, 2 is clearly first and 4 clearly last."""
    rng = np.random.default_rng(0)
    outcomes = (rng.random((4000, 4)) < [0.5, 0.05, 0.5, 0.95]).astype(float)
    profile = profile_of(outcomes, [5.0, 1.0, 5.0, 30.0])
    steps = uncertain_route((2, 3, 1, 4), profile, 0.02)
    assert uncertain_text(steps) == "2, 3|1, 4"


def test_zero_tolerance_leaves_every_route_as_it_is():
    profile = profile_of(np.ones((5, 3)))
    assert uncertain_route((3, 1, 2), profile, 0.0) == certain((3, 1, 2))


def test_a_choice_does_not_grow_without_bound():
    profile = profile_of(np.ones((5, 9)))
    steps = uncertain_route(tuple(range(1, 10)), profile, 0.5)
    assert max(map(len, steps)) <= MOST_CHOICES


@pytest.mark.parametrize("operators", range(5, 14))
def test_choices_grow_to_six_operators_and_are_joined_as_long_as_they_fit(operators):
    profile = profile_of(np.ones((5, operators)))
    steps = uncertain_route(tuple(range(1, operators + 1)), profile, 0.5)
    assert [k for choice in steps for k in choice] == list(range(1, operators + 1))
    sizes = [len(choice) for choice in steps]
    assert max(sizes) <= MOST_CHOICES == 6
    assert all(a + b > 6 for a, b in pairwise(sizes))


def test_queries_in_one_pass_have_their_dearest_order_too():
    rng = np.random.default_rng(4)
    outcomes = (rng.random((30, 4)) < [0.3, 0.6, 0.5, 0.8]).astype(float)
    profile = profile_of(outcomes, [4.0, 1.0, 9.0, 2.0], serves=(0b01, 0b11, 0b10, 0b01))
    for route in permutations((1, 2, 3, 4)):
        own = profile.realized_us(route).sum()
        assert dearest_us(certain(route), profile) == pytest.approx(own)
        steps = (route[:1], route[1:])
        costs = [profile.realized_us(order).sum() for order in orders_of(steps, profile.after)]
        assert dearest_us(steps, profile) == pytest.approx(max(costs))


QUERY = qm.query("SELECT * FROM t WHERE a > 1 AND b > 1 AND c > 1")


def test_training_with_a_tolerance_leaves_orders_open_leaf_by_leaf():
    """In class a p1 drops and p2 and p3 are alike, and so on: what follows the first is open."""
    mesh = train_mesh(
        QUERY, three_classes(), Overheads(0.005, 20.0, 10_000), Training(tolerance=0.1)
    )
    assert len(mesh.uncertain) == len(mesh.leaves) == 3
    for steps, route in zip(mesh.uncertain, mesh.leaf_routes, strict=True):
        assert steps[0] == route[:1]
        assert set(steps[1]) == set(route[1:])
    assert "|" in mesh.explain()
    assert mesh_from_json(mesh_to_json(mesh)).uncertain == mesh.uncertain


@pytest.mark.parametrize("tolerance", [-0.1, float("nan"), float("inf")])
def test_a_tolerance_that_is_no_share_is_refused(tolerance):
    with pytest.raises(OptionError, match="tolerance is a share from 0"):
        Training(tolerance=tolerance)


def test_without_a_tolerance_a_mesh_is_certain():
    mesh = train_mesh(QUERY, three_classes(), Overheads(0.005, 20.0, 10_000))
    assert mesh.uncertain == ()
    assert mesh.leaf_choices == tuple(map(certain, mesh.leaf_routes))


def test_no_order_is_left_open_that_costs_more_than_the_single_route():
    profile = three_classes()
    mesh = train_mesh(QUERY, profile, Overheads(0.005, 20.0, 10_000), Training(tolerance=9.0))
    ends = zip(mesh.uncertain, mesh.leaf_routes, reach(profile, mesh.tree), strict=True)
    others = [(steps, rows) for steps, route, rows in ends if route != mesh.single]
    assert len(others) == 2
    for steps, rows in others:
        here = profile.take(rows)
        assert dearest_us(steps, here) <= here.realized_us(mesh.single).sum() + 1e-6


def test_what_the_single_route_costs_is_a_limit_and_what_the_route_costs_is_not_one():
    """1 drops all ten tuples and the others none, at 1 µs each: (1, 2, 3) costs 10, an order with
    1 behind one other 20, behind two 30."""
    profile = profile_of([[0, 1, 1]] * 10)
    route = (1, 2, 3)
    assert uncertain_route(route, profile, 9.0) == ((1, 2, 3),)
    assert uncertain_route(route, profile, 9.0, single=route) == ((1, 2, 3),)
    assert uncertain_route(route, profile, 9.0, single=(2, 3, 1)) == ((1,), (2, 3))
    assert uncertain_route(route, profile, 1.5, single=(2, 3, 1)) == ((1,), (2, 3))
    assert uncertain_route(route, profile, 9.0, single=(1, 3, 2)) == certain(route)
    assert uncertain_route((2, 1, 3), profile, 9.0, single=route) == certain((2, 1, 3))


def test_of_two_pairs_that_might_change_places_the_cheaper_is_joined_first():
    """1 leaves two of ten tuples: behind it 2 and 3 cost 2 each, before it 10."""
    profile = profile_of([[0, 1, 1]] * 8 + [[1, 1, 0]] * 2, [1.0, 1.0, 1.0])
    assert dearest_us(certain((1, 2, 3)), profile) == 10 + 2 + 2
    assert dearest_us(((1, 2), (3,)), profile) == 10 + 10 + 2
    assert dearest_us(((1,), (2, 3)), profile) == 10 + 2 + 2
    assert uncertain_route((1, 2, 3), profile, 0.5) == ((1,), (2, 3))
