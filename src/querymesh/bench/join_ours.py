"""QueryMesh as a contestant of `bench join`: the window query as written, on the same replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import querymesh as qm
from querymesh.bench.join_case import CORES, Case, Contestant, Outcome, window_sql
from querymesh.bench.join_replay import Streams, replay


def our_contestant(session: SparkSession, policy: str) -> Contestant:
    """The contestant under a policy; it learns as it runs, with no sample beforehand."""

    def contestant(case: Case) -> Outcome:
        made: list[DataFrame] = []

        def join(streams: Streams, checkpoint: Path) -> DataFrame:
            settings: dict[str, Any] = {
                "policy": policy,
                "shards": CORES,
                "checkpoint": str(checkpoint),
                "delay": f"{round(case.design.disorder_s * 1000)} milliseconds",
            }
            asked = qm.query(window_sql(case.design), time="ts")
            made.append(qm.run(asked, dict(streams), **settings))
            return made[0]

        outcome = replay(session, case, join)
        done: Any = qm.metrics(made[0])
        return replace(
            outcome,
            comparisons=done.comparisons,
            state_rows=max(batch.state_rows for batch in done.batches),
            state_bytes=max(batch.state_bytes for batch in done.batches),
            details={**outcome.details, "probes": done.probes},
        )

    return contestant
