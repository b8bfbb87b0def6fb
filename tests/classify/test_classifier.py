"""Classifiers of another kind than the tree, and what is checked of them."""

import numpy as np
import pyarrow as pa
import pytest

from classifiers import AnyClass, AnyClassLearner
from querymesh.classify import tree as trees
from querymesh.classify.classifier import check_learner, classes_of
from querymesh.classify.classifiers import CLASSIFIERS
from querymesh.classify.outcomes.foretold import learns_labels
from querymesh.classify.tree import (
    Classes,
    Leaf,
    Member,
    Split,
    attributes_of,
    branches,
    leaves,
    leaves_of,
    only_used,
    paths_us,
    relabelled,
)
from querymesh.errors import OptionError, QueryMeshError

ASKED = AnyClass(("k", "n"), 3, seed=1)
NODE = Classes(ASKED, (Leaf(0), Leaf(1), Leaf(0)), us=0.25)
BELOW = Split(Member("g", ("a",)), Leaf(2), NODE)


class Says:
    """A classifier that says what it is told to."""

    kind, columns = "says", ("k",)

    def __init__(self, told):
        self.told = told

    def classes(self, column, rows):
        return self.told


@pytest.mark.parametrize(
    "learner", [AnyClassLearner(), *(each for each in CLASSIFIERS.values() if learns_labels(each))]
)
def test_a_learner_learns_and_reads_what_it_learned(learner):
    check_learner(learner)
    rng = np.random.default_rng(0)
    sample = pa.table({"a": rng.normal(size=200), "b": pa.array(rng.choice(["x", "y"], 200))})
    labels = rng.integers(0, 3, 200)
    classifier = learner.fit(sample, labels, np.ones(200))
    assert classifier.kind == learner.kind
    assert set(classifier.columns) <= {"a", "b"}
    again = learner.from_json(classifier.to_json())
    assert again == classifier

    def column(name):
        return sample[name].combine_chunks()

    told = classes_of(classifier, column, 200, 3)
    assert told.tolist() == classes_of(again, column, 200, 3).tolist()
    assert len(classes_of(classifier, lambda name: column(name)[:0], 0, 3)) == 0


def test_what_learns_no_classifiers_is_refused():
    with pytest.raises(OptionError, match="str makes no classifiers: it has no fit and from_json"):
        check_learner("tree")


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ([0, 1], "shape \\(2,\\) for 3 rows"),
        ([0.0, 1.0, 2.0], "float64"),
        ([0, 1, 3], "3 classes, 0 to 2"),
        ([-1, 1, 2], "3 classes, 0 to 2"),
    ],
)
def test_what_is_no_class_is_refused_by_name(told, message):
    with pytest.raises(QueryMeshError, match=message):
        classes_of(Says(told), lambda _: None, 3, 3)
    assert classes_of(Says(np.array([2, 0, 1], np.int8)), lambda _: None, 3, 3).dtype == np.int64


def test_its_classes_are_leaves_like_any_other():
    assert [(leaf.label, tests) for leaf, tests in leaves(BELOW)] == [
        (2, 1),
        (0, 1),
        (1, 1),
        (0, 1),
    ]
    assert [us for _, us in paths_us(BELOW, 0.5)] == [0.5, 0.75, 0.75, 0.75]
    assert attributes_of(BELOW) == {"g", "k", "n"}
    assert relabelled(NODE, [5, 6, 7]).ends == (Leaf(5), Leaf(6), Leaf(7))
    assert only_used(Classes(ASKED, (Leaf(2), Leaf(1), Leaf(2)), 0.0), "xyz")[1] == ("z", "y")
    assert list(trees.tests_of(BELOW)) == [BELOW.test]
    assert [text for text, _ in branches(NODE)] == [f"any tells class {k}" for k in range(3)]


def test_every_row_is_in_the_class_that_it_is_told():
    table = pa.table(
        {"k": [1, 2, 3, None, 5, 6], "n": [0.5] * 6, "g": ["a", "b", "b", "b", "a", None]}
    )

    def column(name):
        return table[name].combine_chunks()

    told = ASKED.classes(column, 6)
    assert [rows.tolist() for rows in leaves_of(NODE, column, 6)] == [
        np.flatnonzero(told == number).tolist() for number in range(3)
    ]
    first, *others = leaves_of(BELOW, column, 6)
    assert first.tolist() == [0, 4]
    for number, rows in enumerate(others):
        assert all(told[row] == number for row in rows)
    assert sorted(row for rows in (first, *others) for row in rows.tolist()) == list(range(6))
