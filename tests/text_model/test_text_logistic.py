"""The logistic model finds the weights that a known library finds, and survives being saved."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from querymesh.text_model.encoder import fit_encoder
from querymesh.text_model.logistic import Logistic, fit_best, fit_logistic, logistic_from_json
from querymesh.text_model.rows import DenseRows


def made(n: int, seed: int) -> tuple[DenseRows, np.ndarray]:
    """Rows whose answers follow a known linear model."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, 5))
    score = matrix @ np.array([2.0, -1.0, 0.5, 0.0, 0.0]) + 0.7
    return DenseRows(matrix), rng.random(n) < 1 / (1 + np.exp(-score))


def test_it_agrees_with_another_implementation() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    rows, answers = made(2000, seed=1)
    ours = fit_logistic(rows, answers, penalty=1.0)
    theirs = linear.LogisticRegression(C=1.0, tol=1e-8).fit(rows.matrix, answers)
    assert np.allclose(ours.weights, theirs.coef_[0], atol=2e-3)
    assert abs(ours.bias - theirs.intercept_[0]) < 2e-3


def test_scores_are_probabilities() -> None:
    rows, answers = made(4000, seed=2)
    scores = fit_logistic(rows, answers).scores(rows)
    for low in (0.1, 0.3, 0.5, 0.7):
        chosen = (scores >= low) & (scores < low + 0.2)
        assert abs(answers[chosen].mean() - scores[chosen].mean()) < 0.06


def test_sparse_and_dense_rows_make_the_same_model() -> None:
    texts = pa.array([f"w{at % 5} w{at % 3}" for at in range(60)])
    sparse = fit_encoder([texts], buckets=64).rows([texts], 60)
    matrix = np.zeros((60, sparse.width))
    np.add.at(matrix, (sparse.row_of, sparse.features), sparse.values)
    answers = np.arange(60) % 5 < 2
    some = np.array([3, 5, 59])
    assert np.allclose(sparse.take(some).times(np.arange(65.0)), matrix[some] @ np.arange(65.0))
    model = fit_logistic(sparse, answers)
    assert ((model.scores(sparse) > 0.5) == answers).all()
    assert np.allclose(sparse.sums(np.arange(60.0)), np.arange(60.0) @ matrix)


def test_what_tells_the_answers_apart_is_found_among_noise() -> None:
    rng = np.random.default_rng(4)
    answers = rng.random(1200) < 0.4
    noise = rng.integers(0, 2000, (1200, 8))
    words = [
        " ".join(f"w{each}" for each in some) + (" good" if answer else " bad")
        for some, answer in zip(noise, answers, strict=True)
    ]
    texts = pa.array(words)
    rows = fit_encoder([texts]).rows([texts], 1200)
    seen, unseen = np.arange(300), np.arange(300, 1200)
    scores = fit_best(rows.take(seen), answers[seen]).scores(rows.take(unseen))
    assert ((scores > 0.5) == answers[unseen]).mean() > 0.99


@pytest.mark.parametrize("answers", [np.ones(30, dtype=bool), np.zeros(30, dtype=bool)])
def test_answers_that_are_all_equal_make_a_model_all_the_same(answers: np.ndarray) -> None:
    rows = DenseRows(np.random.default_rng(0).normal(size=(30, 3)))
    for fitted in (fit_logistic(rows, answers), fit_best(rows, answers)):
        assert ((fitted.scores(rows) > 0.5) == answers).all()


def test_a_saved_model_gives_the_same_scores() -> None:
    rows, answers = made(300, seed=3)
    model = fit_logistic(rows, answers)
    again = logistic_from_json(json.loads(json.dumps(model.to_json())), rows.width)
    assert again.scores(rows).tolist() == model.scores(rows).tolist()


@pytest.mark.parametrize(
    "content",
    [
        3,
        {},
        {"bias": "1", "weights": ""},
        {"bias": float("nan"), "weights": ""},
        {"bias": 0.0, "weights": 3},
        {"bias": 0.0, "weights": "???"},
        {"bias": 0.0, "weights": "AAAA"},
        {"bias": 0.0, "weights": "A" * 10_000},
        Logistic(np.array([np.inf, 0.0]), 0.0).to_json(),
        Logistic(np.zeros(3), 0.0).to_json(),
    ],
)
def test_what_is_no_model_is_refused(content: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        logistic_from_json(content, width=2)
