"""Memory of a task: bounded by its Arrow batch, whatever the partition's length and the fan-out.

A fresh process sends a partition through the fabric as a Spark task does, batch after batch and
through a look-up with many matches a key, and reads its own high-water mark. Many times the batches
must not need more memory; nor must ten times the fan-out, since it is handed on in pieces.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.operators import MOST_ROWS
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.tables import make_tables
from querymesh.mesh.mesh import written_order
from querymesh.query.parse.query import query
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.finding import Finding

CASE = "memory"
BATCH_ROWS = 10_000
KEYS = 500
FAN_OUTS = (60, 80, 100)
"""The worst of three is taken: how full the last piece is depends on the fan-out."""


def run(bench: Bench) -> list[Finding]:
    """High-water marks of long partitions and of large fan-outs over those of small ones."""
    few, many = (4, 40) if bench.quick else (10, 200)
    base = peak_of(few, FAN_OUTS)
    longer = peak_of(many, FAN_OUTS)
    wider = peak_of(few, tuple(10 * fan_out for fan_out in FAN_OUTS))
    details = {
        "batch_rows": BATCH_ROWS,
        "batches": [few, many],
        "fan_outs": FAN_OUTS,
        "most_rows_at_a_time": MOST_ROWS,
        "peak_mb": {"base": base, "more batches": longer, "more fan-out": wider},
    }
    return [
        Finding(
            CASE, f"peak memory of a task, {many // few} times the batches",
            longer / base, "×", "at most", 1.1, details,
        ),
        Finding(
            CASE, "peak memory of a task, ten times the fan-out of a look-up",
            wider / base, "×", "at most", 1.25, details,
        ),
    ]  # fmt: skip


def peak_of(batches: int, fan_outs: tuple[int, ...]) -> float:
    """The highest mark, in MB above where it began, of a fresh process for each fan-out."""
    peaks = []
    for fan_out in fan_outs:
        code = f"from querymesh_lab.bench.filters.memory import child; child({batches}, {fan_out})"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(float(json.loads(done.stdout)["peak_mb"]))
    return max(peaks)


def child(batches: int, fan_out: int) -> None:
    """Print the peak memory of this process, started to run a look-up over so many batches."""
    table = pa.table(
        {
            "key": np.repeat(np.arange(KEYS), fan_out),
            "weight": np.arange(KEYS * fan_out, dtype=np.float64),
        }
    )
    asked = query(
        "SELECT s.id, s.x, t.weight FROM Source s, Known t "
        "WHERE s.key = t.key AND s.x > 0.1 AND t.weight >= 0"
    )
    rng = np.random.default_rng(0)
    schema = _batch(rng, 0).schema
    bound = asked.bind({"Source": schema, "Known": table.schema})
    names = tuple(operator.name for operator in bound.operators)
    router = MeshRouter(written_order(asked, names, bound.precedence))
    fabric = Fabric(bound, make_tables(bound, {"t": table}))
    list(fabric.run(_batch(rng, 0).slice(0, 10), router))
    _forget_peak()
    before = _status_mb("VmRSS")
    for number in range(batches):
        for _ in fabric.run(_batch(rng, number), router):
            pass
    print(json.dumps({"peak_mb": _status_mb("VmHWM") - before}))


def _batch(rng: np.random.Generator, number: int) -> pa.RecordBatch:
    ids = np.arange(number * BATCH_ROWS, (number + 1) * BATCH_ROWS)
    keys = rng.integers(0, KEYS, BATCH_ROWS)
    return pa.RecordBatch.from_pydict({"id": ids, "key": keys, "x": rng.random(BATCH_ROWS)})


def _forget_peak() -> None:
    """Linux keeps a high-water mark of its own, and sets it back when asked."""
    Path("/proc/self/clear_refs").write_text("5")


def _status_mb(field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found.group(1)) / 1024 if found else float("nan")
