"""The cheap model: a score for each row, from features of its arguments or from the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Floats
from querymesh.errors import PredicateError
from querymesh.text_model.encoder import Encoder, encoder_from_json, fit_encoder
from querymesh.text_model.logistic import Logistic, fit_best, fit_logistic, logistic_from_json
from querymesh.text_model.rows import DenseRows

DENSE_PENALTY = 10.0
"""Of weights of the user's features, which are all there in every row."""

MOST_FEATURES = 1 << 16


@dataclass(frozen=True, eq=False)
class Model:
    """What rows are read as, and what that says; the features are the user's where there is no
    encoder."""

    encoder: Encoder | None
    features: Callable[..., Any] | None
    logistic: Logistic

    def scores(self, args: Sequence[pa.Array], n: int) -> Floats:
        """How sure it is that the answer is true, from 0 to 1."""
        if self.encoder is not None:
            return self.logistic.scores(self.encoder.rows(args, n))
        assert self.features is not None
        rows = _users(self.features, args, n)
        width = len(self.logistic.weights)
        if rows.width != width:
            raise PredicateError(
                f"proxy: features returned {rows.width} columns, and {width} when it was fitted"
            )
        return self.logistic.scores(rows)

    def to_json(self) -> dict[str, Any]:
        """The model as plain values, without the user's function."""
        encoder = None if self.encoder is None else self.encoder.to_json()
        width = len(self.logistic.weights)
        return {"encoder": encoder, "width": width, "logistic": self.logistic.to_json()}


def fit_model(
    features: Callable[..., Any] | None, args: Sequence[pa.Array], answers: Bools
) -> Model:
    """The model of the answers of some rows."""
    if features is None:
        encoder = fit_encoder(args)
        return Model(encoder, None, fit_best(encoder.rows(args, len(answers)), answers))
    rows = _users(features, args, len(answers))
    finite = np.isfinite(rows.matrix).all(axis=1)
    if not finite.any():
        raise PredicateError("proxy: features returned no row of finite numbers")
    matrix = rows.matrix[finite]
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0)
    scale[scale == 0.0] = 1.0
    fitted = fit_logistic(DenseRows((matrix - mean) / scale), answers[finite], DENSE_PENALTY)
    weights = (fitted.weights / scale).astype(np.float32).astype(np.float64)
    return Model(None, features, Logistic(weights, float(fitted.bias - mean @ weights)))


def model_from_json(content: object, features: Callable[..., Any] | None) -> Model:
    """The model that was saved; a ValueError says what is wrong with it."""
    if not isinstance(content, Mapping):
        raise ValueError(f"a model is an object, not {content!r}")
    width = content.get("width")
    if type(width) is not int or not 1 <= width <= 1 << 21:
        raise ValueError(f"'width' must be an integer from 1 to {1 << 21}, not {width!r}")
    logistic = logistic_from_json(content.get("logistic"), width)
    if content.get("encoder") is None:
        if features is None:
            raise ValueError("the model was fitted on features= of the user, which are not given")
        return Model(None, features, logistic)
    encoder = encoder_from_json(content["encoder"])
    if encoder.width != width:
        raise ValueError(f"'width' is {width}, and the encoder makes {encoder.width} features")
    return Model(encoder, None, logistic)


def _users(features: Callable[..., Any], args: Sequence[pa.Array], n: int) -> DenseRows:
    """The user's features, checked."""
    try:
        matrix = np.asarray(features(*args), dtype=np.float64)
    except Exception as error:
        name = getattr(features, "__name__", "features")
        raise PredicateError(f"proxy: {name} raised {type(error).__name__}: {error}") from error
    if matrix.ndim != 2 or len(matrix) != n or not 1 <= matrix.shape[1] <= MOST_FEATURES:
        raise PredicateError(
            f"proxy: features returned an array of shape {matrix.shape} for {n} rows: return a "
            "matrix of floats with a row for each row"
        )
    return DenseRows(matrix)
