"""Outcomes foretold row by row, beside one order for all, a tree, and who knows every outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from querymesh.classify.tree import Classes, Tree, leaves
from querymesh.optimize.train.describe import reach
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query
from querymesh.stats.profile import Profile, Route
from querymesh_lab.bench.classify.folding import OVERHEADS
from querymesh_lab.bench.classify.planted_words import planted
from querymesh_lab.bench.classify.review_models import OF_TABLE, PRICE_US, Judged, judged
from querymesh_lab.bench.data.real_folder import folder_with, skipped
from querymesh_lab.bench.data.reviews import FILES

CASE = "foretelling"
SEEDS, QUICK_SEEDS = 12, 2
SAMPLES, QUICK_SAMPLES = (100, 300, 500), (300,)
MOST_SAMPLED = max(SAMPLES)
FRESH = 3000
QUERY = query("SELECT * FROM t WHERE f(text)", functions={"f": lambda text: True})

TEXT = ("text",)
REVIEWS: Mapping[str, tuple[Mapping[str, float], tuple[str, ...]]] = {
    "reviews, prices 20 5 1": ({"is_positive": 20, "of_action": 5, "is_detailed": 1}, TEXT),
    "reviews, prices 4 3 2": ({"is_positive": 4, "of_action": 3, "is_detailed": 2}, TEXT),
    "reviews, negative, 5 3 2": ({"is_negative": 5, "of_action": 3, "is_detailed": 2}, TEXT),
    "reviews and films, 5 4 3": ({"is_positive": 5, "of_action": 4, "is_violent": 3}, OF_TABLE),
}
"""What the conditions cost, and the columns that rows may be told apart by."""


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """For each data set and sample: the price of a fresh row, mean over seeds."""
    seeds = range(QUICK_SEEDS if quick else SEEDS)
    samples = QUICK_SAMPLES if quick else SAMPLES
    for name, noise in (("planted words", False), ("noise", True)):
        yield from _case(name, partial(_planted, noise=noise), seeds, samples)
    folder = folder_with(FILES)
    if folder is None or find_spec("sklearn") is None:
        print(skipped("reviews, or no scikit-learn,", "they are"))
        return
    of_seed = cache(partial(judged, folder))
    for name, (wanted, columns) in REVIEWS.items():
        yield from _case(name, partial(_reviewed, of_seed, wanted, columns), seeds, samples)


def _reviewed(
    of_seed: Callable[[int], Judged],
    wanted: Mapping[str, float],
    columns: tuple[str, ...],
    seed: int,
) -> Profile:
    return of_seed(seed).profile(wanted, columns)


def _planted(seed: int, *, noise: bool) -> Profile:
    return planted(MOST_SAMPLED + FRESH, seed, noise=noise)


def _case(
    name: str, profile_of: Callable[[int], Profile], seeds: range, samples: tuple[int, ...]
) -> Iterator[dict[str, Any]]:
    for rows in samples:
        figures = np.array([prices(profile_of(seed), rows, seed) for seed in seeds])
        single, tree, predicted, least, used = figures.mean(axis=0).tolist()
        yield {
            "case": CASE, "claim": f"{name}, {rows} rows", "value": predicted / least,
            "details": {
                "single": single, "tree": tree, "predicted": predicted, "clairvoyant": least,
                "single / clairvoyant": single / least,
                "predicted / clairvoyant": predicted / least,
                "worst seed": float((figures[:, 2] / figures[:, 3]).max()),
                "worst / single": float((figures[:, 2] / figures[:, 0]).max()),
                "used": used,
            },
        }  # fmt: skip


def prices(profile: Profile, rows: int, seed: int) -> tuple[float, float, float, float, float]:
    """What a row costs that no training saw, with so many sampled: on the best single order, in a
    tree's mesh, in the mesh that training chooses, at the least; and whether that one foretells."""
    sample, fresh = _part(profile, 0, rows), _part(profile, MOST_SAMPLED, profile.rows)
    tree = train_mesh(QUERY, sample, OVERHEADS, Training(seed=seed, predict=False))
    mesh = train_mesh(QUERY, sample, OVERHEADS, Training(seed=seed))
    by_tree, by_mesh = (_price(fresh, each.tree, each.routes) for each in (tree, mesh))
    single = float(fresh.realized_us(mesh.single).mean()) / PRICE_US
    least = float(fresh.clairvoyant_us().mean()) / PRICE_US
    return single, by_tree, by_mesh, least, float(isinstance(mesh.tree, Classes))


def _part(profile: Profile, first: int, end: int) -> Profile:
    return profile.take(np.arange(first, end))


def _price(profile: Profile, tree: Tree, routes: tuple[Route, ...]) -> float:
    """The price of a row: the conditions alone, which no machine changes."""
    us = np.zeros(profile.rows)
    for (leaf, _), rows in zip(leaves(tree), reach(profile, tree), strict=True):
        us[rows] = profile.take(rows).realized_us(routes[leaf.label])
    return float(us.mean()) / PRICE_US
