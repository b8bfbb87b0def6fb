"""Filters whose Python functions are ordered by what is foretold of them, beside Catalyst's."""

import numpy as np

from placements import BOTH, CATALYST, PYTHON, costs_of
from profiles import profile_of
from querymesh.classify.tree import Classes
from querymesh.cost.route_time import Overheads
from querymesh.mesh.mesh_file import mesh_from_json, mesh_to_json
from querymesh.mesh.stages import python_part, stages_fault
from querymesh.optimize.placement.decide import decide
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query
from telling_texts import telling_texts

OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)
FUNCTIONS = {"f": lambda body: True}
QUERY = query("SELECT * FROM t WHERE f(body)", functions=FUNCTIONS)


def with_cheap_ones(rows=500, seed=0):
    """Three functions, between a condition that both engines know and one for Catalyst alone."""
    profile = telling_texts(rows, seed)
    rng = np.random.default_rng((seed, 1))
    cheap = (rng.random((rows, 2)) < [0.6, 0.9]).astype(float)
    outcomes = np.column_stack([cheap[:, 0], profile.outcomes, cheap[:, 1]])
    costs = costs_of(
        [BOTH, PYTHON, PYTHON, PYTHON, CATALYST],
        [1.0, np.inf, np.inf, np.inf, 3.0],
        [0.5, 2000.0, 2500.0, 3000.0, np.inf],
    )
    python_us = [0.5, 2000.0, 2500.0, 3000.0, 3.0]
    return profile_of(outcomes, python_us, sample=profile.sample), costs


def test_functions_are_ordered_row_by_row_and_catalyst_does_the_same_for_all():
    profile, costs = with_cheap_ones()
    decision = decide(QUERY, profile, costs, OVERHEADS)
    mesh = decision.mesh
    assert isinstance(mesh.tree, Classes), decision.why
    assert stages_fault(mesh.stages, mesh.leaf_routes) == ""
    assert mesh.stages.is_alike(mesh)
    assert len(set(mesh.stages.before(mesh))) == len(set(mesh.stages.after(mesh))) == 1
    assert len(set(mesh.stages.python(mesh))) > 1
    assert isinstance(python_part(mesh).tree, Classes)
    assert mesh.tree.classifier.kind == "predicted"
    assert decision.expected_us < 0.8 * decision.single_us
    assert "foretold from body" in mesh.why
    again = mesh_from_json(mesh_to_json(mesh), FUNCTIONS)
    assert again.tree == mesh.tree
    assert again.stages == mesh.stages


def test_it_is_expected_to_cost_what_it_costs_rows_that_it_has_not_seen():
    profile, costs = with_cheap_ones()
    expected_us = decide(QUERY, profile, costs, OVERHEADS).expected_us
    fresh, _ = with_cheap_ones(3000, seed=1)
    mesh = decide(QUERY, profile, costs, OVERHEADS).mesh
    told = mesh.tree.classifier.classes(lambda name: fresh.sample[name].combine_chunks(), 3000)
    us = np.stack([fresh.realized_us(mesh.routes[end.label]) for end in mesh.tree.ends], axis=1)
    assert us[np.arange(3000), told].mean() < 1.1 * expected_us


def test_without_it_the_same_filter_has_one_order():
    profile, costs = with_cheap_ones()
    plain = decide(QUERY, profile, costs, OVERHEADS, training=Training(predict=False))
    assert not isinstance(plain.mesh.tree, Classes)
    sql = decide(query("SELECT * FROM t"), profile, costs, OVERHEADS)
    assert not isinstance(sql.mesh.tree, Classes)
