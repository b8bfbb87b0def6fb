"""Which tuples a mesh is learned from and which it is judged by (QM § 4.2).

Every way keeps tuples from the search that then tell how well the sample foretells data it does not
hold. A holdout is the cheapest; cross-validation judges by every tuple once; the bootstrap learns
from draws of the full size, with replacement, and judges each by the third or so that it left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from querymesh.arrays import Ints


@dataclass(frozen=True)
class Fold:
    """Row numbers to learn from, and to judge by; a number may be seen more than once."""

    seen: Ints
    unseen: Ints


class Judge(Protocol):
    """Chooses the folds for a sample of so many rows."""

    def __call__(
        self, rows: int, holdout: float, folds: int, rng: np.random.Generator, /
    ) -> list[Fold]:
        """Folds in none of which a row is both seen and unseen. The mesh of a single fold is the
        result; with several, each is learned to be judged, and the result from all rows."""
        ...


def holdout(rows: int, holdout: float, _: int, rng: np.random.Generator) -> list[Fold]:
    """One fold, with a share of the rows kept back; of two or more at least one, if any."""
    shuffled = rng.permutation(rows)
    kept_back = int(rows * holdout)
    if holdout > 0 and rows > 1:
        kept_back = max(1, kept_back)
    return [Fold(np.sort(shuffled[kept_back:]), np.sort(shuffled[:kept_back]))]


def cross_validation(rows: int, _: float, folds: int, rng: np.random.Generator) -> list[Fold]:
    """Each of `folds` equal parts is kept back once."""
    shuffled = rng.permutation(rows)
    parts = [part for part in np.array_split(shuffled, folds) if 0 < len(part) < rows]
    every = np.arange(rows)
    return [Fold(np.setdiff1d(every, part), np.sort(part)) for part in parts]


def bootstrap(rows: int, _: float, folds: int, rng: np.random.Generator) -> list[Fold]:
    """`folds` draws of as many rows with replacement; what a draw missed judges it."""
    every = np.arange(rows)
    draws = [np.sort(rng.integers(0, rows, rows)) for _ in range(folds)]
    return [Fold(draw, np.setdiff1d(every, draw)) for draw in draws]


JUDGES: Mapping[str, Judge] = {
    "holdout": holdout,
    "cross-validation": cross_validation,
    "bootstrap": bootstrap,
}
