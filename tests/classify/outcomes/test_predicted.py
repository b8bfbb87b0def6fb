"""The learner that foretells outcomes, and the classifier that it makes."""

import json
import math
from base64 import b64encode
from copy import deepcopy

import numpy as np
import pyarrow as pa
import pytest

import querymesh as qm
from profiles import profile_of, three_classes
from querymesh.classify.classifier import check_learner, classes_of
from querymesh.classify.outcomes.foretold import learns_labels, learns_outcomes
from querymesh.classify.outcomes.hashed_features import HashedFeatures
from querymesh.classify.outcomes.predicted import MOST_ROWS, Predicted
from querymesh.classify.outcomes.words import BUCKETS
from querymesh.errors import OptionError, QueryMeshError
from telling_texts import columns_of, telling_texts

ROUTES = ((1, 2, 3), (2, 3, 1), (3, 1, 2))


def learned(profile=None, learner=None):
    found = (learner or Predicted()).fit_outcomes(
        profile or telling_texts(), np.random.default_rng(0)
    )
    assert found is not None
    return found


def kinds_told(bodies):
    """Whether each of the three words is in a text: a user's own features."""
    return np.array([[f"Key{k}" in body for k in range(3)] for body in bodies.to_pylist()], float)


def vowels(bodies):
    return np.zeros((len(bodies), 2))


@pytest.mark.parametrize("rows", [150, 400, MOST_ROWS + 300])
def test_a_word_that_decides_is_found_among_hundreds(rows):
    profile, fresh = telling_texts(rows), telling_texts(1000, seed=1)
    found = learned(profile)
    assert list(found.foretold) == [0, 1, 2]
    assert found.passes.shape == (rows, 3)
    classifier = found.classifier(ROUTES)
    told = classes_of(classifier, columns_of(fresh), fresh.rows, 3)
    us = np.stack([fresh.realized_us(route) for route in ROUTES], axis=1)
    assert us[np.arange(1000), told].mean() < 1.08 * fresh.clairvoyant_us().mean()


def test_what_is_foretold_of_sampled_rows_is_as_good_as_of_others():
    profile, fresh = telling_texts(300), telling_texts(2000, seed=1)
    found = learned(profile)

    def surprise(passes, outcomes):
        return -np.log(np.where(outcomes > 0, passes, 1 - passes)).mean()

    unseen = surprise(found.passes, profile.outcomes)
    others = surprise(found.foreteller.passes(columns_of(fresh), 2000), fresh.outcomes)
    as_seen = surprise(found.foreteller.passes(columns_of(profile), 300), profile.outcomes)
    assert as_seen < 0.8 * others
    assert unseen == pytest.approx(others, rel=0.1)


def test_words_that_say_nothing_foretell_nothing():
    found = [
        Predicted().fit_outcomes(telling_texts(200, seed, noise=True), np.random.default_rng(0))
        for seed in range(20)
    ]
    assert sum(each is not None for each in found) <= 4


def test_an_operator_that_others_must_precede_is_learned_from_rows_that_passed_those():
    profile = telling_texts(600)
    outcomes = profile.outcomes.copy()
    outcomes[:, 2] *= outcomes[:, 0] * outcomes[:, 1]  # as profiles have it
    after = [frozenset(), frozenset(), frozenset({1, 2})]
    guarded = profile_of(outcomes, profile.drop_us, after, profile.sample)
    found = learned(guarded)
    assert 2 in found.foretold
    met = outcomes[:, 0] * outcomes[:, 1] > 0
    assert found.passes[met, 2].mean() == pytest.approx(outcomes[met, 2].mean(), abs=0.05)


def test_numbers_and_categories_are_looked_at_too():
    found = learned(three_classes(400))
    assert list(found.foretold) == [0, 1, 2]
    assert set(found.foreteller.features.columns) == {"kind", "noise"}


def test_look_ups_and_operators_of_which_too_little_is_known_are_not_foretold():
    profile = telling_texts(300)
    outcomes = profile.outcomes.copy()
    outcomes[:, 0] *= 3  # a fan-out
    outcomes[:, 1] = 1
    found = learned(profile_of(outcomes, profile.drop_us, sample=profile.sample))
    assert list(found.foretold) == [2]
    assert found.passes[0, :2].tolist() == found.profile.pass_rates()[:2].tolist()
    few = profile.take(np.arange(12))
    assert Predicted().fit_outcomes(few, np.random.default_rng(0)) is None


def test_the_same_rows_and_seed_foretell_the_same():
    first, second = (learned().classifier(ROUTES) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)


def test_it_is_a_learner_of_outcomes_and_not_of_labels():
    check_learner(Predicted())
    assert learns_outcomes(Predicted())
    assert not learns_labels(Predicted())
    assert qm.policies.Predicted is Predicted


@pytest.mark.parametrize("learner", [Predicted(), Predicted(kinds_told, ["body"])])
def test_what_was_learned_is_read_back(learner):
    profile = telling_texts()
    classifier = learned(profile, learner).classifier(ROUTES)
    again = learner.from_json(json.loads(json.dumps(classifier.to_json())))
    assert again == classifier
    told, read = (
        classes_of(each, columns_of(profile), profile.rows, 3) for each in (classifier, again)
    )
    assert told.tolist() == read.tolist()
    assert len(np.unique(told)) == 3


def test_features_of_ones_own_are_used_and_needed_again():
    own = Predicted(kinds_told, ["body"])
    found = learned(telling_texts(100), own)
    assert found.foreteller.features.columns == ("body",)
    assert found.foreteller.features.width == 3
    saved = found.classifier(ROUTES).to_json()
    with pytest.raises(ValueError, match="features of your own of body: give classifiers="):
        Predicted().from_json(saved)
    wider = Predicted(lambda bodies: np.zeros((len(bodies), 5)), ["body"]).from_json(saved)
    with pytest.raises(QueryMeshError, match="gave 5 numbers a row, but 3 when"):
        wider.classes(columns_of(telling_texts(5)), 5)


def test_rows_without_anything_to_look_at_are_not_asked_about():
    classifier = learned(learner=Predicted(kinds_told, ["body"])).classifier(ROUTES)
    bodies = pa.array(["Key0", None, "Key1"], pa.string())
    assert len(classifier.classes(lambda _: bodies, 3)) == 3
    assert len(classifier.classes(lambda _: pa.nulls(1, pa.string()), 1)) == 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda bodies: np.zeros(len(bodies)), "shape \\(300,\\) for 300 rows"),
        (lambda bodies: np.zeros((2, 2)), "shape \\(2, 2\\) for 300 rows"),
        (lambda bodies: np.full((len(bodies), 2), np.nan), "no finite numbers"),
    ],
)
def test_what_are_no_features_is_refused(function, message):
    with pytest.raises(QueryMeshError, match=message):
        Predicted(function, ["body"]).fit_outcomes(telling_texts(), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": vowels}, "need columns="),
        ({"features": 3, "columns": ["body"]}, "features is a function"),
        ({"columns": "body"}, "list of columns' names"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Predicted(**options)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(OptionError, match="'text' is not among the sampled columns id, body"):
        Predicted(columns=["text"]).fit_outcomes(telling_texts(), np.random.default_rng(0))


def test_features_that_say_nothing_foretell_nothing():
    nothing = Predicted(vowels, ["body"])
    assert nothing.fit_outcomes(telling_texts(), np.random.default_rng(0)) is None


def test_scores_are_the_matrix_times_the_weights():
    profile = three_classes(200)
    sample = profile.sample.append_column("body", telling_texts(200).sample["body"])
    features = HashedFeatures.of(sample)
    assert set(features.columns) == {"kind", "noise", "body"}
    weights = np.random.default_rng(0).normal(size=(BUCKETS, 2))

    def column(name):
        return sample[name].combine_chunks()

    expected = features.matrix(column, 200) @ weights
    assert np.allclose(features.scores(column, 200, weights), expected)


SAVED = None


def damaged(path, value):
    global SAVED
    if SAVED is None:
        SAVED = learned(telling_texts(100)).classifier(ROUTES).to_json()
    content = deepcopy(SAVED)
    *way, last = path
    inside = content
    for key in way:
        inside = inside[key]
    inside[last] = value
    return content


def floats(count, value=0.0):
    return b64encode(np.full(count, value, "<f4").tobytes()).decode()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["weights"], "", "in base64"),
        (["weights"], 7, "in base64"),
        (["weights"], "?" * len(floats(3 * BUCKETS)), "base64|base 64|[Nn]on-"),
        (["weights"], floats(3 * BUCKETS, math.nan), "finite numbers"),
        (["weights"], floats(6 * BUCKETS), "in base64"),
        (["routes"], [[1, 2, 3]], "2 to 16"),
        (["routes"], [[1, 2, 3]] * 17, "2 to 16"),
        (["routes"], [[1, 2, 3], [1, 2, 2]], "not an order of the 3 operators"),
        (["routes"], [[1, 2, 3], "231"], "not an order"),
        (["rates"], [0.5] * 65, "2 to 64"),
        (["rates"], [0.5, -1, 0.5], "none below 0"),
        (["drop_us"], [1.0, 2.0], "a number for each operator"),
        (["pass_us"], [1.0, math.inf, 2.0], "numbers in lists"),
        (["foretold"], [1, 2, 4], "operators' numbers"),
        (["foretold"], [1, 2, 2], "twice"),
        (["foretold"], [], "operators' numbers"),
        (["biases"], [1.0], "each of 'foretold'"),
        (["features"], [], "not an object"),
        (["features", "texts"], "body", "list of columns' names"),
        (["features", "texts"], ["body"] * 9, "8 and 24 at most"),
        (["features", "attributes"], [{"name": "id"}], "'values' of id"),
        (["features", "own"], ["body"], "features of your own"),
    ],
)
def test_damaged_content_is_refused_and_named(path, value, message):
    with pytest.raises(ValueError, match=message):
        Predicted().from_json(damaged(path, value))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("mean", [0.0] * 20_000, "16,384 at most"),
        ("mean", [0.0] * 2, "as many numbers"),
        ("scale", [1.0, 0.0, 1.0], "above 0"),
        ("own", [], "name a column"),
    ],
)
def test_damaged_features_of_ones_own_are_refused(key, value, message):
    own = Predicted(kinds_told, ["body"])
    saved = learned(telling_texts(100), own).classifier(ROUTES).to_json()
    saved["features"][key] = value
    with pytest.raises(ValueError, match=message):
        own.from_json(saved)
