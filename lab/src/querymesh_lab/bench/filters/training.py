"""Training time: 1,000 sampled rows, six operators, apart from the predicates' own time."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import querymesh as qm
from querymesh.fabric.profile.calibrate import calibrate
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.classed import OPPOSITE
from querymesh_lab.bench.data.messages import PREDICATES, RELATION, messages
from querymesh_lab.bench.data.row_predicate import select
from querymesh_lab.bench.finding import Finding

CASE = "training"
ROWS = 1000


class Stopwatch:
    """Adds up the time spent inside the functions it wraps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, fn: Callable[..., bool]) -> Callable[[Any], list[bool]]:
        """A vectorised form of a row function that adds its time to this watch."""

        def timed(column: Any) -> list[bool]:
            started = perf_counter()
            verdicts = [fn(value) for value in column.to_pylist()]
            self.seconds += perf_counter() - started
            return verdicts

        return timed


def run(bench: Bench) -> list[Finding]:
    """Train a few times over, with different seeds; the median counts."""
    apart, whole, worked = [], [], []
    for seed in range(bench.rounds(5, 2)):
        table = messages(ROWS, OPPOSITE, seed).table
        watch = Stopwatch()
        functions = {
            p.name: qm.predicate(watch.around(p.fn), columns=p.columns, name=p.name)
            for p in PREDICATES
        }
        text = select(RELATION, PREDICATES) + " AND amount > 20 AND region <> 'r03'"
        query = qm.query(text, functions=functions)
        calibrate.cache_clear()
        started, cpu = perf_counter(), process_time()
        mesh = qm.train(query, table, policy=qm.policies.Mesh(seed=seed))
        whole.append(perf_counter() - started)
        worked.append(process_time() - cpu - watch.seconds)
        apart.append(whole[-1] - watch.seconds)
    assert isinstance(mesh, qm.Mesh)
    details = {
        "rows": ROWS,
        "operators": len(mesh.operators),
        "leaves": len(mesh.leaves),
        "whole_seconds": [round(s, 4) for s in whole],
        "cpu_seconds_apart": [round(s, 4) for s in worked],
        "calibration": "included: a fresh process pays it once",
    }
    return [
        Finding(
            CASE, "training on 1,000 rows and six operators, without the predicates' own time",
            statistics.median(apart), "s", "at most", 2.0, details,
        )
    ]  # fmt: skip
