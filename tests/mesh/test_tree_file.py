"""Classifiers as JSON: trees, and others in them."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import querymesh as qm
from classifiers import AnyClass, AnyClassLearner
from meshes import three_kinds
from querymesh.classify.naive_bayes import NaiveBayesLearner
from querymesh.classify.tree import Classes, Leaf, Member, Split
from querymesh.errors import MeshFileError
from querymesh.mesh.tree_file import tree_from_json, tree_to_json

NODE = Classes(AnyClass(("k",), 2, 7), (Leaf(1), Leaf(0)), 0.125)


def test_a_classifier_of_ones_own_is_read_by_what_made_it():
    tree = Split(Member("k", (1,)), Leaf(0), NODE)
    content = json.loads(json.dumps(tree_to_json(tree)))
    assert tree_from_json(content, [AnyClassLearner()]) == tree
    with pytest.raises(MeshFileError, match=r"kind 'any', which is none of ours: .*classifiers="):
        tree_from_json(content)


def test_naive_bayes_is_read_without_being_told():
    sample = pa.table({"k": list("ab" * 50)})
    learned = NaiveBayesLearner().fit(sample, np.arange(100) % 2, np.ones(100))
    tree = Classes(learned, (Leaf(0), Leaf(1)), 0.5)
    assert tree_from_json(json.loads(json.dumps(tree_to_json(tree)))) == tree


def test_a_classifier_with_more_classes_than_there_are_routes_is_refused():
    rows = pa.table({"k": list("abc" * 50)})
    bayes = NaiveBayesLearner().fit(rows, np.arange(150) % 3, np.ones(150))
    for three in (bayes, AnyClass(("k",), 3, 7)):
        content = tree_to_json(Classes(three, (Leaf(0), Leaf(1)), 0.5))
        with pytest.raises(MeshFileError, match=f"{three.kind!r} tells 3 classes, but .* has 2"):
            tree_from_json(content, [AnyClassLearner()])
        enough = tree_to_json(Classes(three, (Leaf(0), Leaf(1), Leaf(0), Leaf(1)), 0.5))
        assert tree_from_json(enough, [AnyClassLearner()])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(routes=[0]), "two or more classes"),
        (lambda c: c.update(routes=[0, True]), "two or more classes"),
        (lambda c: c["classifier"].update(us=-1.0), "'us'"),
        (lambda c: c["classifier"].update(us=None), "'us'"),
        (lambda c: c["classifier"].update(us="dear"), "not a number"),
        (lambda c: c["classifier"].pop("kind"), "'kind' is missing"),
        (lambda c: c["classifier"].update(learned=3), "not of type dict"),
        (lambda c: c["classifier"]["learned"].update(count=0), "kind 'any': 'count' must be"),
        (lambda c: c["classifier"]["learned"].pop("seed"), "kind 'any': 'seed'"),
    ],
)
def test_a_damaged_classifier_is_refused_by_name(change, message):
    content = tree_to_json(NODE)
    change(content)
    with pytest.raises(MeshFileError, match=message):
        tree_from_json(content, [AnyClassLearner()])


def test_a_mesh_with_a_classifier_is_saved_loaded_and_explained(tmp_path):
    mesh = three_kinds()
    asked = AnyClass(("sector",), len(mesh.leaves), 3)
    ends = tuple(Leaf(k % len(mesh.routes)) for k in range(len(mesh.leaves)))
    mesh = replace(mesh, tree=Classes(asked, ends, 0.2), classify_every=4)
    mesh.save(tmp_path / "mesh.json")
    functions = mesh.query.functions
    again = qm.load(tmp_path / "mesh.json", functions, classifiers=[AnyClassLearner()])
    assert again.tree == mesh.tree
    assert again.classify_every == 4
    text = mesh.explain()
    assert "├─ any tells class 0" in text
    assert f"└─ any tells class {len(mesh.leaves) - 1}" in text
    assert "any: a class by all of sector" in text
    mesh.explain(html=tmp_path / "mesh.html")
    assert "any tells class 1" in (tmp_path / "mesh.html").read_text()
