"""QueryMesh as a contestant of `bench join`: the window query as written, on the same replay.

Both policies are trained beforehand on the same first stretch of the streams, and do not adapt:
what is compared is the routes, not how soon they are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import querymesh as qm
from querymesh_lab.bench.joins.join_case import CORES, Contestant, JoinCase, Outcome, window_sql
from querymesh_lab.bench.joins.on_spark.replay import StreamFrames, replay

SAMPLE_FILES = 3
"""The first files of each stream are the sample: its windows must fill."""


STILL = {
    "mesh": qm.policies.Mesh(adapt=False),
    "single": qm.policies.Single(adapt=False),
}
"""What is trained before stays, so that all rounds run the same."""


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
            out = qm.run(
                meshes[key],
                dict(streams),
                policy=STILL[policy],
                shards=CORES,
                checkpoint=checkpoint,
                watermark=f"{round(case.design.disorder_s * 1000)} milliseconds",
            )
            made.append(out)
            return out

        outcome = replay(session, case, join)
        done = qm.inspect(made[0])
        figures = done.counts
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
                "routes": {alias: len(view.mesh.routes) for alias, view in done.views.items()},
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
