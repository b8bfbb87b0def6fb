"""Texts in which one word of hundreds decides which condition drops a row; or none does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from querymesh.stats.profile import Profile
from querymesh_lab.bench.classify.review_models import PRICE_US

WORDS, LENGTH = 400, 15
TOLD = 0.9
"""The share of a kind's rows that its condition drops; the others drop the rest of them."""


def planted(rows: int, seed: int, *, noise: bool = False) -> Profile:
    """Three conditions of about one price; with `noise` the words have nothing to do with them."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    drawn = rng.integers(0, WORDS, (rows, LENGTH))
    said = rng.integers(0, 3, rows) if noise else kind
    texts = [
        " ".join([*(f"word{w}" for w in line), f"key{k}"])
        for line, k in zip(drawn, said, strict=True)
    ]
    passes = np.where(np.eye(3), 1 - TOLD, TOLD)[kind]
    outcomes = (rng.random((rows, 3)) < passes).astype(np.float64)
    us = PRICE_US * np.array([2.0, 2.5, 3.0])
    nothing: frozenset[int] = frozenset()
    return Profile(pa.table({"text": texts}), ("p1", "p2", "p3"), (nothing,) * 3, outcomes, us, us)
