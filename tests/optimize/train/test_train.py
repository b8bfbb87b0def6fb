import numpy as np
import pytest
from hypothesis import given, settings

from profiles import profile_of, random_profiles, three_classes
from querymesh.classify.tree import attributes_of
from querymesh.cost.route_time import Overheads
from querymesh.errors import QueryMeshError, TrainingError
from querymesh.mesh.mesh import written_order
from querymesh.optimize.train.describe import best_single
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query

OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)
QUERY = query("SELECT * FROM t")


def trained(profile, **kwargs):
    return train_mesh(QUERY, profile, OVERHEADS, **kwargs)


def test_three_classes_with_opposite_selectivities_get_a_route_each():
    profile = three_classes()
    mesh = trained(profile)
    assert len(mesh.routes) == 3
    assert attributes_of(mesh.tree) == {"kind"}
    assert {route[0] for route in mesh.routes} == {1, 2, 3}
    oracle = sum(
        of.realized_us(best_single(of)).sum()
        for of in (
            profile.take(np.flatnonzero(np.asarray(profile.sample["kind"]) == kind))
            for kind in "abc"
        )
    )
    assert mesh.expected_us <= 1.01 * oracle / profile.rows
    assert mesh.bound_us <= mesh.expected_us < 0.7 * mesh.single_us
    assert {entry.name for entry in mesh.left_out} == {"id"}


@pytest.mark.parametrize("seed", range(10))
def test_uniform_data_gets_a_single_route(seed):
    mesh = trained(three_classes(seed=seed, opposite=False))
    assert mesh.is_single
    assert mesh.expected_us == mesh.single_us


@given(random_profiles(most_rows=60))
@settings(max_examples=60)
def test_a_mesh_never_costs_more_than_the_best_single_route(profile):
    mesh = trained(profile)
    assert mesh.expected_us <= mesh.single_us + 1e-9
    every = tuple(range(1, profile.operators + 1))
    assert all(tuple(sorted(route)) == every for route in mesh.routes)


def test_a_seed_gives_the_same_mesh_again():
    profile = three_classes(seed=3)
    again = [trained(profile, training=Training(seed=5)) for _ in range(2)]
    assert again[0] == again[1]


def test_overheads_that_no_route_can_pay_for_leave_one_route():
    mesh = train_mesh(QUERY, three_classes(), Overheads(node_us=50.0, ruster_us=0.0, window=10))
    assert mesh.is_single


def test_zero_and_one_operators_have_one_route():
    assert trained(profile_of(np.ones((5, 0)))).routes == ((),)
    assert trained(profile_of(np.ones((5, 1)))).routes == ((1,),)


def test_policy_single_is_the_best_single_route():
    profile = three_classes()
    assert trained(profile, policy="single").routes == (best_single(profile),)


def test_an_empty_sample_is_refused():
    with pytest.raises(TrainingError, match="the sample is empty"):
        trained(profile_of(np.ones((0, 2))))


def test_unknown_strategies_list_the_known_ones():
    with pytest.raises(QueryMeshError, match="route-driven"):
        Training(start="route-drven")
    with pytest.raises(QueryMeshError, match="did you mean 'iterative-improvement'"):
        Training(search="iterativ-improvement")
    with pytest.raises(QueryMeshError, match="mesh, single"):
        trained(three_classes(), policy="eddy")


def test_an_untrained_mesh_runs_the_order_as_written_except_for_precedence():
    mesh = written_order(QUERY, ("a", "b"), (frozenset({2}), frozenset()))
    assert mesh.routes == ((2, 1),)
    assert mesh.sample_rows == 0
