"""Meshes by what is foretold of rows."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import profile_of, three_classes
from querymesh.classify.outcomes.predicted import Predicted
from querymesh.classify.tree import Classes, Split
from querymesh.cost.route_time import Overheads
from querymesh.errors import OptionError
from querymesh.mesh.mesh_file import mesh_from_json, mesh_to_json
from querymesh.mesh.route import route_fault
from querymesh.optimize.adapt.adapt import better_mesh, consider
from querymesh.optimize.train.describe import best_single, costs_us
from querymesh.optimize.train.predicted_mesh import Told, beyond_chance, predicted_mesh
from querymesh.optimize.train.train import train_judged, train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query
from telling_texts import telling_texts

OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)
FUNCTIONS = {"f": lambda body: True}
QUERY = query("SELECT * FROM t WHERE f(body)", functions=FUNCTIONS)
SQL_ONLY = query("SELECT * FROM t")


def price(profile, mesh):
    return float(costs_us(profile, mesh.tree, mesh.routes, OVERHEADS).mean())


def test_dear_operators_over_texts_are_ordered_by_what_is_foretold():
    mesh = train_mesh(QUERY, telling_texts(), OVERHEADS)
    assert isinstance(mesh.tree, Classes)
    assert mesh.tree.classifier.columns == ("body",)
    assert "foretold from body" in mesh.why
    assert "body" not in {each.name for each in mesh.left_out}
    fresh = telling_texts(2000, seed=1)
    assert price(fresh, mesh) < 1.1 * float(fresh.clairvoyant_us().mean())
    assert mesh.expected_us == pytest.approx(price(fresh, mesh), rel=0.07)
    assert "predicted: a class by all of body" in mesh.explain()


def test_a_mesh_that_foretells_is_saved_and_read():
    mesh = train_mesh(QUERY, telling_texts(), OVERHEADS)
    again = mesh_from_json(mesh_to_json(mesh), FUNCTIONS)
    assert again.tree == mesh.tree
    assert again.routes == mesh.routes


@pytest.mark.parametrize(
    ("asked", "cost_us", "training"),
    [
        (QUERY, (2.0, 2.5, 3.0), Training()),
        (SQL_ONLY, (2000.0, 2500.0, 3000.0), Training()),
        (QUERY, (2000.0, 2500.0, 3000.0), Training(predict=False)),
    ],
    ids=["cheap", "without functions", "not wished for"],
)
def test_nothing_is_foretold_where_it_could_not_pay_or_is_not_wanted(asked, cost_us, training):
    profile = telling_texts(cost_us=cost_us)
    assert train_mesh(asked, profile, OVERHEADS, training).is_single
    wished = replace(training, classifier="predicted")
    assert not train_mesh(asked, profile, OVERHEADS, wished).is_single or cost_us[0] < 10


@pytest.mark.parametrize("seed", range(15))
def test_texts_that_say_nothing_leave_the_single_route(seed):
    noise = telling_texts(300, seed, noise=True)
    trained = train_judged(QUERY, noise, OVERHEADS)
    assert trained.mesh.is_single
    assert trained.mesh.routes == (best_single(noise),)


def test_a_tree_that_tells_the_kinds_as_well_stays():
    profile = three_classes(600)
    dear = profile_of(profile.outcomes, [2000.0, 2200.0, 2400.0], sample=profile.sample)
    assert isinstance(train_mesh(QUERY, dear, OVERHEADS).tree, Split)


def test_the_order_of_others_that_must_come_first_is_kept():
    profile = telling_texts(800)
    outcomes = profile.outcomes.copy()
    outcomes[:, 2] *= outcomes[:, 0]
    guarded = profile_of(
        outcomes, profile.drop_us, [frozenset(), frozenset(), frozenset({1})], profile.sample
    )
    mesh = train_mesh(QUERY, guarded, OVERHEADS)
    assert isinstance(mesh.tree, Classes)
    assert not any(route_fault(route, guarded.after) for route in mesh.routes)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([60, 200]))
def test_what_is_accepted_saves_on_rows_held_back_and_is_never_reckoned_dearer(seed, noise, rows):
    profile = telling_texts(rows, seed, noise=noise)
    single = best_single(profile)
    found = predicted_mesh(profile, OVERHEADS, single, 0)
    if found is None:
        return
    assert found.routes[0] == single
    assert len(set(found.routes)) == len(found.routes)
    saved_us = profile.realized_us(single) - found.row_us(profile, OVERHEADS)
    mesh = train_mesh(QUERY, profile, OVERHEADS, Training(classifier="predicted"))
    assert mesh.is_single != beyond_chance(saved_us, 2.0)
    assert mesh.expected_us <= mesh.single_us


def test_what_was_told_of_a_sample_is_told_of_no_other_rows():
    told = Told(np.array([0, 1, 0]), ("body",), "predicted")
    assert told.classes(None, 3).tolist() == [0, 1, 0] == told.to_json()["said"]
    with pytest.raises(ValueError, match="3 rows were told, and these are 2"):
        told.classes(None, 2)


def test_features_of_ones_own_may_be_all_that_is_looked_at():
    def kinds(bodies):
        return np.array([[f"Key{k}" in body for k in range(3)] for body in bodies.to_pylist()])

    training = Training(classifier=Predicted(kinds, columns=["body"]))
    mesh = train_mesh(QUERY, telling_texts(100), OVERHEADS, training)
    assert isinstance(mesh.tree, Classes)
    again = mesh_from_json(mesh_to_json(mesh), FUNCTIONS, learners=training.learners)
    assert again.tree == mesh.tree
    assert training.label_learner is None


def test_a_running_mesh_is_compared_with_what_can_be_foretold_and_replaced():
    single = train_mesh(QUERY, telling_texts(), OVERHEADS, Training(predict=False))
    assert single.is_single
    better = better_mesh(single, telling_texts(900, seed=2), OVERHEADS, Training())
    assert isinstance(better.mesh.tree, Classes)
    assert better.saving.pays(3.0, 0.03)
    running = better.mesh
    assert not better_mesh(running, telling_texts(900, seed=3), OVERHEADS, Training()).saving.pays(
        3.0, 0.03
    )
    moved = telling_texts(900, seed=4)
    turned = profile_of(np.roll(moved.outcomes, 1, axis=1), moved.drop_us, sample=moved.sample)
    assert consider(running, turned, OVERHEADS, Training()).pays(3.0, 0.03)
    wished = Training(classifier="predicted")
    assert isinstance(better_mesh(running, turned, OVERHEADS, wished).mesh.tree, Classes)


def test_whether_to_foretell_is_yes_or_no():
    with pytest.raises(OptionError, match="predict is True or False, not 'yes'"):
        Training(predict="yes")


def test_look_ups_with_several_matches_are_left_as_they_are():
    profile = telling_texts(300)
    outcomes = np.column_stack([profile.outcomes, np.full(300, 2.0)])
    after = [frozenset()] * 4
    wide = profile_of(outcomes, [2000.0, 2500.0, 3000.0, 50.0], after, profile.sample)
    mesh = train_mesh(QUERY, wide, OVERHEADS)
    assert isinstance(mesh.tree, Classes)
    assert all(route[-1] == 4 for route in mesh.routes)


def test_a_sample_of_nothing_but_ids_has_nothing_to_foretell_from():
    profile = telling_texts()
    ids = profile_of(
        profile.outcomes, profile.drop_us, sample=pa.table({"id": np.arange(profile.rows)})
    )
    assert train_mesh(QUERY, ids, OVERHEADS).is_single
