"""`querymesh reproduce`: which papers are there, running them, and the table of what came out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

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


def read_rows(
    paper: str, files: Sequence[Path], figures: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The rows that earlier runs wrote, of one paper or of all, in the order of the files.

    With `figures` only rows of these. A claim that several files have is taken from the last.
    """
    check_name("paper", paper, (*PAPERS, ALL))
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for file in files:
        try:
            rows = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise QueryMeshError(f"cannot read rows from {file}: {problem}") from problem
        for row in rows:
            if paper in (row["paper"], ALL) and (not figures or row["figure"] in figures):
                found[row["paper"], row["figure"], row["claim"]] = row
    return list(found.values())


def _draw(paper: str, found: Reproduced, folder: Path, log: Log) -> None:
    try:
        for drawing in found.drawings:
            for path in write(folder, drawing(), paper):
                log(f"plot written to {path}")
    except SetupError as missing:
        log(f"no plots: {missing}")
    except OSError as problem:
        raise QueryMeshError(f"cannot write to {folder}: {problem.strerror}") from problem
