"""Runs of filters as `where` leaves them, with round figures, for golden files: no Spark needed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from placements import BOTH, CATALYST, PYTHON, costs_of
from querymesh.cost.route_time import Overheads
from querymesh.fabric.core.metrics import Metrics, Visits
from querymesh.mesh.mesh import written_mesh
from querymesh.optimize.placement.advice import Advice, Verdict
from querymesh.optimize.placement.costs import Costs
from querymesh.optimize.placement.decide import Decision, decide
from querymesh.optimize.placement.gains import conditions_of, gains_of
from querymesh.optimize.placement.worth import Job
from querymesh.query.model import BoundQuery
from querymesh.query.parse.query import query
from querymesh.runtime.preparation import Preparation
from querymesh.runtime.run import Run
from querymesh.runtime.task_report import ViewReport
from querymesh.runtime.view import View
from querymesh.stats.profile import Profile

ROWS = 1000
JOB = Job(rows=2e7, parallelism=2, python_start_s=0.3, learned_s=0.8)
OVERHEADS = Overheads(node_us=0.02, ruster_us=60.0, window=10_000)


def requests() -> pa.Table:
    """A thousand requests of two kinds: every other one comes from a robot."""
    return pa.table(
        {
            "agent": [("robot", "browser")[i % 2] for i in range(ROWS)],
            "payload": [f"GET /{i % 10}" for i in range(ROWS)],
        }
    )


def bound(conditions: str) -> BoundQuery:
    functions = {name: lambda *arrays: arrays[0] for name in ("is_attack", "is_known")}
    asked = query(f"SELECT * FROM input WHERE {conditions}", functions=functions)
    return asked.bind({"input": requests().schema})


def profiled(asked: BoundQuery, outcomes: np.ndarray) -> Profile:
    names = tuple(operator.name for operator in asked.operators)
    nothing = np.zeros(len(names))
    return Profile(requests(), names, asked.precedence, outcomes, nothing, nothing)


def plain() -> Run:
    asked = bound("payload LIKE '%ab%' AND agent LIKE '%7'")
    why = (
        "the job is too small, or its conditions too cheap, for learning to pay: it runs as written"
    )
    mesh = written_mesh(asked, why)
    run = Run(asked.query, "mesh", "native", {"input": View("input", asked, mesh)})
    run.left_to_spark = ("kind < 3",)
    run.preparation = Preparation(mesh, None, 0.01)
    return run


def nothing_to_order() -> Run:
    none = query("SELECT * FROM input").bind({"input": requests().schema})
    run = Run(none.query, "mesh", "native", {"input": View("input", none, written_mesh(none))})
    run.left_to_spark = ("kind < 3", "id > 100")
    return run


def by_kinds() -> tuple[BoundQuery, Profile, Costs]:
    """Two SQL conditions, each of which drops the rows of one kind."""
    asked = bound("payload RLIKE 'a.*b' AND agent RLIKE 'c.*d'")
    robots = np.arange(ROWS) % 2
    outcomes = np.column_stack([robots, 1 - robots]).astype(float)
    return asked, profiled(asked, outcomes), costs_of([CATALYST, CATALYST], [5.0, 5.0], 0.0)


def native() -> Run:
    asked, profile, costs = by_kinds()
    return run_of(asked, profile, costs, "native")[0]


def mixed() -> tuple[BoundQuery, Profile, Costs]:
    """A Python function between what Catalyst alone, and what both can evaluate."""
    asked = bound(
        "is_attack(payload) AND payload RLIKE 'a.*b' AND payload LIKE '%z%' AND agent RLIKE 'y$'"
    )
    rng = np.random.default_rng(1)
    outcomes = (rng.random((ROWS, 4)) < [0.3, 0.5, 0.1, 0.9]).astype(float)
    costs = costs_of([PYTHON, BOTH, CATALYST, CATALYST], [0.0, 6.0, 0.2, 4.0], [30.0, 0.05, 0, 0])
    return asked, profiled(asked, outcomes), costs


def sandwich() -> Run:
    asked, profile, costs = mixed()
    run, decision = run_of(asked, profile, costs, "fabric", calls=ROWS)
    run.left_to_spark = ("kind <> 4",)
    metrics = Metrics(rows_in=1000, rows_out=15, windows=1, rusters=1, total_seconds=0.002)
    metrics.leaf_rows[0, 0] = 1000
    route = decision.stages.python(decision.mesh)[0]
    left = 1000
    for operator in route:
        metrics.visits[0, 0, operator] = Visits(1, left, left // 2, 0, 0.001)
        left //= 2
    run.views["input"].receive(ViewReport(metrics))
    return run


def run_of(
    asked: BoundQuery, profile: Profile, costs: Costs, engine: str, calls: int = 0
) -> tuple[Run, Decision]:
    decision = decide(asked.query, profile, costs, OVERHEADS, JOB)
    run = Run(asked.query, "mesh", engine, {"input": View("input", asked, decision.mesh)})
    run.preparation = Preparation(decision.mesh, decision, 0.8, profile.rows, calls)
    return run, decision


def advice() -> Advice:
    """What `qm.advise` would say of the mixed filter."""
    asked, profile, costs = mixed()
    decision = decide(asked.query, profile, costs, OVERHEADS, JOB)
    conditions = conditions_of(asked, decision, profile, costs, requests())
    return Advice(
        verdict=Verdict.YES,
        why=decision.why,
        engine=decision.chosen,
        plain_us=decision.plain_us,
        expected_us=decision.expected_us,
        gains=gains_of(decision, profile, costs, conditions),
        conditions=conditions,
        left_to_spark=("kind <> 4",),
        learning_s=0.8,
        sample_rows=ROWS,
        calls=ROWS,
        job=JOB,
        decision=decision,
    )
