"""Case (b): SQL regular expressions on the same classes, native engine, other engines beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from querymesh.stats.profile import route_text
from querymesh_lab.bench import fingerprint
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.lines import OPPOSITE, PATTERNS, RELATION, condition, lines, sql
from querymesh_lab.bench.filters import other_engines, plain_spark
from querymesh_lab.bench.filters.contest import best_orders, native_question, prepare
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.fingerprint import Fingerprint
from querymesh_lab.bench.measure import interleave

CASE = "regex"
CONDITIONS = [condition(pattern) for _, pattern in PATTERNS]
NAMES = [name for name, _ in PATTERNS]


def run(bench: Bench) -> list[Finding]:
    """The mesh in generated code against the best order anybody could write in plain Spark."""
    data = lines(bench.rows(200_000, 40_000), OPPOSITE)
    contest = prepare(bench, native_question(RELATION, sql(), data))
    orders = best_orders(contest.profile, bench.rounds(3, 2))
    written = {f"plain Spark {route_text(r)}": plain_spark.in_order(contest.df, CONDITIONS, r)
               for r in orders}  # fmt: skip
    actions: dict[str, Callable[[], Fingerprint]] = {"mesh": contest.run(contest.mesh, "mesh")}
    for name, frame in written.items():
        actions[name] = lambda frame=frame: fingerprint.of_ids(frame)  # type: ignore[misc]
    others = other_engines.installed()
    for engine in others:
        actions[engine] = other_engines.regex_filter(
            engine, data.table, "line", [pattern for _, pattern in PATTERNS], orders[0]
        )
    timing = interleave(actions, bench.rounds(7), log=bench.log)
    contest.check_rows(written)
    contest.close()
    best = timing.fastest(list(written))
    details: dict[str, Any] = {
        **contest.details(),
        **timing_details(timing),
        "best_order": route_text(orders[list(written).index(best)], NAMES),
        "evaluations_by": "the designed verdicts; generated code has no counter",
        "other_engines_order": route_text(orders[0], NAMES),
    }
    found = [
        Finding(
            CASE, "mesh against the best single order in plain Spark",
            timing.ratio(best, "mesh"), "×", "at least", 1.4, details, timed=True,
        )
    ]  # fmt: skip
    found += [
        Finding(
            CASE, f"mesh on Spark against {engine}, two threads, the best single order written",
            timing.ratio(engine, "mesh"), "×", details=details, timed=True,
        )
        for engine in others
    ]  # fmt: skip
    return found
