"""`querymesh bench join --core`: microseconds of processor time a tuple, without Spark.

The join core is driven as a task drives it (`core_run`), over a grid that is fixed here: joins of
five and of ten streams, alike and skewed, in steps of 1,000, 10,000 and 100,000 tuples. Policies
run in turns on the same streams; the first runs twice, which is the control. Training is by the
stretch that the streams begin with, and in no time.

`--before FOLDER` runs the same grid on the sources of an earlier release, in a process of its own
(`core_worker.py`), case by case in turns with this one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from querymesh.options import check_name
from querymesh.report.text.figures import table
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.joins import core_worker
from querymesh_lab.bench.measure import Log

STEPS = (1_000, 10_000, 100_000)
ROUNDS = 3
BEFORE_POLICIES = ("single", "mesh")
"""What an earlier release is asked to run."""


@dataclass(frozen=True)
class CoreCell:
    """One cell of the grid."""

    case: str
    step_rows: int

    @property
    def name(self) -> str:
        """The cell in reports."""
        return f"{self.case}, steps of {self.step_rows:,}"


def cells(cases: list[str], quick: bool) -> list[CoreCell]:
    """The grid, or the part of it that is asked for."""
    for name in cases:
        check_name("case", name, tuple(core_worker.CASES))
    chosen = cases or [*core_worker.CASES]
    return [CoreCell(case, step) for case in chosen for step in (STEPS[:1] if quick else STEPS)]


def run_core_grid(
    quick: bool = False,
    cases: list[str] | None = None,
    log: Log = print,
    before: Path | None = None,
) -> list[dict[str, Any]]:
    """Run the grid; a row for each cell and policy."""
    rows: list[dict[str, Any]] = []
    command = "querymesh bench join --core" + (" --quick" if quick else "")
    with _earlier(before) as earlier:
        for cell in cells(cases or [], quick):
            job = {"case": cell.case, "step_rows": cell.step_rows, "quick": quick}
            found: dict[str, list[float]] = {}
            counts: dict[str, Any] = {}
            for _ in range(1 if quick else ROUNDS):
                _add(found, counts, core_worker.run_cell(job, core_worker.POLICIES), "")
                if earlier is not None:
                    _add(found, counts, earlier.ask(job), "before: ")
            rows += [finding.as_row(command) for finding in _findings(cell, found, counts)]
            log(_table(rows[-len(found) :]))
    return rows


def _add(
    found: dict[str, list[float]], counts: dict[str, Any], ran: dict[str, Any], prefix: str
) -> None:
    """Take in one round: microseconds a tuple by policy; all must have found as many results."""
    for name, each in ran.items():
        found.setdefault(prefix + name, []).append(each["us_a_tuple"])
        counts[prefix + name] = each
    results = {each["results"] for each in counts.values()}
    if len(results) > 1:
        raise RuntimeError(f"policies disagree on the number of results: {counts}")


def _findings(
    cell: CoreCell, found: dict[str, list[float]], counts: dict[str, Any]
) -> Iterator[Finding]:
    single = found["single"]
    for name, us in found.items():
        former = found.get(f"before: {name}")
        details = {
            "us_by_round": [round(each, 4) for each in us],
            "times_as_fast_as_single": _ratio(single, us),
            "times_as_fast_as_before": None if former is None else _ratio(former, us),
            "a_a": _ratio(single, found["single again"]),
            **{key: value for key, value in counts[name].items() if key != "us_a_tuple"},
        }
        yield Finding(cell.name, name, statistics.median(us), "µs/tuple", details=details)


def _ratio(of: list[float], over: list[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(of, over, strict=True)), 3)


class _Earlier:
    """An earlier release in a process of its own, which answers one job after the other."""

    def __init__(self, folder: Path) -> None:
        paths = [str(folder / "src"), str(folder / "lab" / "src")]
        worker = Path(core_worker.__file__)
        self._process = subprocess.Popen(
            [sys.executable, str(worker)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """What it measures for a job."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**job, "policies": BEFORE_POLICIES}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the earlier release ended without an answer: see its error above")
        return dict(json.loads(answer))

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


@contextmanager
def _earlier(folder: Path | None) -> Iterator[_Earlier | None]:
    """The earlier release while the grid runs; None if none is asked for."""
    if folder is None:
        yield None
        return
    running = _Earlier(folder)
    try:
        yield running
    finally:
        running.close()


def print_rows(rows: list[dict[str, Any]], console: Console | None = None) -> None:
    """The rows as a table for people."""
    (console or Console()).print(Text(_table(rows)), soft_wrap=True)


def _table(rows: list[dict[str, Any]]) -> str:
    head = ("case", "policy", "µs/tuple", "× single", "× before", "probes/tuple", "leaves", "A/A")
    lines = []
    for row in rows:
        details = row["details"]
        former = details["times_as_fast_as_before"]
        lines.append((
            row["case"],
            row["claim"],
            f"{row['value']:.3f}",
            f"{details['times_as_fast_as_single']:.2f}",
            "" if former is None else f"{former:.2f}",
            f"{details['probes_a_tuple']:.2f}",
            str(details["leaves"]),
            f"{details['a_a']:.2f}",
        ))  # fmt: skip
    return table(head, lines, left=(0, 1))
