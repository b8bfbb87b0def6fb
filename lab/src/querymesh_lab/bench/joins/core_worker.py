"""One cell of `bench join --core`, measured in this process, by this release or an earlier one.

Run as a script it reads jobs as lines of JSON and answers each with a line. It uses only what
earlier releases have as well, under the names they have in common.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from querymesh.fabric.join.indices import attributes_of
from querymesh.fabric.profile.calibrate_join import overheads_for
from querymesh.fabric.profile.join_profile import SampledJoin
from querymesh.fabric.routers.routing import PAPER, Routing
from querymesh.index.tune.tuner import Tuner
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.judge import train_until_accurate
from querymesh.optimize.train.training import Training
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.query.parse.query import query
from querymesh_lab.bench.data import join_data
from querymesh_lab.bench.data.join_data import Design
from querymesh_lab.bench.data.join_graphs import JoinGraph
from querymesh_lab.bench.joins.core_run import as_batches, by_eddies, by_meshes, run_core

TEN_WAY = JoinGraph("10-way", tuple("ABCDEFGHIJ"), {"k": tuple("ABCDEFGHIJ")})


@dataclass(frozen=True)
class TenStreams(Design):
    """Ten streams on one key."""

    @property
    def graph(self) -> JoinGraph:
        """All of them tied by one attribute."""
        return TEN_WAY


CASES: dict[str, Design] = {
    "5-way uniform": Design("5-way", rows=60_000, rate=3000.0, matches=0.8),
    "5-way skewed": Design("5-way", rows=60_000, rate=3000.0, matches=3.0, rare=0.002),
    "5-way skewed, more matches": Design(
        "5-way", rows=60_000, rate=3000.0, matches=9.0, rare=0.0002
    ),
    "10-way uniform": TenStreams("10-way", rows=30_000, rate=1500.0, matches=0.8),
    "10-way skewed": TenStreams("10-way", rows=30_000, rate=1500.0, matches=1.5, rare=0.002),
}

BY_TUPLE = {
    "eddy by tuple": ("eddy", replace(PAPER, chunk=1)),
    "lottery by tuple": ("eddy", replace(PAPER, chunk=1, choice="lottery")),
    "cbr by tuple": ("cbr", replace(PAPER, chunk=1)),
}
"""The paper's Eddies, which decide on each tuple by all before it."""

POLICIES = ("single", "mesh", "eddy", "cbr", *BY_TUPLE, "single again")
SAMPLED = 0.6
"""Streams, which are two windows long, are learned from this share that they begin with."""


@lru_cache(maxsize=2)
def _streams(case: str, quick: bool) -> tuple[JoinQuery, dict[str, pa.RecordBatch]]:
    design = CASES[case]
    if quick:
        design = replace(design, rows=600, rate=30.0)
    graph = design.graph
    listed = ", ".join(f"{a.upper()} {a} [RANGE {design.window_s} SECONDS]" for a in graph.aliases)
    wanted = ", ".join(f"{a}.id AS {a}_id" for a in graph.aliases)
    sql = f"SELECT {wanted} FROM {listed} WHERE {' AND '.join(graph.conditions())}"
    tables = join_data.streams(design)
    join = bind_join(query(sql, time="ts"), {name: each.schema for name, each in tables.items()})
    return join, as_batches({name.lower(): each for name, each in tables.items()})


@lru_cache(maxsize=8)
def _meshes(case: str, quick: bool, window: int, one_route: bool) -> dict[str, Mesh]:
    """The meshes that training finds on the beginning of the streams."""
    join, streams = _streams(case, quick)
    first = {a: rows.slice(0, int(rows.num_rows * SAMPLED)) for a, rows in streams.items()}
    sampled = SampledJoin(join, first, {})
    training = Training(window=window)
    found = {}
    for alias, view in join.views.items():

        def take(rows: int, seed: int, alias: str = alias) -> Any:
            return sampled.profile(alias, rows, seed)

        found[alias] = train_until_accurate(
            view.query, take, overheads_for(view, window), training, one_route=one_route
        )
    return found


def run_cell(job: dict[str, Any], policies: Iterable[str]) -> dict[str, Any]:
    """Every policy once: its time a tuple, its probes, and how many results there were."""
    case, quick, step_rows = job["case"], job["quick"], job["step_rows"]
    join, streams = _streams(case, quick)
    window = max(step_rows // len(join.aliases), 1)
    found = {}
    for policy in policies:
        leaves = 1
        if policy in ("eddy", "cbr"):
            routers = by_eddies(policy, Routing())
        elif policy in BY_TUPLE:
            routers = by_eddies(*BY_TUPLE[policy])
        else:
            meshes = _meshes(case, quick, window, policy != "mesh")
            leaves = max(len(mesh.leaf_routes) for mesh in meshes.values())
            routers = by_meshes(meshes)
        tuner = Tuner("hash", attributes_of(join))
        run = run_core(join, streams, routers, step_rows, tuner=tuner)
        found[policy] = {
            "us_a_tuple": 1e6 * run.cpu_seconds / run.metrics.rows_in,
            "probes_a_tuple": round(run.probes_a_tuple, 3),
            "results": run.metrics.rows_out,
            "leaves": leaves,
            "routing_ns_a_call": round(
                1e9 * run.metrics.routing_seconds / max(run.metrics.routing_calls, 1), 1
            ),
        }
    return found


def main() -> None:
    """Answer jobs until there are no more."""
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(run_cell(job, job["policies"])), flush=True)


if __name__ == "__main__":
    main()
