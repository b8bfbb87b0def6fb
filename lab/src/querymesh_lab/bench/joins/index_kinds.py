"""`bench join --indices`: each kind of index under the same meshes, and where they change places.

The join core in this process (`core_run`), by processor time: the routes are those of the trained
mesh for all kinds, so that probes are the same and only how they find their rows differs. Then one
state alone (`index_crossover`), over access patterns, window, match rate and requests a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import process_time
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from querymesh.fabric.join.indices import attributes_of
from querymesh.index.tune.indexing import INDEXES, Indexing
from querymesh.index.tune.tuner import Tuner
from querymesh.report.text.figures import table
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.joins.core_run import CoreRun, run_core
from querymesh_lab.bench.joins.index_crossover import crossover
from querymesh_lab.bench.measure import Log, Timing, interleave
from querymesh_lab.bench.policies.join_subjects import (
    DESIGNS,
    QUICK,
    QUICK_RATE,
    JoinSubject,
    of_design,
)
from querymesh_lab.bench.policies.race import Answer, answer_of, trained

ROWS = 60_000
STEP = 1000
HASH = "hash"
ROUNDS = 5
STABLE = ("5-way uniform", "clique uniform", "star uniform")
"""Designs whose requests stay as they are, and on which the time of maintenance is taken."""
STEPS = (1000, 4000, 10_000)
"""Arrivals of each stream in a step, as in a micro-batch of one shard."""


def run_indices(quick: bool, cases: list[str], log: Log) -> list[dict[str, Any]]:
    """Measure all kinds on each design, and one state over many loads."""
    command = "querymesh bench join --indices" + (" --quick" if quick else "")
    found = []
    for name in cases or list(DESIGNS):
        log(f"{name}: data, training …")
        rows, more = (QUICK, QUICK_RATE) if quick else (ROWS, {})
        subject = of_design(name, rows, **DESIGNS[name], **more)
        found += _contest(subject, quick, log)
        if name in STABLE:
            found += [_maintenance(subject, step, quick) for step in ((100,) if quick else STEPS)]
    if not cases:
        log("one state: access patterns, window, match rate, requests a row …")
        found += crossover(quick, log)
    return [finding.as_row(command) for finding in found]


def _contest(subject: JoinSubject, quick: bool, log: Log) -> list[Finding]:
    makers = {alias: trained()(view) for alias, view in subject.views().items()}
    last: dict[str, CoreRun] = {}

    def contender(kind: str) -> Callable[[], Answer]:
        def action() -> Answer:
            tuner = Tuner(kind, attributes_of(subject.join), Indexing())
            out: list[pa.RecordBatch] = []
            last[kind] = run_core(
                subject.join,
                subject.streams,
                lambda _: {alias: make() for alias, make in makers.items()},
                STEP * len(makers),
                out.append,
                tuner,
            )
            return answer_of(out)

        return action

    log("  warm-up and rounds")
    timing = interleave(
        {kind: contender(kind) for kind in INDEXES},
        2 if quick else ROUNDS,
        control=HASH,
        clock=process_time,
    )
    return [_finding(subject.name, kind, timing, last) for kind in INDEXES]


def _maintenance(subject: JoinSubject, step: int, quick: bool) -> Finding:
    """Which share of its time amri takes for counting, choosing and laying out."""
    makers = {alias: trained()(view) for alias, view in subject.views().items()}
    runs = []
    for _ in range(1 if quick else 3):
        tuner = Tuner("amri", attributes_of(subject.join), Indexing())
        run = run_core(
            subject.join,
            subject.streams,
            lambda _: {alias: make() for alias, make in makers.items()},
            step * len(makers),
            tuner=tuner,
        )
        runs.append(run)
    best = min(runs, key=lambda run: run.cpu_seconds)
    tuning, laying_out = (
        100 * seconds / best.cpu_seconds for seconds in (best.tuning_seconds, best.index_seconds)
    )
    details = {"step": step, "tuning_percent": tuning, "laying_out_percent": laying_out}
    claim = f"amri, steps of {step:,}: index maintenance, of the time"
    return Finding(subject.name, claim, tuning + laying_out, "%", "at most", 5.0, details)


def _finding(case: str, kind: str, timing: Timing, last: Mapping[str, CoreRun]) -> Finding:
    run = last[kind]
    details = {
        **timing_details(timing),
        "index": kind,
        "rows_a_cpu_second": round(run.metrics.rows_in / timing.median_seconds()[kind]),
        "comparisons_a_probe": round(run.metrics.comparisons / max(run.probes, 1), 3),
        "results": run.metrics.rows_out,
        "state_bytes": run.state_bytes,
        "index_bytes": run.index_bytes,
        "state_rows": run.state_rows,
        "changes": len(run.changes),
        "tuning_percent": round(100 * run.tuning_seconds / run.cpu_seconds, 3),
        "laying_out_percent": round(100 * run.index_seconds / run.cpu_seconds, 3),
    }
    claim = f"throughput of index={kind} over hash"
    return Finding(case, claim, timing.ratio(HASH, kind), "×", details=details, timed=True)


def print_rows(rows: list[dict[str, Any]], console: Console | None = None) -> None:
    """The rows as tables for people."""
    (console or Console()).print(Text(as_text(rows)), soft_wrap=True)


def as_text(rows: list[dict[str, Any]]) -> str:
    """The tables as text: kinds of index, maintenance, and one state alone."""
    kinds = [row for row in rows if "index" in row["details"]]
    lines = []
    for row in kinds:
        at = row["details"]
        lines.append((
            row["case"], at["index"], f"{at['rows_a_cpu_second']:,}", f"{row['value']:.2f}",
            f"{at['a_a']:.2f}", f"{at['comparisons_a_probe']:,.2f}",
            f"{at['state_bytes'] / 1e6:.1f}", f"{at['index_bytes'] / max(at['state_rows'], 1):.1f}",
            f"{at['changes']}", f"{at['tuning_percent']:.2f}", f"{at['laying_out_percent']:.1f}",
        ))  # fmt: skip
    head = (
        "case", "index", "rows/cpu s", "× hash", "A/A", "comparisons/probe", "state, MB",
        "index, B/row", "changes", "tuning, %", "laying out, %",
    )  # fmt: skip
    parts = [table(head, lines, left=(0, 1))] if lines else []
    if kept := [row for row in rows if "step" in row["details"]]:
        parts.append(_maintenance_text(kept))
    states = [row for row in rows if "patterns" in row["details"]]
    if states:
        head = (
            "patterns", "window", "matches", "requests/row", "hash, ns", "bits, ns", "bits/hash",
            "hash, B/row", "bits, B/row", "auto", "auto/best",
        )  # fmt: skip
        lines = []
        for row in states:
            at = row["details"]
            lines.append((
                str(at["patterns"]), f"{at['window']:,}", f"{at['matches']:g}",
                f"{at['requests_a_row']:g}", f"{at['hash_ns']:,.0f}", f"{at['bits_ns']:,.0f}",
                f"{row['value']:.2f}", f"{at['hash_bytes_a_row']:.1f}",
                f"{at['bits_bytes_a_row']:.1f}", at["auto"], f"{at['auto_over_best']:.2f}",
            ))  # fmt: skip
        parts.append(table(head, lines))
    return "\n\n".join(parts)


def _maintenance_text(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        at = row["details"]
        shares = (at["tuning_percent"], at["laying_out_percent"], row["value"])
        lines.append((row["case"], f"{at['step']:,}", *(f"{share:.1f}" for share in shares)))
    head = ("amri on", "tuples a step", "tuning, %", "laying out, %", "maintenance, %")
    return table(head, lines, left=(0,))
