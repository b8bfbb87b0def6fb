"""`querymesh bench where`: what filters and look-ups gain from a mesh, and what it costs them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

from querymesh.options import check_name
from querymesh.spark.session import local_session
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.filters import (
    correlated,
    memory,
    python_predicates,
    real_data,
    sql_regex,
    training,
    uniform,
)
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.measure import Log

CASES: dict[str, Callable[[Bench], list[Finding]]] = {
    python_predicates.CASE: python_predicates.run,
    sql_regex.CASE: sql_regex.run,
    correlated.CASE: correlated.run,
    uniform.CASE: uniform.run,
    real_data.CASE: real_data.run,
    training.CASE: training.run,
    memory.CASE: memory.run,
}
"""The cases in the order they run. A new case is one file and one line."""


def run_where(
    quick: bool = False, cases: list[str] | None = None, log: Log = print
) -> list[dict[str, Any]]:
    """Run the cases one after the other; each row says claim, target, value and how it was had."""
    chosen = cases or list(CASES)
    for name in chosen:
        check_name("case", name, tuple(CASES))
    bench = Bench(quick, log, partial(local_session, 2, "querymesh bench where"))
    command = "querymesh bench where" + (" --quick" if quick else "")
    rows = []
    for name in chosen:
        log(f"{name} …")
        started = perf_counter()
        rows += [finding.as_row(command) for finding in CASES[name](bench)]
        log(f"{name}: {perf_counter() - started:.0f} s")
    return rows


def print_rows(
    rows: list[dict[str, Any]],
    console: Console | None = None,
    title: str = "querymesh bench where",
) -> None:
    """The rows as a table for people."""
    table = Table(title=title, title_justify="left")
    table.add_column("case")
    table.add_column("claim", overflow="fold")
    table.add_column("target", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("A/A", justify="right")
    table.add_column("")
    for row in rows:
        control = row["details"].get("a_a")
        if row["target"] == "-":
            verdict = ""
        else:
            verdict = "[green]met[/]" if row["met"] else "[red]not met[/]"
            verdict += ", but noisy" if row["details"]["noisy"] else ""
        table.add_row(
            row["case"],
            row["claim"],
            row["target"],
            f"{row['value']:.3f} {row['unit']}",
            f"{control:.3f}" if control is not None else "",
            verdict,
        )
    (console or Console()).print(table)
