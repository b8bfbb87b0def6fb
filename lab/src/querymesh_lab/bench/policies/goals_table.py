"""What `bench goals` prints: a line for each case and policy, and how far the mesh is behind."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from querymesh.report.text.figures import table

DEFAULT = "mesh"
"""The policy that users get unless they ask for another."""

GOALS = {
    "time": ("least work", 1),
    "by_end_percent": ("most output by t", -1),
    "peak_mb": ("least memory", 1),
}
"""By figure: the goal, and whether less of it is better (1) or more (-1)."""


HEAD = (
    "case", "policy", "time ×", "evaluations", "comparisons", "by t, %", "peak MB", "index MB",
    "switches", "A/A",
)  # fmt: skip


def print_rows(rows: list[dict[str, Any]], console: Console) -> None:
    """The rows as a table for people, the best policy of each goal marked by a star."""
    lines, before = [], None
    best = _best(rows)
    for row in rows:
        at, first = row["details"], row["case"] != before
        before = row["case"]
        policy = at["policy"] + (" = " + at["same_plan_as"] if at["same_plan_as"] else "")

        def starred(key: str, text: str, at: Mapping[str, Any] = at, case: str = before) -> str:
            return text + ("*" if best[case, key] == at["policy"] else " ")

        lines.append((
            row["case"] if first else "", policy, starred("time", f"{at['time']:.2f}"),
            f"{at['evaluations']:.2f}", f"{at['comparisons']:.2f}",
            starred("by_end_percent", f"{at['by_end_percent']:.1f}"),
            starred("peak_mb", f"{at['peak_mb']:.2f}"), f"{at['index_mb']:.2f}",
            str(at["switches"]), f"{at['a_a']:.2f}" if first else "",
        ))  # fmt: skip
    console.print(Text(table(HEAD, lines, left=(0, 1))), soft_wrap=True)
    console.print(Text("\n" + behind_text(rows)), soft_wrap=True)


def behind_text(rows: list[dict[str, Any]]) -> str:
    """How far the mesh, which is the default, is behind the best policy, goal by goal."""
    lines = []
    for key, (goal, sign) in GOALS.items():
        far = {}
        for case in dict.fromkeys(row["case"] for row in rows):
            of = {r["details"]["policy"]: r["details"][key] for r in rows if r["case"] == case}
            best = min(of.values(), key=lambda value: sign * value)
            far[case] = 100 * abs(of[DEFAULT] - best) / max(abs(best), 1e-9)
        worst = max(far, key=lambda case: far[case])
        middle = statistics.median(far.values())
        lines.append(
            f"{goal}: {DEFAULT} is behind the best by {middle:.1f} % (median), by {far[worst]:.1f} "
            f"% at most ({worst})"
        )
    return "\n".join(lines)


def _best(rows: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """By case and goal, the policy that did best."""
    found: dict[tuple[str, str], str] = {}
    for case in dict.fromkeys(row["case"] for row in rows):
        some = [row["details"] for row in rows if row["case"] == case]
        for key, (_, sign) in GOALS.items():
            found[case, key] = min(some, key=lambda at: sign * at[key])["policy"]
    return found
