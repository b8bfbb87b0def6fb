"""`querymesh bench costly`: the grid, and how it is run.

The question: how often, how long and how dearly is a costly function asked, against what anybody
must ask, and against what plain Spark and an expert with Spark make of it? The grid is fixed here
and every cell is reported: measured, failed, or skipped because what it needs is not here.
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
from querymesh_lab.bench.costly.cell import TASKS, Cell, Ground
from querymesh_lab.bench.costly.cells import (
    calls,
    failures,
    few_texts,
    local_models,
    memory,
    orders,
    proxies,
)
from querymesh_lab.bench.costly.endpoint import Endpoint
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.guest.tables import AbsentError, Workshop
from querymesh_lab.bench.measure import Log

Row = dict[str, Any]

GRID: tuple[Cell, ...] = (
    *memory.CASES,
    *few_texts.CASES,
    *calls.CASES,
    *orders.CASES,
    *proxies.CASES,
    *failures.CASES,
    *local_models.CASES,
)
"""Every cell, in the order in which they run: workers keep their highest mark, so memory first."""

GROUPS = tuple(dict.fromkeys(cell.group for cell in GRID))

QUICK_CELLS = (
    "four texts", "agents 10 ms", "three questions", "in flight, threads", "sentiment",
)  # fmt: skip
"""With `--quick` and nothing else said, these: one of each kind that is quick to do."""

RETRYING = f"local[{TASKS},4]"
"""A session on this machine gives up at the first task that fails; clusters try four times."""


def chosen(quick: bool, cases: list[str] | None, groups: list[str] | None) -> list[Cell]:
    """The cells of these names and these groups; with neither, all, or the quick ones."""
    for name in cases or ():
        check_name("case", name, tuple(cell.name for cell in GRID))
    for name in groups or ():
        check_name("group", name, GROUPS)
    if not cases and not groups:
        return [cell for cell in GRID if not quick or cell.name in QUICK_CELLS]
    return [c for c in GRID if c.name in (cases or ()) or c.group in (groups or ())]


def run_costly(
    quick: bool = False,
    cases: list[str] | None = None,
    groups: list[str] | None = None,
    log: Log = print,
    save: Callable[[list[Row]], None] | None = None,
) -> list[Row]:
    """Run the cells one after the other; `save` is given all rows after each."""
    cells = chosen(quick, cases, groups)
    conf = {"spark.master": RETRYING, "spark.log.level": "FATAL"}  # killed workers are no news
    bench = Bench(quick, log, partial(local_session, TASKS, "querymesh bench costly", conf=conf))
    command = "querymesh bench costly" + (" --quick" if quick else "")
    rows: list[Row] = []
    began = perf_counter()
    with TemporaryDirectory(prefix="querymesh-costly-") as folder, Endpoint() as endpoint:
        ground = Ground(Workshop(bench, Path(folder)), endpoint, Path(folder))
        for number, cell in enumerate(cells, start=1):
            log(f"{cell.name} ({number} of {len(cells)}, {perf_counter() - began:.0f} s so far) …")
            for finding in _reported(cell, ground):
                rows.append(finding.as_row(command))
                log(f"  {finding.claim}: {finding.value:.3g} {finding.unit} ({finding.target})")
            if save is not None:
                save(rows)
    return rows


def _reported(cell: Cell, ground: Ground) -> list[Finding]:
    """A cell measured; what is absent or fails is a result too, and the others go on."""
    try:
        return cell.run(ground)
    except AbsentError as absent:
        details = {"group": cell.group, "skipped": str(absent)}
        return [Finding(cell.name, f"skipped: {absent}", 0.0, "", details=details)]
    except Exception as problem:
        text = f"{type(problem).__name__}: {(str(problem).strip() or '?').splitlines()[0][:300]}"
        details = {"group": cell.group, "failed": text}
        return [Finding(cell.name, f"failed: {text}", 0.0, "cells", "at least", 1.0, details)]
