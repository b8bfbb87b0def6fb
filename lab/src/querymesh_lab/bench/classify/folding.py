"""The demo's meshes before and after folding, on fresh ticks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from querymesh.classify.tree import Tree, leaves
from querymesh.cost.route_time import Overheads
from querymesh.demo import market
from querymesh.demo.predicates import FUNCTIONS, ROW_TESTS
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.profile.profiler import profile_counted
from querymesh.optimize.train.describe import best_single, costs_us
from querymesh.optimize.train.fold import folded
from querymesh.optimize.train.folds import holdout
from querymesh.optimize.train.train import find, make_problem
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query
from querymesh.stats.profile import Profile, Route
from querymesh_lab.bench.classify.figures import evaluations_a_row, listed_values

CASE = "folding"
COST_US = {
    "matches_bullish": 39.6, "news": 2.38, "research": 0.183,
    "upbeat": 42.4, "unusual_volume": 21.3, "s.price >= 5": 0.0239,
}  # fmt: skip
"""As they were once timed: with costs of their own, no two runs would train alike."""
OVERHEADS = Overheads(node_us=0.002, ruster_us=29.6, window=10_000)
SEED = 2012
SAMPLE, FRESH = 2000, 8000


def profiled(rows: int, seed: int) -> Profile:
    """So many ticks of the demo, with what its operators do with each."""
    asked = query(market.SQL, functions=FUNCTIONS)
    tables = {"news": market.news(SEED), "research": market.research(SEED)}
    ticks = market.ticks(rows, seed)
    bound = asked.bind(
        {
            "Stock": ticks.schema,
            "News": tables["news"].schema,
            "StreetResearch": tables["research"].schema,
        }
    )
    profile, _ = profile_counted(bound, ticks, make_tables(bound, tables), timed=False)
    cost_us = np.array([COST_US[name] for name in profile.names])
    return replace(profile, drop_us=cost_us, pass_us=cost_us)


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """The mean over trainings of several samples: the mesh as searched, and folded."""
    fresh = profiled(FRESH // 4 if quick else FRESH, SEED + 65)
    python = [k for k, name in enumerate(fresh.names, 1) if name in ROW_TESTS]
    figures: dict[str, list[tuple[float, ...]]] = {"as searched": [], "folded": []}
    alone = []
    for seed in range(2 if quick else 12):
        profile = profiled(SAMPLE, SEED + seed // 2)
        rng = np.random.default_rng(seed)
        (fold,) = holdout(profile.rows, 1 / 3, 1, rng)
        training = Training(seed=seed)
        problem = make_problem(profile.take(fold.seen), OVERHEADS, training)
        found = find(problem, training, rng)
        after = folded(profile, found.tree, found.routes, fold.unseen, OVERHEADS)
        unseen = profile.take(fold.unseen)
        for name, mesh in (("as searched", (found.tree, found.routes)), ("folded", after)):
            figures[name].append((
                *_size(*mesh), _mean_us(profile, *mesh), _mean_us(unseen, *mesh),
                _mean_us(fresh, *mesh), evaluations_a_row(fresh, *mesh, python),
            ))  # fmt: skip
        alone.append(float(fresh.realized_us(best_single(profile)).mean()))
    for name, rows in figures.items():
        size, values, sample, held, us, calls = np.mean(rows, axis=0).tolist()
        yield {
            "case": CASE, "claim": f"{name}, mean of {len(rows)} trainings", "value": us,
            "details": {
                "leaves": size, "listed values": values, "sample µs": sample, "held-out µs": held,
                "fresh µs": us, "predicate calls a row": calls, "single µs": float(np.mean(alone)),
            },
        }  # fmt: skip


def _size(tree: Tree, _: tuple[Route, ...]) -> tuple[float, float]:
    return float(sum(1 for _ in leaves(tree))), float(listed_values(tree))


def _mean_us(profile: Profile, tree: Tree, routes: tuple[Route, ...]) -> float:
    return float(costs_us(profile, tree, routes, OVERHEADS).mean())
