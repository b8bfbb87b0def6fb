"""`querymesh bench classify`: what a mesh keeps, who tells its kinds, and how often."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from querymesh.errors import OptionError
from querymesh.report.text.figures import table
from querymesh_lab.bench.classify import folding, following, foretelling, kinds_by_sums
from querymesh_lab.bench.measure import Log

Rows = list[dict[str, Any]]

CASES: dict[str, Callable[[bool], Iterator[dict[str, Any]]]] = {
    folding.CASE: folding.run,
    kinds_by_sums.CASE: kinds_by_sums.run,
    following.CASE: following.run,
    foretelling.CASE: foretelling.run,
}


def run_classify(quick: bool, cases: Sequence[str] | None, log: Log) -> Rows:
    """The rows of these cases, or of all: counts, and processor time."""
    unknown = sorted(set(cases or ()) - set(CASES))
    if unknown:
        raise OptionError(f"bench classify has no case {unknown[0]!r}: choose {', '.join(CASES)}")
    rows = []
    for name, run in CASES.items():
        if cases and name not in cases:
            continue
        log(f"{name} ...")
        rows += list(run(quick))
    return rows


def print_rows(rows: Rows, console: Console) -> None:
    """A table for each case."""
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        head = (case, *own[0]["details"])
        lines = [
            (row["claim"], *(_figure(value) for value in row["details"].values())) for row in own
        ]
        console.print(Text(table(head, lines, left=(0,)) + "\n"), soft_wrap=True)


def _figure(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return "any" if value == float("inf") else f"{value:.3f}"
