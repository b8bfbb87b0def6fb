"""`querymesh bench guest`: the grid, and how it is run.

The question: does `df.transform(qm.where(...))` with its defaults ever take longer than
`df.filter(...)`, from the call to the end of the action? The grid is fixed here and every cell of
it is reported: measured, failed, or skipped because its data are not here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from querymesh.options import check_name
from querymesh.spark.session import local_session
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.guest import contest, first_task
from querymesh_lab.bench.guest.case import GuestCase
from querymesh_lab.bench.guest.cases import (
    durations,
    partitioned,
    predicate_eval,
    security,
    tpch,
)
from querymesh_lab.bench.guest.first_task import FirstTaskCase
from querymesh_lab.bench.guest.tables import AbsentError, Workshop
from querymesh_lab.bench.guest.verdicts import verdicts
from querymesh_lab.bench.measure import Log

Row = dict[str, Any]
Cell = GuestCase | FirstTaskCase

GRID: tuple[Cell, ...] = (
    *predicate_eval.CASES,
    *security.CASES,
    *tpch.CASES,
    *partitioned.CASES,
    *durations.CASES,
    *first_task.CASES,
)
"""Every case there is, in the order in which they run."""

GROUPS = tuple(dict.fromkeys(cell.group for cell in GRID))


def chosen(cases: list[str] | None, groups: list[str] | None) -> list[Cell]:
    """The cells of these names and these groups; with neither, all."""
    names = tuple(cell.name for cell in GRID)
    for name in cases or ():
        check_name("case", name, names)
    for name in groups or ():
        check_name("group", name, GROUPS)
    if not cases and not groups:
        return list(GRID)
    return [c for c in GRID if c.name in (cases or ()) or c.group in (groups or ())]


def run_guest(
    quick: bool = False,
    cases: list[str] | None = None,
    groups: list[str] | None = None,
    log: Log = print,
    save: Callable[[list[Row]], None] | None = None,
) -> list[Row]:
    """Run the cells one after the other, then say what they come to together.

    `save` is given all rows after each cell: the whole grid takes hours.
    """
    cells = chosen(cases, groups)
    bench = Bench(quick, log, partial(local_session, 2, "querymesh bench guest"))
    command = "querymesh bench guest" + (" --quick" if quick else "")
    rows: list[Row] = []
    began = perf_counter()
    with TemporaryDirectory(prefix="querymesh-guest-") as folder:
        workshop = Workshop(bench, Path(folder))
        for number, cell in enumerate(cells, start=1):
            if number > 1 and cell.group != cells[number - 2].group:
                workshop.forget()
            log(f"{cell.name} ({number} of {len(cells)}, {perf_counter() - began:.0f} s so far) …")
            rows.append(_reported(cell, workshop).as_row(command))
            log("  " + cell_text(rows[-1]))
            if save is not None:
                save([*rows, *(f.as_row(command) for f in verdicts(rows))])
    return [*rows, *(finding.as_row(command) for finding in verdicts(rows))]


def _reported(cell: Cell, workshop: Workshop) -> Finding:
    """A cell measured; what is absent or fails is a result too, and the others go on."""
    try:
        if isinstance(cell, FirstTaskCase):
            return first_task.run_case(cell, workshop)
        return contest.run_case(cell, workshop)
    except AbsentError as absent:
        return Finding(cell.name, "skipped", 0.0, "", details=_about(cell, skipped=str(absent)))
    except Exception as problem:
        text = f"{type(problem).__name__}: {str(problem).strip().splitlines()[0][:300]}"
        return Finding(
            cell.name, "failed", 0.0, "×", "at least",
            cell.target if isinstance(cell, GuestCase) else 0.0, _about(cell, failed=text),
        )  # fmt: skip


def _about(cell: Cell, **what: str) -> dict[str, Any]:
    kind = {"kind": cell.kind} if isinstance(cell, GuestCase) else {}
    return {"group": cell.group, **kind, **what}


def cell_text(row: Row) -> str:
    """One line about a cell, as it is done."""
    at = row["details"]
    for word in ("skipped", "failed"):
        if word in at:
            return f"{word}: {at[word]}"
    if "ratio_best" not in at:
        return f"{row['value']:.2f} {row['unit']}, A/A {at['a_a']:.2f}"
    return (
        f"{at['ratio_best']:.2f} × (as written {at['ratio_written']:.2f}), A/A {at['a_a']:.2f}, "
        f"engine {at['engine']}"
    )
