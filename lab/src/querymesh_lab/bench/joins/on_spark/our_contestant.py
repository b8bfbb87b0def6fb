"""QueryMesh as a contestant of `bench join`: the window query as written, on the same replay.

Both policies are trained beforehand on the same first stretch of the streams, and do not adapt:
what is compared is the routes, not how soon they are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import querymesh as qm
from querymesh_lab.bench.joins.join_case import CORES, Contestant, JoinCase, Outcome, window_sql
from querymesh_lab.bench.joins.on_spark.replay import StreamFrames, replay

SAMPLE_FILES = 3
"""The first files of each stream are the sample: its windows must fill."""


def our_contestant(session: SparkSession, policy: str) -> Contestant:
    """Our join under a policy, trained on a case when it first runs it."""
    meshes: dict[str, qm.Mesh | qm.JoinMesh] = {}

    def contestant(case: JoinCase) -> Outcome:
        key = str(case.folder)
        if key not in meshes:
            query = qm.query(window_sql(case.design), time="ts")
            meshes[key] = qm.train(query, sample_of(case), policy=policy)
        made: list[DataFrame] = []

        def join(streams: StreamFrames, checkpoint: Path) -> DataFrame:
            settings: dict[str, Any] = {
                "policy": policy,
                "shards": CORES,
                "checkpoint": str(checkpoint),
                "delay": f"{round(case.design.disorder_s * 1000)} milliseconds",
                "adapt": False,
            }
            made.append(qm.run(meshes[key], dict(streams), **settings))
            return made[0]

        outcome = replay(session, case, join)
        done: qm.JoinRun = qm.metrics(made[0])
        figures = done.metrics
        return replace(
            outcome,
            comparisons=done.comparisons,
            state_rows=max(batch.state_rows for batch in done.batches),
            state_bytes=max(batch.state_bytes for batch in done.batches),
            details={
                **outcome.details,
                "probes": done.probes,
                "fabric_seconds": round(figures.total_seconds, 3),
                "state_seconds": round(sum(batch.state_seconds for batch in done.batches), 3),
                "routes": {alias: len(routes) for alias, routes in done.mesh.routes.items()},
            },
        )

    return contestant


def sample_of(case: JoinCase) -> Mapping[str, pa.Table]:
    """The first files of each stream, as one table each."""
    return {
        stream: pa.concat_tables(
            [pq.read_table(path) for path in sorted(case.files(stream).iterdir())[:SAMPLE_FILES]]
        )
        for stream in case.design.graph.streams
    }
