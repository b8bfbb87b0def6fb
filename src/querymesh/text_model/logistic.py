"""Logistic regression: P(true | row) = 1 / (1 + exp(-(bias + weights · features))).

The weights are those of least penalised loss,

    Σ over rows of log(1 + exp(∓ score)) + penalty / 2 · |weights|²

found by Newton steps whose equations conjugate gradients solve (Lin, Weng and Keerthi, "Trust
Region Newton Method for Large-Scale Logistic Regression", JMLR 9, 2008, with a line search in place
of the region). The loss is strictly convex: there is one answer, and no chance in finding it.
Features are weighed before (`weighing.py`), so that the penalty knows which are worth a weight.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from querymesh.arrays import Bools, Floats
from querymesh.text_model.rows import Rows
from querymesh.text_model.weighing import Weighing, by_leaning, by_rarity

PENALTY = 0.3
MOST_STEPS = 30
MOST_PRODUCTS = 40
"""Of a Newton step: the equations need not be solved exactly."""
FOLDS = 3
WEIGHINGS = (by_rarity, by_leaning)

CLOSE = 1e-3
"""Steps end when the slope is so much flatter than at the beginning."""


@dataclass(frozen=True, eq=False)
class Logistic:
    """A fitted model: a weight for each feature, and a bias."""

    weights: Floats
    bias: float

    def scores(self, rows: Rows) -> Floats:
        """P(true) of each row."""
        return _sigmoid(rows.times(self.weights) + self.bias)

    def to_json(self) -> dict[str, Any]:
        """The model as plain values: weights as single floats, in base 64."""
        content = self.weights.astype("<f4").tobytes()
        return {"bias": self.bias, "weights": base64.b64encode(content).decode("ascii")}


def fit_logistic(
    rows: Rows, answers: Bools, penalty: float = PENALTY, weighing: Weighing = by_rarity
) -> Logistic:
    """The model of the answers of some rows. Its weights are as they are when saved."""
    scale = weighing(rows, answers)
    signs = np.where(answers, 1.0, -1.0)

    def loss(point: Floats) -> tuple[float, Floats, Floats]:
        margins = signs * (rows.times(scale * point[1:]) + point[0])
        wrong = _sigmoid(-margins)
        value = np.logaddexp(0.0, -margins).sum() + 0.5 * penalty * _dot(point[1:], point[1:])
        pull = -signs * wrong
        slope = np.concatenate([[pull.sum()], scale * rows.sums(pull) + penalty * point[1:]])
        return float(value), slope, wrong * (1.0 - wrong)

    point = np.zeros(rows.width + 1)
    share = (float(answers.sum()) + 0.5) / (len(answers) + 1.0)
    point[0] = math.log(share / (1.0 - share))
    value, slope, curve = loss(point)
    enough = CLOSE * max(math.sqrt(_dot(slope, slope)), 1e-12)
    for _ in range(MOST_STEPS):
        if math.sqrt(_dot(slope, slope)) <= enough:
            break

        def curved(step: Floats, curve: Floats = curve) -> Floats:
            moved = curve * (rows.times(scale * step[1:]) + step[0])
            bent = scale * rows.sums(moved) + penalty * step[1:]
            return np.concatenate([[moved.sum() + 1e-9 * step[0]], bent])

        step = _solved(curved, -slope)
        length, gain = 1.0, _dot(slope, step)
        trial = loss(point + step)
        while trial[0] > value + 1e-4 * length * gain and length > 1e-6:
            length *= 0.5
            trial = loss(point + length * step)
        if trial[0] >= value:
            break
        point = point + length * step
        value, slope, curve = trial
    weights = (scale * point[1:]).astype(np.float32).astype(np.float64)
    return Logistic(weights, float(point[0]))


def fit_best(rows: Rows, answers: Bools, seed: int = 0) -> Logistic:
    """The model whose weighing is the better one on rows that it has not seen.

    Judged by the probability of the answers (log loss) in FOLDS parts, each in turn left out.
    """
    part = np.random.default_rng(seed).permutation(len(rows)) % FOLDS

    def loss(weighing: Weighing) -> float:
        total = 0.0
        for each in range(FOLDS):
            seen, unseen = np.flatnonzero(part != each), np.flatnonzero(part == each)
            scores = fit_logistic(rows.take(seen), answers[seen], weighing=weighing).scores(
                rows.take(unseen)
            )
            given = np.where(answers[unseen], scores, 1.0 - scores)
            total -= float(np.log(np.maximum(given, 1e-9)).sum())
        return total

    return fit_logistic(rows, answers, weighing=min(WEIGHINGS, key=loss))


def logistic_from_json(content: object, width: int) -> Logistic:
    """The model that was saved; a ValueError says what is wrong with it."""
    if not isinstance(content, Mapping):
        raise ValueError(f"a model is an object, not {content!r}")
    bias, text = content.get("bias"), content.get("weights")
    if not isinstance(bias, int | float) or isinstance(bias, bool) or not math.isfinite(bias):
        raise ValueError(f"'bias' must be a finite number, not {bias!r}")
    if not isinstance(text, str) or len(text) > 6 * width + 8:
        raise ValueError(f"'weights' must be {width} single floats in base 64")
    data = base64.b64decode(text, validate=True)
    if len(data) != 4 * width:
        raise ValueError(f"'weights' must be {width} single floats, not {len(data)} bytes")
    weights = np.frombuffer(data, dtype="<f4").astype(np.float64)
    if not np.isfinite(weights).all():
        raise ValueError("'weights' must be finite")
    return Logistic(weights, float(bias))


def _solved(curved: Callable[[Floats], Floats], target: Floats) -> Floats:
    """About the x with curved(x) = target, by conjugate gradients."""
    found = np.zeros_like(target)
    left = target.copy()
    direction = left.copy()
    size = _dot(left, left)
    enough = size * min(0.25, math.sqrt(math.sqrt(size))) ** 2 if size else 0.0
    for _ in range(MOST_PRODUCTS):
        if size <= enough or size == 0.0:
            break
        bent = curved(direction)
        far = size / _dot(direction, bent)
        found += far * direction
        left -= far * bent
        before, size = size, _dot(left, left)
        direction = left + size / before * direction
    return found


def _dot(one: Floats, other: Floats) -> float:
    """Without BLAS: on arrays this short its threads cost ten times more than they save, and how
    many there are changes the last bits."""
    return float((one * other).sum())


def _sigmoid(values: Floats) -> Floats:
    return 0.5 * (1.0 + np.tanh(0.5 * values))
