"""Models that judge film reviews, and what each of them says: conditions as dear as one likes.

Each is a real one of scikit-learn, trained on half of the reviews, and judges the other half. What
they would cost is a price, since a model that costs a cent is asked like one that costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Floats, Ints
from querymesh.stats.profile import Profile
from querymesh_lab.bench.data.reviews import reviews

LONG = 130
"""Characters of a review of usual length."""

OF_TABLE = ("film", "critic", "score", "paper", "text", "genre", "contents")
"""The columns of the table; what people said of a review is not among them."""

PRICE_US = 10_000.0
"""A price of one: ten milliseconds, so that foretelling, at some microseconds, hardly counts."""


@dataclass(frozen=True)
class Judged:
    """The half of the reviews that models judged, with what each of them said."""

    table: pa.Table
    says: Mapping[str, Bools]

    def profile(self, prices: Mapping[str, float], columns: tuple[str, ...]) -> Profile:
        """These conditions, told apart by these columns."""
        outcomes = np.stack([self.says[name] for name in prices], axis=1).astype(np.float64)
        us = PRICE_US * np.array(list(prices.values()))
        nothing: frozenset[int] = frozenset()
        sample = self.table.select(list(columns))
        return Profile(sample, tuple(prices), (nothing,) * len(prices), outcomes, us, us)


def judged(folder: Path, seed: int) -> Judged:
    """Half of the reviews by chance, judged by models of the other half."""
    table = reviews(folder)
    order = np.random.default_rng(seed).permutation(table.num_rows)
    half = table.num_rows // 2
    texts = np.array(table["text"].to_pylist(), dtype=object)
    genres, contents = table["genre"].to_pylist(), table["contents"].to_pylist()
    films = np.array([f"{g} {c}" for g, c in zip(genres, contents, strict=True)], dtype=object)
    truths: dict[str, tuple[Floats, Bools]] = {
        "is_positive": (texts, np.array(table["positive"].to_pylist(), dtype=bool)),
        "of_action": (texts, np.array(["Action" in text for text in films])),
        "is_detailed": (texts, np.array([len(text) > LONG for text in texts])),
        "is_violent": (films, np.array(["iolence" in text for text in films])),
    }
    says = {name: _model(given, truth, order[:half]) for name, (given, truth) in truths.items()}
    said = {name: each[order[half:]] for name, each in says.items()}
    said["is_negative"] = ~said["is_positive"]
    return Judged(table.select(OF_TABLE).take(pa.array(order[half:])), said)


def _model(texts: Floats, truth: Bools, learned_from: Ints) -> Bools:
    """What a model of words and pairs of them, trained on some of the texts, says of all."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2),
        LogisticRegression(C=10, class_weight="balanced"),
    )
    model.fit(texts[learned_from], truth[learned_from])
    return np.asarray(model.predict(texts), dtype=bool)
