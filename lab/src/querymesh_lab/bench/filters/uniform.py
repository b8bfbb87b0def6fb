"""Case (d): data where no class matters, and a single predicate: what QueryMesh costs for nothing.

There is one order to find and nothing to classify, so the mesh must be as good as the best single
order: in the fabric against the same fabric, in generated code against plain Spark.
"""

from __future__ import annotations

from collections.abc import Callable

from querymesh_lab.bench import fingerprint
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.classed import UNIFORM
from querymesh_lab.bench.data.lines import PATTERNS, condition, lines
from querymesh_lab.bench.data.lines import RELATION as LINES
from querymesh_lab.bench.data.lines import sql as lines_sql
from querymesh_lab.bench.data.messages import PREDICATES, messages
from querymesh_lab.bench.data.messages import RELATION as MESSAGES
from querymesh_lab.bench.filters import plain_spark
from querymesh_lab.bench.filters.contest import (
    FilterContest,
    native_question,
    prepare,
    python_question,
)
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.fingerprint import Fingerprint
from querymesh_lab.bench.measure import Timing, interleave

CASE = "uniform"


def run(bench: Bench) -> list[Finding]:
    """Four predicates and one in the fabric; four expressions in generated code."""
    return [*_in_fabric(bench, 4), *_in_fabric(bench, 1), *_native(bench)]


def _in_fabric(bench: Bench, count: int) -> list[Finding]:
    data = messages(bench.rows(24_000 if count > 1 else 96_000, 4_000), UNIFORM)
    contest = prepare(bench, python_question(MESSAGES, PREDICATES[:count], data))
    rival = contest.run(contest.single, "best single")
    timing = _timed(bench, contest, rival)
    contest.check_rows({"best single": contest.result(contest.single)})
    contest.close()
    what = "one Python predicate" if count == 1 else "uniform data, Python predicates"
    metrics = contest.last["mesh"]
    details = {**contest.details(), **timing_details(timing)}
    return [
        _same_time(f"{what}: time of the mesh against the best single order", timing, details),
        Finding(
            CASE, f"{what}: share of the time spent classifying",
            100 * metrics.classify_seconds / metrics.total_seconds, "%", "at most", 2.0, details,
        ),
    ]  # fmt: skip


def _native(bench: Bench) -> list[Finding]:
    data = lines(bench.rows(200_000, 40_000), UNIFORM)
    contest = prepare(bench, native_question(LINES, lines_sql(), data))
    conditions = [condition(pattern) for _, pattern in PATTERNS]
    route = contest.limits.single_route
    plain = plain_spark.in_order(contest.df, conditions, route)
    timing = _timed(bench, contest, lambda: fingerprint.of_ids(plain))
    contest.check_rows({"plain Spark": plain})
    contest.close()
    details = {**contest.details(), **timing_details(timing)}
    what = "uniform data, SQL: time of the native mesh against plain Spark's best single order"
    return [_same_time(what, timing, details)]


def _timed(bench: Bench, contest: FilterContest, rival: Callable[[], Fingerprint]) -> Timing:
    """Many short rounds: two per cent is small beside what one round may be off."""
    actions = {"mesh": contest.run(contest.mesh, "mesh"), "best single": rival}
    return interleave(actions, bench.rounds(15), warm_ups=bench.rounds(2, 1), log=bench.log)


def _same_time(claim: str, timing: Timing, details: dict[str, object]) -> Finding:
    ratio = timing.ratio("mesh", "best single")
    return Finding(CASE, claim, ratio, "×", "at most", 1.02, details, timed=True)
