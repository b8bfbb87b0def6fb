"""Classes by sums of what columns say."""

import json

import numpy as np
import pyarrow as pa
import pytest

from querymesh.classify.naive_bayes import MOST_RANGES, NaiveBayes, NaiveBayesLearner

LEARNER = NaiveBayesLearner()


def summed(rows=4000, seed=0):
    """Six weak numbers, a category and a constant; the class is told by the sum of the numbers."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 6))
    kind = np.digitize(numbers.sum(axis=1), [-1.0, 1.0])
    sample = pa.table(
        {f"x{k}": numbers[:, k] for k in range(6)}
        | {"colour": pa.array(rng.choice(["red", "blue"], rows))}
    )
    return sample, kind.astype(np.int64)


def told(classifier, sample):
    return classifier.classes(lambda name: sample[name].combine_chunks(), sample.num_rows)


def test_it_tells_classes_that_are_sums_of_weak_attributes():
    sample, kind = summed()
    classifier = LEARNER.fit(sample, kind, np.ones(len(kind)))
    unseen, truth = summed(seed=1)
    assert (told(classifier, unseen) == truth).mean() > 0.8
    assert all(len(a.edges) < MOST_RANGES for a in classifier.attributes if a.numeric)


def test_rows_count_for_their_weight():
    """Of each value more rows are of class 0, and those of class 1 weigh more where it is b."""
    sample = pa.table({"k": list("aaab" * 50) + list("bbba" * 50)})
    labels = np.array([0, 0, 0, 1] * 50 + [0, 0, 0, 1] * 50)
    weights = np.where(labels == 1, np.where(np.arange(400) < 200, 20.0, 0.0), 1.0)
    light = LEARNER.fit(sample, labels, np.ones(400))
    heavy = LEARNER.fit(sample, labels, weights)
    of = pa.table({"k": ["a", "b"]})
    assert told(light, of).tolist() == [0, 0]
    assert told(heavy, of).tolist() == [0, 1]


def test_null_nan_and_values_never_seen_have_a_class():
    sample, kind = summed()
    classifier = LEARNER.fit(sample, kind, np.ones(len(kind)))
    odd = pa.table(
        {f"x{k}": pa.array([None, float("nan"), 1e300, 0.0]) for k in range(6)}
        | {"colour": ["green", None, "red", "blue"]}
    )
    found = told(classifier, odd)
    assert set(found.tolist()) <= {0, 1, 2}
    assert found[2] == 2, "what is above every edge is in the last range"


def test_what_was_saved_tells_the_same():
    sample, kind = summed()
    classifier = LEARNER.fit(sample, kind, np.ones(len(kind)))
    again = LEARNER.from_json(json.loads(json.dumps(classifier.to_json())))
    assert again == classifier
    assert hash(again) == hash(classifier)
    assert (told(again, sample) == told(classifier, sample)).all()
    other = LEARNER.fit(sample, 2 - kind, np.ones(len(kind)))
    assert other != classifier


TABLE = {"name": "k", "values": ["a"], "scores": [[0.0, 1.0], [1.0, 0.0]]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "'attributes' must be a list"),
        ({"attributes": []}, "of one or more"),
        ({"attributes": [3]}, "not an object with a 'name'"),
        ({"attributes": [TABLE | {"name": 3}]}, "not an object with a 'name'"),
        ({"attributes": [TABLE | {"values": [1.5]}]}, "plain values"),
        ({"attributes": [TABLE | {"scores": [[0.0, 1.0]]}]}, "each of 2 bins"),
        ({"attributes": [TABLE | {"scores": [0.0, 1.0]}]}, "each of 2 bins"),
        ({"attributes": [TABLE | {"scores": [["0", 1.0], [1.0, 0.0]]}]}, "numbers in lists"),
        ({"attributes": [TABLE | {"scores": [[True, 1.0], [1.0, 0.0]]}]}, "numbers in lists"),
        ({"attributes": [TABLE | {"scores": [[float("inf"), 1.0], [1.0, 0.0]]}]}, "numbers"),
        ({"attributes": [TABLE | {"edges": [2.0, 1.0]}]}, "must grow"),
        ({"attributes": [TABLE, TABLE | {"scores": [[0.0], [1.0]]}]}, "different numbers"),
    ],
)
def test_damaged_content_is_refused_by_name(content, message):
    with pytest.raises(ValueError, match=message):
        LEARNER.from_json(content)
    assert isinstance(LEARNER.from_json({"attributes": [TABLE]}), NaiveBayes)
