"""Case (e): real requests and connections, with predicates a security engineer would write.

No targets: nobody arranged these classes, and whatever comes out is said.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from querymesh_lab.bench import fingerprint
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data import csic, kdd
from querymesh_lab.bench.data.row_predicate import RowPredicate, functions, select
from querymesh_lab.bench.filters import plain_spark
from querymesh_lab.bench.filters.contest import Question, prepare
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.measure import interleave

CASE = "real"
DATA = "QUERYMESH_DATA"


def data_folder() -> Path | None:
    """Where the real data lies: QUERYMESH_DATA, or `../shared/data` from the project's root."""
    given = os.environ.get(DATA)
    root = Path(__file__).resolve().parents[5]
    folder = Path(given) if given else root.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def run(bench: Bench) -> list[Finding]:
    """Each data set that is there; the others are passed over, saying so."""
    folder = data_folder()
    found: list[Finding] = []
    if folder is not None and all((folder / name).is_file() for name in csic.FILES):
        table = csic.requests(folder, bench.rows(61_065, 6_000))
        found += python_contest(bench, "CSIC requests", csic.RELATION, table, csic.PREDICATES)
        found += sql_contest(bench, "CSIC requests", csic.RELATION, table, csic.CONDITIONS)
    else:
        bench.log(f"  skipped: no CSIC requests here; {DATA}=folder says where they are")
    if folder is not None and (folder / kdd.FILE).is_file():
        table = kdd.connections(folder, bench.rows(150_000, 10_000))
        found += python_contest(bench, "KDD connections", kdd.RELATION, table, kdd.PREDICATES)
    else:
        bench.log(f"  skipped: no KDD connections here; {DATA}=folder says where they are")
    return found


def python_contest(
    bench: Bench, what: str, relation: str, table: pa.Table, predicates: Sequence[RowPredicate]
) -> list[Finding]:
    """Python predicates in the fabric, against plain Spark and the best single order."""
    question = Question(relation, select(relation, predicates), table, functions(predicates))
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
    contest = prepare(bench, Question(relation, text, table, engine="native"))
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
