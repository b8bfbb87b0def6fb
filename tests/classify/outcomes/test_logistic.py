"""Logistic regression from inner products."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from querymesh.classify.outcomes import logistic
from querymesh.classify.outcomes.logistic import BIAS, PENALTIES, log_odds, row_weights, sigmoid


@pytest.mark.parametrize("penalty", [0.1, 0.3, 1.0])
def test_it_foretells_as_the_regression_of_scikit_learn_does(penalty):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 12)) / np.sqrt(12)
    passed = (rng.random(150) < sigmoid(rows @ rng.normal(size=12) * 6)).astype(float)
    learned = row_weights(rows @ rows.T, passed[:, None], PENALTIES)
    own = learned[:, 0, PENALTIES.index(penalty)]
    scores = (rows @ rows.T + BIAS) @ own + log_odds(passed)
    # The rate's log odds are no more than a start: with the constant as one more feature it is
    # penalised from there, so both agree but for a hair.
    extended = np.hstack([rows, np.full((150, 1), np.sqrt(BIAS))])
    theirs = LogisticRegression(C=1 / penalty, fit_intercept=False, max_iter=5000, tol=1e-10)
    theirs.fit(extended, passed)
    expected = theirs.decision_function(extended)
    assert np.abs(scores - expected).max() < 0.15
    assert np.corrcoef(scores, expected)[0, 1] > 0.999


def test_a_column_of_outcomes_does_not_depend_on_those_beside_it():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(80, 5))
    passed = (rng.random((80, 3)) < 0.4).astype(float)
    together = row_weights(rows @ rows.T, passed, PENALTIES)
    for number in range(3):
        alone = row_weights(rows @ rows.T, passed[:, [number]], PENALTIES[1:2])
        assert np.allclose(together[:, number, 1], alone[:, 0, 0])


def test_more_steps_change_little(monkeypatch):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(100, 40)) / np.sqrt(40)
    products = rows @ rows.T
    passed = (rng.random((100, 2)) < [0.1, 0.6]).astype(float)
    few = row_weights(products, passed, PENALTIES[1:])
    monkeypatch.setattr(logistic, "STEPS", 2000)
    many = row_weights(products, passed, PENALTIES[1:])
    assert np.abs(np.tensordot(products + BIAS, few - many, axes=1)).max() < 0.1


def test_no_rate_has_infinite_odds():
    assert -6 < log_odds(np.zeros(100)) < -5
    assert log_odds(np.ones(100)) == pytest.approx(-log_odds(np.zeros(100)))
    assert log_odds(np.empty(0)) == 0.0
