"""The tree beside naive Bayes, where the sum of weak columns tells three kinds."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

from querymesh.arrays import Ints
from querymesh.optimize.train.describe import best_single
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query
from querymesh.stats.profile import Profile
from querymesh_lab.bench.classify.by_sums import Weak, by_sums
from querymesh_lab.bench.classify.figures import classify_us, evaluations, evaluations_a_row
from querymesh_lab.bench.classify.folding import OVERHEADS

CASE = "classifiers"
SHAPES = (Weak(2), Weak(6), Weak(12), Weak(6, numbers=False))
SAMPLES = (2000, 8000)
FRESH = 20_000
SAMPLE_SEED, FRESH_SEED = 11, 199
"""Not those by which the ranges of naive Bayes were chosen."""
OPERATOR_US = 10.0
QUERY = query("SELECT * FROM t")
EVERY = (1, 2, 3)


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """For each shape and sample: what a tree makes of it, and what naive Bayes does."""
    for shape in SHAPES[:2] if quick else SHAPES:
        fresh, kind = by_sums(shape, FRESH, FRESH_SEED, OPERATOR_US)
        for rows in SAMPLES[:1] if quick else SAMPLES:
            profile, _ = by_sums(shape, rows, SAMPLE_SEED, OPERATOR_US)
            for classifier in ("tree", "naive-bayes"):
                started = process_time()
                training = Training(classifier=classifier, sample_rows=rows)
                mesh = train_mesh(QUERY, profile, OVERHEADS, training)
                trained_s = process_time() - started
                calls = evaluations_a_row(fresh, mesh.tree, mesh.routes, EVERY)
                yield {
                    "case": CASE, "claim": f"{shape.text}, {rows:,} rows, {classifier}",
                    "value": calls,
                    "details": {
                        "leaves": len(mesh.leaves), "evaluations a row": calls,
                        "single": evaluations(fresh, mesh.single, EVERY) / FRESH,
                        "oracle": oracle(fresh, kind) / FRESH,
                        "classify µs": classify_us(mesh, fresh.sample), "training s": trained_s,
                    },
                }  # fmt: skip


def oracle(profile: Profile, kind: Ints) -> float:
    """The evaluations of who knows each tuple's kind, and the best order of that."""
    of_kind = [profile.take(np.flatnonzero(kind == k)) for k in np.unique(kind)]
    return sum(evaluations(part, best_single(part), EVERY) for part in of_kind)
