"""What all cases together say: the targets of the benchmark, each with the case that decides it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.guest.case import FLOOR, KIND_TARGETS

CASE = "all"
MEDIAN = 1.5
BEHIND_PERCENT = 15.0
Row = dict[str, Any]

FORMS = {"ratio_best": "in its best form", "ratio_written": "as written"}


def is_cell(row: Row) -> bool:
    """Whether a row is a case that compares with plain Spark and could be tried here."""
    return row["case"] != CASE and "kind" in row["details"] and "skipped" not in row["details"]


def ratio(row: Row, form: str) -> float:
    """Plain Spark over ours; what failed is 0."""
    return float(row["details"].get(form, 0.0))


def verdicts(rows: Sequence[Row]) -> list[Finding]:
    """The targets, over the cases that ran."""
    cells = [row for row in rows if is_cell(row)]
    found: list[Finding] = []
    for form, words in FORMS.items():
        found += _against_plain(cells, form, words)
    found += _own_engines(cells)
    found += [each for row in cells if (each := _worst_to_chosen(row)) is not None]
    pruned = [row for row in cells if "partitions_pruned" in row["details"]]
    if pruned:
        kept = sum(row["details"]["partitions_pruned"] for row in pruned)
        found.append(
            Finding(CASE, "partitioned tables of which only the needed folders are read",
                    100 * kept / len(pruned), "%", "at least", 100)
        )  # fmt: skip
    return found


def _against_plain(cells: Sequence[Row], form: str, words: str) -> list[Finding]:
    if not cells:
        return []
    plain = f"plain Spark {words} over where"
    found = [
        _lowest(cells, form, f"{plain}: lowest of {len(cells)} cases", FLOOR),
        Finding(CASE, f"{plain}: median of {len(cells)} cases",
                statistics.median(ratio(row, form) for row in cells), "×", "at least", MEDIAN),
    ]  # fmt: skip
    for kind in ("regex", "python"):
        some = [row for row in cells if row["details"]["kind"] == kind]
        if some:
            middle = statistics.median(ratio(row, form) for row in some)
            claim = f"{plain}: lowest of {len(some)} {kind} cases (median {middle:.2f})"
            found.append(_lowest(some, form, claim, KIND_TARGETS[kind]))
    return found


def _lowest(cells: Sequence[Row], form: str, claim: str, limit: float) -> Finding:
    lowest = min(cells, key=lambda row: ratio(row, form))
    below = [row["case"] for row in cells if ratio(row, form) < limit]
    details = {"decided_by": lowest["case"], "below_target": below}
    return Finding(CASE, claim, ratio(lowest, form), "×", "at least", limit, details)


def behind_percent(row: Row) -> float:
    """By how much ours is slower than the faster of our own engines; never below 0."""
    own = row["details"].get("ours_over_own", {}).values()
    return max([0.0, *(100 * (value - 1) for value in own if isinstance(value, float | int))])


def _own_engines(cells: Sequence[Row]) -> list[Finding]:
    ran = [row for row in cells if "failed" not in row["details"]]
    if not ran:
        return []
    worst = max(ran, key=behind_percent)
    above = [row["case"] for row in ran if behind_percent(row) > BEHIND_PERCENT]
    return [
        Finding(CASE, "the engine chosen behind the best of our own, at most",
                behind_percent(worst), "%", "at most", BEHIND_PERCENT,
                {"decided_by": worst["case"], "above_target": above})
    ]  # fmt: skip


def _worst_to_chosen(row: Row) -> Finding | None:
    of = row["details"].get("worst_to_chosen")
    if not of:
        return None
    others = {name: each["ratio"] for name, each in of.items() if name != "where"}
    if not others:
        return None
    said = ", ".join(f"{name} {value:.2f}" for name, value in others.items())
    claim = f"{row['case']}: plain Spark's worst order over where (others' own: {said})"
    return Finding(CASE, claim, of["where"], "×", "at least", max(others.values()), {"others": of})
