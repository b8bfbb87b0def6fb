"""One of several tuples in a row is classified, and the others follow it (QM § 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from querymesh.arrays import Ints
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.ruster import ClassificationWindow
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query
from querymesh.stats.profile import Profile
from querymesh_lab.bench.classify.by_sums import Weak, by_sums
from querymesh_lab.bench.classify.figures import classify_us, evaluations
from querymesh_lab.bench.classify.folding import OVERHEADS

CASE = "following"
RUNS = (1, 16, 256)
EVERY = (1, 4, 16, 64)
ROWS = 20_000
SHAPE = Weak(6)
OPERATOR_US = 10.0


def run(quick: bool) -> Iterator[dict[str, Any]]:
    """For runs of so many tuples of one kind, on average, and one classified in so many: the time
    it takes to tell leaves, and the evaluations that follow from them."""
    profile, _ = by_sums(SHAPE, 2000, 1, OPERATOR_US)
    pool, kind = by_sums(SHAPE, ROWS, 99, OPERATOR_US)
    asked = query("SELECT * FROM t")
    for classifier in ("tree", "naive-bayes"):
        mesh = train_mesh(asked, profile, OVERHEADS, Training(classifier=classifier))
        for mean_run in RUNS[1:2] if quick else RUNS:
            stream = pool.take(in_runs(kind, mean_run))
            first: tuple[float, float] | None = None
            for every in EVERY:
                following = replace(mesh, classify_every=every)
                us = classify_us(following, stream.sample)
                calls = _evaluations_a_row(following, stream)
                first = first or (us, calls)
                lost = calls - first[1]
                yield {
                    "case": CASE, "claim": f"{classifier}, runs of {mean_run}, one in {every}",
                    "value": us,
                    "details": {
                        "classify µs": us, "saved µs": first[0] - us, "evaluations a row": calls,
                        "lost": lost,
                        # What an evaluation may cost for the time saved to make up for those lost.
                        "pays below µs": (first[0] - us) / lost if lost > 0 else float("inf"),
                    },
                }  # fmt: skip


def in_runs(kind: Ints, mean_run: int) -> Ints:
    """Row numbers such that tuples of one kind come in runs, of random length; each kind's in the
    order of its rows, again and again."""
    if mean_run == 1:
        return np.arange(len(kind))
    rng = np.random.default_rng(5)
    of_kind = [np.flatnonzero(kind == k) for k in range(3)]
    used, rows = [0, 0, 0], list[int]()
    while len(rows) < len(kind):
        k = int(rng.integers(3))
        for _ in range(int(rng.geometric(1 / mean_run))):
            rows.append(int(of_kind[k][used[k] % len(of_kind[k])]))
            used[k] += 1
    return np.array(rows[: len(kind)])


def _evaluations_a_row(mesh: Mesh, stream: Profile) -> float:
    batch = stream.sample.combine_chunks().to_batches()[0]
    told = MeshRouter(mesh).leaves(ClassificationWindow("t", batch))
    assert told is not None
    parts = (
        evaluations(stream.take(np.flatnonzero(told == leaf)), route, (1, 2, 3))
        for leaf, route in enumerate(mesh.leaf_routes)
    )
    return sum(parts) / stream.rows
