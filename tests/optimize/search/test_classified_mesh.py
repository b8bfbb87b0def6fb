"""Meshes whose kinds are told by a classifier that is no tree."""

import numpy as np
import pyarrow as pa
import pytest

from classifiers import AnyClassLearner
from profiles import profile_of, three_classes
from querymesh.classify.condense import condense
from querymesh.classify.tree import Classes, Leaf
from querymesh.cost.route_time import Overheads
from querymesh.optimize.adapt.adapt import better_mesh, consider
from querymesh.optimize.search.classified_mesh import ClassifiedMeshes
from querymesh.optimize.train.describe import best_single, costs_us
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query

QUERY = query("SELECT * FROM t")
OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)


class Exactly:
    """Learns in which class each `kind` has the most weight; remembers what it was asked."""

    kind = "exactly"

    def fit(self, sample, labels, weights):
        self.labels, self.weights, self.sample = labels, weights, sample
        kinds = np.asarray(sample["kind"])
        most = {
            k: int(np.bincount(labels[kinds == k], weights[kinds == k]).argmax())
            for k in sorted(set(kinds))
        }
        return Known(most)

    def from_json(self, content):
        return Known(dict(content))


class Known:
    kind, columns = "exactly", ("kind",)

    def __init__(self, most):
        self.most = most

    def classes(self, column, rows):
        return np.array([self.most.get(k, 0) for k in column("kind").to_pylist()], dtype=np.int64)

    def to_json(self):
        return dict(self.most)


def test_labels_are_the_cheapest_routes_and_weights_what_another_costs_more():
    profile = profile_of(
        [[0, 1], [1, 0], [1, 1], [0, 0]] * 30,
        [10.0, 4.0],
        sample=pa.table({"kind": list("abcd") * 30}),
    )
    learner = Exactly()
    meshes = ClassifiedMeshes(condense(profile, 4), OVERHEADS, learner)
    tree, cost_us = meshes.mesh(((1, 2), (2, 1)))
    assert isinstance(tree, Classes)
    assert learner.labels[:4].tolist() == [0, 1, 0, 1]
    assert learner.weights[:4].tolist() == [4.0, 10.0, 0.0, 6.0]
    ovh_us = OVERHEADS.route_us(2)
    assert cost_us == pytest.approx((10 + 4 + 14 + 4) / 4 + tree.us + ovh_us)
    assert tree.us > 0
    assert costs_us(profile, tree, ((1, 2), (2, 1)), OVERHEADS).mean() == pytest.approx(cost_us)
    assert meshes.least_us([(1, 2), (2, 1)]) == pytest.approx((10 + 4 + 14 + 4) / 4)


def test_one_route_and_classes_that_cost_the_same_are_not_told_apart():
    meshes = ClassifiedMeshes(condense(three_classes(), 4), OVERHEADS, Exactly())
    assert meshes.mesh(((1, 2, 3),))[0] == Leaf(0)
    alike = profile_of(np.ones((50, 2)), sample=pa.table({"kind": list("ab") * 25}))
    meshes = ClassifiedMeshes(condense(alike, 4), OVERHEADS, Exactly())
    assert meshes.mesh(((1, 2), (2, 1)))[0] == Leaf(0)


def test_a_classifier_that_was_supplied_tells_the_kinds():
    mesh = train_mesh(QUERY, three_classes(), OVERHEADS, Training(classifier=Exactly()))
    assert isinstance(mesh.tree, Classes)
    assert mesh.tree.classifier.kind == "exactly"
    assert len(mesh.routes) == 3
    tree = train_mesh(QUERY, three_classes(), OVERHEADS)
    assert mesh.expected_us - mesh.tree.us == pytest.approx(tree.expected_us, rel=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_a_classifier_that_tells_nothing_is_not_asked(seed):
    training = Training(classifier=AnyClassLearner(seed))
    mesh = train_mesh(QUERY, three_classes(seed=seed), OVERHEADS, training)
    assert mesh.is_single
    assert mesh.routes == (best_single(three_classes(seed=seed)),)


def by_sums(rows=2000, seed=0):
    """Three kinds, told by the sum of six numbers, each dropped by an operator of its own."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 6))
    kind = np.digitize(numbers.sum(axis=1), [-1.05, 1.05])
    outcomes = (rng.random((rows, 3)) < np.where(np.eye(3), 0.1, 0.9)[kind]).astype(float)
    sample = pa.table({f"x{k}": numbers[:, k] for k in range(6)})
    return profile_of(outcomes, [10.0, 10.5, 11.0], sample=sample)


def test_naive_bayes_saves_where_a_tree_needs_many_leaves():
    profile, fresh = by_sums(), by_sums(8000, seed=1)
    tree = train_mesh(QUERY, profile, OVERHEADS)
    bayes = train_mesh(QUERY, profile, OVERHEADS, Training(classifier="naive-bayes"))
    assert len(bayes.leaves) == 3 < len(tree.leaves)
    tree_us, bayes_us = (
        float(costs_us(fresh, mesh.tree, mesh.routes, OVERHEADS).mean()) for mesh in (tree, bayes)
    )
    assert bayes_us - bayes.tree.us < 0.95 * tree_us


def test_a_running_mesh_with_a_classifier_is_compared_and_replaced():
    training = Training(classifier="naive-bayes")
    mesh = train_mesh(QUERY, by_sums(), OVERHEADS, training)
    same = better_mesh(mesh, by_sums(seed=2), OVERHEADS, training)
    assert not same.saving.pays(3.0, 0.03)
    moved = by_sums(seed=3)
    turned = profile_of(np.roll(moved.outcomes, 1, axis=1), moved.drop_us, sample=moved.sample)
    assert consider(mesh, turned, OVERHEADS, training).pays(3.0, 0.03)
    better = better_mesh(mesh, turned, OVERHEADS, training)
    assert better.saving.pays(3.0, 0.03)
    assert isinstance(better.mesh.tree, Classes)
