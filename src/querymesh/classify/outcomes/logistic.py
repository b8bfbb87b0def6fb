"""Logistic regression with a quadratic penalty, from the inner products of rows alone.

    least of  Σ log(1 + exp(-±f)) + λ/2 · |w|²,   f = o + X w,  w = X' a   (o: the rate's log odds)

Rows are a few hundred and features thousands, so what is learned is a weight for each row, `a`.
Each step goes down the quadratic that lies above the loss everywhere (its curvature is never above
1/4), so no step needs a length to be chosen, and all penalties and operators share one
decomposition. After `STEPS` the least penalty is a little short of its end, which does no harm.
"""

from __future__ import annotations

import numpy as np

from querymesh.arrays import Floats

PENALTIES = (0.03, 0.1, 0.3, 1.0)
"""Of rows of length one. The greatest is all but deaf; rows held back tell which one suits."""

STEPS = 30
BIAS = 1.0
"""What the constant counts for beside the features of a row."""

ADDED_ROWS = 1.0
"""So many rows, half passed and half dropped, are added to what was counted: no rate is 0 or 1."""


def log_odds(passed: Floats) -> float:
    """The log odds of the rate at which rows pass."""
    rate = (float(passed.sum()) + ADDED_ROWS / 2) / (len(passed) + ADDED_ROWS)
    return float(np.log(rate / (1.0 - rate)))


def sigmoid(scores: Floats) -> Floats:
    """From scores to probabilities."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(scores, -30.0, 30.0))))


def row_weights(products: Floats, passed: Floats, penalties: tuple[float, ...]) -> Floats:
    """The weight of each row, for each operator and penalty: rows × operators × penalties.

    `products` are the inner products of the rows with one another, `passed` has a column of 0 and 1
    for each operator.
    """
    rows, operators = passed.shape
    values, vectors = np.linalg.eigh(products + BIAS)
    values = np.maximum(values, 0.0)[:, None]
    target = np.repeat(passed, len(penalties), axis=1)
    offset = np.repeat([log_odds(each) for each in passed.T], len(penalties))
    penalty = np.tile(penalties, operators)
    damped = 1.0 / (values / 4 + penalty)
    along = np.zeros((rows, operators * len(penalties)))  # the weights, in the vectors' directions
    for _ in range(STEPS):
        missed = target - sigmoid(vectors @ (values * along) + offset)
        along += damped * (vectors.T @ missed - penalty * along)
    return np.asarray((vectors @ along).reshape(rows, operators, len(penalties)))


def loss(passed: Floats, foretold: Floats) -> Floats:
    """The surprise of each outcome, in nats."""
    kept = np.clip(foretold, 1e-9, 1 - 1e-9)
    return np.asarray(-np.where(passed > 0, np.log(kept), np.log1p(-kept)))
