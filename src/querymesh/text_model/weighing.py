"""What features count for in a fit, before it has seen how they go together.

With a thousand rows and ten thousand pieces of texts, most pieces are noise: a penalty on weights
must be told which ones deserve one. Two answers, each the better one on some texts:

- by rarity: a piece that few rows have says more (the inverse document frequency of retrieval)
- by leaning: a piece counts for how unequally the answers have it, |log ratio| (Wang and Manning,
  "Baselines and bigrams: simple, good sentiment and topic classification", ACL 2012)

A feature of one row only counts for nothing: it says nothing of any other row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from querymesh.arrays import Bools, Floats
from querymesh.text_model.rows import Rows, SparseRows

Weighing: TypeAlias = Callable[[Rows, Bools], Floats]

SMOOTH = 0.3
"""A piece counts as if each answer had had it so many times more: rare ones lean by chance."""


def by_rarity(rows: Rows, answers: Bools) -> Floats:
    """More where fewer rows have a feature."""
    present = rows.present()
    share = np.clip(present / max(len(rows), 1), 1.0 / max(len(rows), 1), 1.0)
    return np.where(present > 1, 1.0 - np.log(share), 0.0)


def by_leaning(rows: Rows, answers: Bools) -> Floats:
    """More where rows of one answer have a piece of text more often; 1 for what is no piece."""
    weights = np.ones(rows.width)
    if not isinstance(rows, SparseRows) or not len(rows.values) or answers.all() or ~answers.any():
        return weights
    pieces = slice(0, rows.pieces)
    true = rows.sums(answers.astype(np.float64))[pieces]
    false = rows.sums((~answers).astype(np.float64))[pieces]
    smooth = SMOOTH * float(np.abs(rows.values).mean())
    trues, falses = np.count_nonzero(answers), np.count_nonzero(~answers)
    ratio = np.log((true + smooth) / trues) - np.log((false + smooth) / falses)
    weights[pieces] = np.where(rows.present()[pieces] > 1, np.abs(ratio), 0.0)
    return weights
