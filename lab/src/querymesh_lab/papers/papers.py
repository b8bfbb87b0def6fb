"""`querymesh reproduce`: which papers are there, running them, and the table of what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from querymesh.errors import QueryMeshError, SetupError
from querymesh.options import check_name
from querymesh.spark.session import local_session
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import Log
from querymesh_lab.drawing import write
from querymesh_lab.papers.amri import amri
from querymesh_lab.papers.cbr import cbr
from querymesh_lab.papers.om import om
from querymesh_lab.papers.qm import qm
from querymesh_lab.papers.rate import rate
from querymesh_lab.papers.reproduced import Figures, Reproduced

PAPERS: Mapping[str, Figures] = {
    "qm": qm.FIGURES,
    "cbr": cbr.FIGURES,
    "amri": amri.FIGURES,
    "om": om.FIGURES,
    "rate": rate.FIGURES,
}
"""The figures of each paper, by the name of its system."""

ALL = "all"
COLOURS = {"exceeds": "green", "direction": "yellow", "contradicts": "red", "not yet": "dim"}


def reproduce(
    paper: str, quick: bool, plots: Path | None, log: Log, figures: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Run one paper's experiments, or those of all papers; one row a claim.

    With `figures` only these of them.
    """
    check_name("paper", paper, (*PAPERS, ALL))
    chosen = {name: of_paper for name, of_paper in PAPERS.items() if paper in (name, ALL)}
    for figure in figures:
        check_name("figure", figure, [known for of_paper in chosen.values() for known in of_paper])
    bench = Bench(quick, log, partial(local_session, 2, "querymesh reproduce"))
    rows = []
    for name, of_paper in chosen.items():
        command = f"querymesh reproduce {name}" + (" --quick" if quick else "")
        found = Reproduced()
        for figure, run in of_paper.items():
            if not figures or figure in figures:
                log(f"{name} figure {figure} …")
                found.add(run(bench))
        rows += [result.as_row(command) for result in found.results]
        if plots is not None:
            _draw(name, found, plots, log)
    return rows


def _draw(paper: str, found: Reproduced, folder: Path, log: Log) -> None:
    try:
        for drawing in found.drawings:
            for path in write(folder, drawing(), paper):
                log(f"plot written to {path}")
    except SetupError as missing:
        log(f"no plots: {missing}")
    except OSError as problem:
        raise QueryMeshError(f"cannot write to {folder}: {problem.strerror}") from problem


def print_rows(rows: list[dict[str, Any]], console: Console) -> None:
    """The rows as a table for people."""
    table = Table(title="querymesh reproduce", title_justify="left")
    table.add_column("figure")
    table.add_column("claim", overflow="fold")
    for name in ("paper", "ours", "A/A"):
        table.add_column(name, justify="right")
    table.add_column("verdict", overflow="fold")
    for row in rows:
        colour = COLOURS[row["verdict"]]
        bound = {"project": " (ours)"}.get(row["whose"], "")
        table.add_row(
            f"{row['paper']} {row['figure']}",
            row["claim"],
            "–" if row["paper_value"] is None else f"{row['paper_value']:g} {row['unit']}{bound}",
            "–" if row["our_value"] is None else f"{_shown(row['our_value'])} {row['unit']}",
            "" if row["a_a"] is None else f"{row['a_a']:.2f}",
            f"[{colour}]{row['verdict']}[/]{', noisy' if row['noisy'] else ''}",
        )
    console.print(table)
    for note, claims in _noted(rows).items():
        console.print(Text(f"{'; '.join(claims)}: {note}"), soft_wrap=True)


def _shown(value: float) -> str:
    """Three digits; five from a hundred on, where three would leave no place behind the point."""
    return f"{value:.5g}" if abs(value) >= 100 else f"{value:.3g}"


def _noted(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The notes, each with the claims it belongs to."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["note"]:
            found.setdefault(row["note"], []).append(f"{row['figure']} {row['claim']}")
    return found
