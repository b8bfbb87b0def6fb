"""Case (e): real requests and connections, with predicates a security engineer would write.

No targets: nobody arranged these classes, and whatever comes out is said.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from querymesh_lab.bench import fingerprint
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data import csic, kdd
from querymesh_lab.bench.data.real_folder import folder_with, skipped
from querymesh_lab.bench.data.row_predicate import RowPredicate, functions, select
from querymesh_lab.bench.filters import plain_spark
from querymesh_lab.bench.filters.contest import FilterQuestion, prepare
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.measure import interleave

CASE = "real"


def run(bench: Bench) -> list[Finding]:
    """Each data set that is there; the others are passed over, saying so."""
    found: list[Finding] = []
    if (folder := folder_with(csic.FILES)) is not None:
        table = csic.requests(folder, bench.rows(61_065, 6_000))
        found += python_contest(bench, "CSIC requests", csic.RELATION, table, csic.PREDICATES)
        found += sql_contest(bench, "CSIC requests", csic.RELATION, table, csic.CONDITIONS)
    else:
        bench.log(skipped("CSIC requests", "they are"))
    if (folder := folder_with([kdd.FILE])) is not None:
        table = kdd.connections(folder, bench.rows(150_000, 10_000))
        found += python_contest(bench, "KDD connections", kdd.RELATION, table, kdd.PREDICATES)
    else:
        bench.log(skipped("KDD connections", "they are"))
    return found


def python_contest(
    bench: Bench, what: str, relation: str, table: pa.Table, predicates: Sequence[RowPredicate]
) -> list[Finding]:
    """Python predicates in the fabric, against plain Spark and the best single order."""
    question = FilterQuestion(relation, select(relation, predicates), table, functions(predicates))
    contest = prepare(bench, question)
    way, tried = plain_spark.fastest_way(bench, contest, predicates)
    plain = plain_spark.filtered(contest.df, predicates, way)
    timing = interleave(
        {
            "mesh": contest.run(contest.mesh, "mesh"),
            "best single": contest.run(contest.single, "best single"),
            "plain Spark": lambda: fingerprint.of_ids(plain),
        },
        bench.rounds(5),
        log=bench.log,
    )
    contest.check_rows({"plain Spark": plain, "best single": contest.result(contest.single)})
    contest.close()
    mesh = contest.effort("mesh", contest.mesh)
    details = {
        **contest.details(),
        **timing_details(timing),
        "plain_spark_way": way,
        "plain_spark_ways_seconds": tried,
        "results": timing.answer[0],
    }
    return [
        Finding(CASE, f"{what}: mesh against plain Spark", timing.ratio("plain Spark", "mesh"),
                "×", details=details),
        Finding(CASE, f"{what}: mesh against the best single order, same fabric",
                timing.ratio("best single", "mesh"), "×", details=details),
        Finding(CASE, f"{what}: predicate time of the best single order over the mesh's",
                contest.limits.single.us / mesh.us, "×", details=details),
    ]  # fmt: skip


def sql_contest(
    bench: Bench, what: str, relation: str, table: pa.Table, conditions: Sequence[str]
) -> list[Finding]:
    """SQL conditions in generated code, against plain Spark in the best single order."""
    text = f"SELECT * FROM {relation} WHERE " + " AND ".join(conditions)
    contest = prepare(bench, FilterQuestion(relation, text, table, engine="native"))
    plain = plain_spark.in_order(contest.df, conditions, contest.limits.single_route)
    timing = interleave(
        {
            "mesh": contest.run(contest.mesh, "mesh"),
            "plain Spark": lambda: fingerprint.of_ids(plain),
        },
        bench.rounds(11),
        warm_ups=bench.rounds(2, 1),
        log=bench.log,
    )
    contest.check_rows({"plain Spark": plain})
    contest.close()
    details = {**contest.details(), **timing_details(timing), "results": timing.answer[0]}
    return [
        Finding(CASE, f"{what}, SQL: native mesh against plain Spark in the best single order",
                timing.ratio("plain Spark", "mesh"), "×", details=details)
    ]  # fmt: skip
