"""Case (a): four Python predicates of 2 to 50 µs a row, three classes of opposite selectivities."""

from __future__ import annotations

from typing import Any

from querymesh_lab.bench import fingerprint
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.classed import OPPOSITE
from querymesh_lab.bench.data.messages import PREDICATES, RELATION, messages
from querymesh_lab.bench.filters import plain_spark
from querymesh_lab.bench.filters.contest import prepare, python_question
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.measure import interleave

CASE = "python"


def run(bench: Bench) -> list[Finding]:
    """The mesh against plain Spark and against the best single order in the same fabric."""
    data = messages(bench.rows(120_000, 6_000), OPPOSITE)
    contest = prepare(bench, python_question(RELATION, PREDICATES, data))
    way, tried = plain_spark.fastest_way(bench, contest, PREDICATES)
    bench.log(f"  plain Spark is fastest as {way}")
    by_hand = plain_spark.by_hand(contest.df, PREDICATES, contest.limits.single_route)
    plain = plain_spark.filtered(contest.df, PREDICATES, way)
    timing = interleave(
        {
            "mesh": contest.run(contest.mesh, "mesh"),
            "best single": contest.run(contest.single, "best single"),
            "plain Spark": lambda: fingerprint.of_ids(plain),
            "by hand": lambda: fingerprint.of_ids(by_hand),
        },
        bench.rounds(5),
        log=bench.log,
    )
    contest.check_rows(
        {"plain Spark": plain, "by hand": by_hand, "best single": contest.result(contest.single)}
    )
    contest.close()
    details: dict[str, Any] = {
        **contest.details(),
        **timing_details(timing),
        "plain_spark_way": way,
        "plain_spark_ways_seconds": tried,
    }
    mesh, oracle = contest.effort("mesh", contest.mesh), contest.limits.oracle
    assert oracle is not None
    return [
        Finding(
            CASE, "mesh against plain Spark's filter(udf & udf & …)",
            timing.ratio("plain Spark", "mesh"), "×", "at least", 3.0, details, timed=True,
        ),
        Finding(
            CASE, "mesh against the best single order, same fabric",
            timing.ratio("best single", "mesh"), "×", "at least", 1.4, details, timed=True,
        ),
        Finding(
            CASE, "evaluations of the mesh against the class oracle's",
            mesh.evaluations / oracle.evaluations, "×", "at most", 1.05, details,
        ),
        Finding(
            CASE, "mesh against one hand-written short-circuit udf in the best order",
            timing.ratio("by hand", "mesh"), "×", details=details, timed=True,
        ),
    ]  # fmt: skip
