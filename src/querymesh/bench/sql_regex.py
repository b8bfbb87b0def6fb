"""Case (b): SQL regular expressions on the same classes, native engine, other engines beside."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from querymesh.bench import fingerprint, other_engines, plain_spark
from querymesh.bench.case import Bench
from querymesh.bench.classed import OPPOSITE
from querymesh.bench.contest import Contest, Question, cached, prepare
from querymesh.bench.finding import Finding, timing_details
from querymesh.bench.fingerprint import Fingerprint
from querymesh.bench.lines import PATTERNS, RELATION, condition, lines, sql
from querymesh.bench.measure import interleave
from querymesh.stats.profile import Route, route_text

CASE = "regex"
CONDITIONS = [condition(pattern) for _, pattern in PATTERNS]
NAMES = [name for name, _ in PATTERNS]
FINALISTS = 3


def run(bench: Bench) -> list[Finding]:
    """The mesh in generated code against the best order anybody could write in plain Spark."""
    data = lines(bench.rows(800_000, 60_000), OPPOSITE)
    contest = prepare(
        bench.session,
        Question(
            RELATION,
            sql(),
            data.table,
            engine="native",
            classes=data.classes,
            passes=data.passes,
        ),
    )
    orders = best_orders(bench, contest)
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
    timing = interleave(actions, bench.rounds(9), log=bench.log)
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
            timing.ratio(best, "mesh"), "×", "at least", 1.4, details,
        )
    ]  # fmt: skip
    found += [
        Finding(
            CASE, f"mesh on Spark against {engine}, two threads, the best single order written",
            timing.ratio(engine, "mesh"), "×", details=details,
        )
        for engine in others
    ]  # fmt: skip
    return found


def best_orders(bench: Bench, contest: Contest) -> list[Route]:
    """The few fastest of all orders in Spark, each tried on a part of the rows.

    Tried and not computed: the profile's costs are those of Arrow's expressions, not of Java's.
    """
    rows = contest.question.table.num_rows
    part = cached(bench.session, contest.question.table.slice(0, rows // bench.rows(8, 3)))
    routes = list(itertools.permutations(range(1, len(CONDITIONS) + 1)))
    actions: dict[str, Callable[[], Fingerprint]] = {}
    for route in routes:
        frame = plain_spark.in_order(part, CONDITIONS, route)
        actions[route_text(route)] = lambda frame=frame: fingerprint.of_ids(frame)  # type: ignore[misc]
    timing = interleave(actions, bench.rounds(3, 1))
    part.unpersist()
    medians = timing.median_seconds()
    return sorted(routes, key=lambda route: medians[route_text(route)])[:FINALISTS]
