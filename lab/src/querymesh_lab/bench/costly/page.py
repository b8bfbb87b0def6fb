"""The result of `bench costly` as tables: for the terminal, and for the documentation.

`python -m querymesh_lab.bench.costly.page docs/lab/costly.md FILE.json …` writes the tables of one
or more runs into the page, between its two marks; of a cell that was run twice, the later counts.
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
from querymesh_lab.bench.costly.costly_bench import GRID
from querymesh_lab.bench.costly.rivals import PLAIN, SHARED, WHERE

BEGIN, END = "<!-- the tables of bench costly -->", "<!-- until here -->"
Row = dict[str, Any]

HEAD = ("cell", "claim", "asked", "measured", "A/A", "verdict")
RIVALS = (*PLAIN, WHERE, SHARED)
CALLS_HEAD = ("cell", "rows", "distinct", *(f"{name}: s / calls" for name in RIVALS))


def lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """A line for each finding."""
    return [_line(row) for row in rows]


def _line(row: Row) -> tuple[str, ...]:
    control = row["details"].get("a_a")
    told = "" if control is None else f"{control:.2f}"
    return (
        row["case"], row["claim"], row["target"], f"{row['value']:,.4g} {row['unit']}".strip(),
        told, _verdict(row),
    )  # fmt: skip


def _verdict(row: Row) -> str:
    if "skipped" in row["details"]:
        return "skipped"
    if row["target"] == "-":
        return ""
    if row["details"]["noisy"]:
        return "undecided"
    return "met" if row["met"] else "not met"


def calls_lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """A line for each cell in which all rivals ran: their seconds and their calls."""
    found = []
    for row in rows:
        at = row["details"]
        if "calls" not in at or "median_seconds" not in at:
            continue
        told = [f"{at['median_seconds'][name]:.2f} / {at['calls'][name]:,.0f}" for name in RIVALS]
        found.append((row["case"], f"{at['rows']:,}", f"{at['distinct']:,}", *told))
    return found


def print_rows(rows: Sequence[Row], console: Console) -> None:
    """Both tables for people at a terminal."""
    console.print(Text(table(HEAD, lines(rows), left=(0, 1, 5))), soft_wrap=True)
    if calls := calls_lines(rows):
        console.print(Text("\n" + table(CALLS_HEAD, calls, left=(0,))), soft_wrap=True)


def markdown(rows: Sequence[Row]) -> str:
    """Both tables for a page."""
    return "\n\n".join((_marked(HEAD, lines(rows)), _marked(CALLS_HEAD, calls_lines(rows))))


def _marked(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    every = [head, ["---"] * len(head), *body]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in r) + " |" for r in every
    )


def merged(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """The findings of several runs in the order of the grid."""
    by_case: dict[str, list[Row]] = {}
    for rows in runs:
        of_run: dict[str, list[Row]] = {}
        for row in rows:
            of_run.setdefault(row["case"], []).append(row)
        by_case |= of_run
    found = [row for each in by_case.values() for row in each]
    quick = sorted({row["case"] for row in found if "--quick" in row["details"]["command"]})
    if quick:
        raise QueryMeshError(
            f"{', '.join(quick)}: run with --quick, whose ratios are no claims; run without it"
        )
    order = {cell.name: place for place, cell in enumerate(GRID)}
    return sorted(found, key=lambda row: order.get(row["case"], len(order)))


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
        raise SystemExit("usage: python -m querymesh_lab.bench.costly.page PAGE.md FILE.json …")
    page, *files = map(Path, arguments)
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    text = written_into(page.read_text(encoding="utf-8"), merged(runs))
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
