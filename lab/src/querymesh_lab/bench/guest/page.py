"""The result of `bench guest` as tables: for the terminal, and for the documentation.

`python -m querymesh_lab.bench.guest.page docs/lab/guest.md FILE.json …` writes the tables of one
or more runs (of different groups, say) into the page, between its two marks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from querymesh.errors import QueryMeshError
from querymesh.report.text.figures import table
from querymesh_lab.bench.guest.guest_bench import GRID
from querymesh_lab.bench.guest.verdicts import CASE, behind_percent, verdicts

BEGIN, END = "<!-- the tables of bench guest -->", "<!-- until here -->"
Row = dict[str, Any]

HEAD = (
    "case", "kind", "rows", "plain s", "best/ours", "written/ours", "again", "A/A", "best order",
    "form", "engine", "behind own %", "verdict",
)  # fmt: skip
TARGET_HEAD = ("target", "asked", "measured", "decided by", "verdict")


def lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """A line for each case."""
    return [_line(row) for row in rows if row["case"] != CASE]


def _line(row: Row) -> tuple[str, ...]:
    at = row["details"]
    name, kind = row["case"], at.get("kind", "")
    for word in ("skipped", "failed"):
        if word in at:
            return (name, kind, *[""] * (len(HEAD) - 3), f"{word}: {at[word]}")
    if "ratio_best" not in at:
        seconds = at["median_seconds"]["plain Spark"]
        said = f"{row['value']:.2f} s later; {_verdict(row)}"
        middle = [""] * (len(HEAD) - 6)
        return (name, kind, f"{at['rows']:,}", f"{seconds:.2f}", "", *middle, said)
    return (
        name, kind, f"{at['rows']:,}", f"{at['median_seconds'][at['rival']]:.2f}",
        f"{at['ratio_best']:.2f}", f"{at['ratio_written']:.2f}", f"{at['ratio_again']:.2f}",
        f"{at['a_a']:.2f}", at["best_order"], at["plain_way"], at["engine"],
        f"{behind_percent(row):.0f}", f"{_verdict(row)} ({row['target']})",
    )  # fmt: skip


def _verdict(row: Row) -> str:
    if row["target"] == "-":
        return ""
    return ("met" if row["met"] else "not met") + (", noisy" if row["details"]["noisy"] else "")


def target_lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """A line for each target over all cases, worked out anew from the cases."""
    found: list[tuple[str, ...]] = []
    for finding in verdicts(rows):
        row = finding.as_row("")
        found.append((
            row["claim"], row["target"], f"{row['value']:.2f} {row['unit']}",
            str(row["details"].get("decided_by", "")), "met" if row["met"] else "not met",
        ))  # fmt: skip
    return found


def print_rows(rows: Sequence[Row], console: Console) -> None:
    """Both tables for people at a terminal."""
    console.print(Text(table(HEAD, lines(rows), left=(0, 1, 8, 9, 10, 12))), soft_wrap=True)
    console.print(
        Text("\n" + table(TARGET_HEAD, target_lines(rows), left=(0, 3, 4))), soft_wrap=True
    )


def markdown(rows: Sequence[Row]) -> str:
    """Both tables for a page."""
    return "\n\n".join((_marked(TARGET_HEAD, target_lines(rows)), _marked(HEAD, lines(rows))))


def _marked(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    every = [head, ["---"] * len(head), *body]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in r) + " |" for r in every
    )


def merged(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """The cases of several runs in the order of the grid; of one that was run twice, the later."""
    by_case = {row["case"]: row for rows in runs for row in rows if row["case"] != CASE}
    quick = [name for name, row in by_case.items() if "--quick" in row["details"]["command"]]
    if quick:
        raise QueryMeshError(
            f"{', '.join(quick)}: run with --quick, whose ratios are no claims; run without it"
        )
    order = {cell.name: place for place, cell in enumerate(GRID)}
    return sorted(by_case.values(), key=lambda row: order.get(row["case"], len(order)))


def written_into(page: str, rows: Sequence[Row]) -> str:
    """A page with the tables between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise QueryMeshError(f"the page has no place for tables: it needs {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{markdown(rows)}\n\n{END}{after}"


def main(arguments: Sequence[str]) -> None:
    """Write the tables of some JSON files into a page."""
    if len(arguments) < 2:
        raise SystemExit("usage: python -m querymesh_lab.bench.guest.page PAGE.md FILE.json …")
    page, *files = map(Path, arguments)
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    text = written_into(page.read_text(encoding="utf-8"), merged(runs))
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
