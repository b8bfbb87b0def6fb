"""How our join grows: with the window's length, and with the number of streams.

The join core in this process, driven as a task drives it (`core_run`): windows are filled, then
batches of one size arrive, each is stored, probes, and what expired is forgotten. All streams share
one key, and a probe finds half a match on average, so that work grows with probes and not with
results. Sizes are measured in turns, by processor time; counts and bytes no machine changes.

    a row as it arrives        id, ts, k, price: four numbers of 8 bytes, 32 bytes in Arrow
    in memory                  what `Stem.nbytes` says: columns, codes and indices
    as block files             what `write_block` writes, index offsets included
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.text import Text

from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.index.store.merging import FULL_PER_WINDOW
from querymesh.mesh.mesh import written_mesh
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.query.parse.query import query
from querymesh.report.text.figures import table
from querymesh.runtime.join_step import JoinSteps
from querymesh.runtime.state.block_layout import BlockLayout, patterns_of
from querymesh.runtime.state.files import write_block
from querymesh.storage import Storage
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.joins.bare_probe import BareProbe
from querymesh_lab.bench.joins.core_run import ignore
from querymesh_lab.bench.measure import Log

WINDOWS = (1_000, 10_000, 100_000, 1_000_000)
STREAMS = tuple(range(2, 11))
WINDOW_STREAMS = 3
STREAMS_WINDOW = 10_000
BATCHES = (1_000, 10_000, 100_000)
"""Rows of each stream that arrive at once. A vectorised probe has a price a batch and partition."""

MATCHES = 0.5
GAP_US = 1_000


@dataclass(frozen=True)
class GrowthSize:
    """What is varied: streams, rows of each in its window, rows of each in a batch."""

    streams: int
    window_rows: int
    batch_rows: int


@dataclass
class RoundCost:
    """What some batches cost: `seconds` are processor time, `results_s` that of probing alone."""

    rows: int
    probes: int
    comparisons: int
    seconds: float
    results_s: float


@dataclass
class GrowthPoint:
    """All that was measured at one size."""

    size: GrowthSize
    rounds: list[RoundCost] = field(default_factory=list)
    partitions: float = 0.0
    """Partitions of a stream, on average over the streams."""

    memory_bytes_a_row: float = 0.0
    file_bytes_a_row: float = 0.0
    raw_bytes_a_row: float = 0.0
    bare_ns_a_probe: float = 0.0
    """What looking takes, and nothing else (`bare_probe.py`)."""

    @property
    def ns_a_probe(self) -> float:
        """Processor time of probing, by probe: the median of the rounds."""
        return statistics.median(1e9 * each.results_s / each.probes for each in self.rounds)

    @property
    def rows_a_second(self) -> float:
        """Arrivals of all streams, by second of processor time, storing and forgetting included."""
        return statistics.median(each.rows / each.seconds for each in self.rounds)

    @property
    def comparisons_a_probe(self) -> float:
        """How many stored rows a probe looked at, on average."""
        return sum(e.comparisons for e in self.rounds) / sum(e.probes for e in self.rounds)

    def details(self) -> dict[str, Any]:
        """The point as it stands in a finding's details."""
        return {
            "streams": self.size.streams,
            "window_rows": self.size.window_rows,
            "batch_rows": self.size.batch_rows,
            "ns_a_probe": round(self.ns_a_probe, 1),
            "bare_ns_a_probe": round(self.bare_ns_a_probe, 1),
            "ns_a_probe_by_round": [round(1e9 * e.results_s / e.probes, 1) for e in self.rounds],
            "comparisons_a_probe": round(self.comparisons_a_probe, 4),
            "rows_a_cpu_second": round(self.rows_a_second),
            "partitions_a_stream": self.partitions,
            "memory_bytes_a_row": round(self.memory_bytes_a_row, 2),
            "file_bytes_a_row": round(self.file_bytes_a_row, 2),
            "raw_bytes_a_row": round(self.raw_bytes_a_row, 2),
        }


class GrowingJoin:
    """A join with full windows, fed batch by batch."""

    def __init__(self, size: GrowthSize, seed: int = 0) -> None:
        self.size = size
        self.join = join_of(size)
        self.fabric = JoinFabric(self.join)
        self.routers = {a: MeshRouter(written_mesh(v)) for a, v in self.join.views.items()}
        self.core = JoinSteps(self.fabric, self.routers)
        self._rng = np.random.default_rng(seed)
        self._now_us = 0
        # In parts as long as merged partitions become.
        part = max(size.window_rows // FULL_PER_WINDOW, 1)
        for _ in range(FULL_PER_WINDOW):
            self._store(part)

    def arriving(self, rows: int) -> dict[str, pa.RecordBatch]:
        """The next rows of every stream."""
        made = {alias: self._rows(rows) for alias in self.join.aliases}
        self._now_us += rows * GAP_US
        return made

    def _rows(self, rows: int) -> pa.RecordBatch:
        times = self._now_us + np.arange(rows) * GAP_US
        keys = self._rng.integers(0, max(round(self.size.window_rows / MATCHES), 1), rows)
        return pa.record_batch({
            "id": np.arange(rows),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": keys,
            "price": self._rng.random(rows),
        })  # fmt: skip

    def _store(self, rows: int) -> None:
        self.fabric.admit(self.core.arrivals(self.arriving(rows)), self.core.routers)
        for stem in self.fabric.streams.values():
            stem.settle()

    def round(self, batches: int) -> RoundCost:
        """Feed some batches more, and return what they cost."""
        whole = probing = 0.0
        before = self._counts()
        stored_at: list[float] = []
        for _ in range(batches):
            rows = self.arriving(self.size.batch_rows)
            started = process_time()
            arrivals = self.core.arrivals(rows)
            for batch in self.core.step(arrivals, lambda *_: stored_at.append(process_time())):
                ignore(batch)
            probed = process_time()
            self.core.forget(self._now_us)
            whole += process_time() - started
            probing += probed - stored_at[-1]
        counts = [after - had for after, had in zip(self._counts(), before, strict=True)]
        return RoundCost(counts[0], counts[1], counts[2], whole, probing)

    def _counts(self) -> tuple[int, int, int]:
        seen = [view.metrics for view in self.fabric.views.values()]
        return (
            sum(metrics.rows_in for metrics in seen),
            sum(metrics.evaluations for metrics in seen),
            sum(metrics.comparisons for metrics in seen),
        )

    def weigh(self, point: GrowthPoint) -> None:
        """Note what a stored row takes: in memory, as files, and as bare Arrow columns."""
        stems = self.fabric.streams
        rows = sum(stem.rows for stem in stems.values())
        raw = sum(p.rows.nbytes for stem in stems.values() for p in stem.partitions)
        point.partitions = sum(len(stem.partitions) for stem in stems.values()) / len(stems)
        point.memory_bytes_a_row = sum(stem.nbytes for stem in stems.values()) / rows
        point.raw_bytes_a_row = raw / rows
        point.file_bytes_a_row = sum(self._written()) / rows

    def _written(self) -> Iterator[int]:
        """Bytes of each partition as a block file."""
        routes = {a: list(router.mesh.leaf_routes) for a, router in self.routers.items()}
        patterns = patterns_of(self.join, routes)
        with TemporaryDirectory() as folder:
            storage = Storage(folder)
            for alias, stem in self.fabric.streams.items():
                layout = BlockLayout(self.join, alias)
                for partition in stem.partitions:
                    content = layout.content(partition.in_order_of(patterns[alias]))
                    yield write_block(storage, "one.block", *content).size_bytes


def join_of(size: GrowthSize) -> JoinQuery:
    """All streams on one key, within windows of so many rows of time."""
    aliases = [f"s{number}" for number in range(size.streams)]
    window_ms = size.window_rows * GAP_US // 1_000
    relations = ", ".join(f"{a.upper()} {a} [RANGE {window_ms} MILLISECONDS]" for a in aliases)
    keys = " AND ".join(f"s0.k = {alias}.k" for alias in aliases[1:])
    columns = ", ".join(f"{a}.id AS id_{a}, {a}.price AS price_{a}" for a in aliases)
    schema = pa.schema(
        {
            "id": pa.int64(),
            "ts": pa.timestamp("us", "UTC"),
            "k": pa.int64(),
            "price": pa.float64(),
        }
    )
    asked = query(f"SELECT {columns} FROM {relations} WHERE {keys}", time="ts")
    return bind_join(asked, {alias.upper(): schema for alias in aliases})


def measure(sizes: list[GrowthSize], rounds: int, batches: int, log: Log) -> list[GrowthPoint]:
    """All sizes in turns, so that whatever else the machine does hits them all alike."""
    points = [GrowthPoint(size) for size in sizes]
    growing = [GrowingJoin(size) for size in sizes]
    for one in growing:
        one.round(2)  # compiles, and indexes what is stored
    for number in range(rounds):
        turn = number % len(sizes)
        for place in [*range(turn, len(sizes)), *range(turn)]:
            points[place].rounds.append(growing[place].round(batches))
        log(f"  round {number + 1} of {rounds}")
    for point, one in zip(points, growing, strict=True):
        one.weigh(point)
        bare = BareProbe(point.size.window_rows, MATCHES)
        point.bare_ns_a_probe = bare.ns_a_probe(point.size.batch_rows, rounds)
    return points


def by_window(quick: bool, log: Log) -> list[GrowthPoint]:
    """Measure longer and longer windows of three streams, for each size of batch."""
    windows = WINDOWS[:2] if quick else WINDOWS
    found = []
    for batch in BATCHES[:1] if quick else BATCHES:
        sizes = [GrowthSize(WINDOW_STREAMS, window, batch) for window in windows if window >= batch]
        log(f"windows of {windows[0]:,} to {windows[-1]:,} rows, batches of {batch:,} …")
        found += measure(sizes, 2 if quick else 5, 2 if quick else 8, log)
    return found


def by_streams(quick: bool, log: Log) -> list[GrowthPoint]:
    """Measure more and more streams, with windows of one length."""
    streams, window = ((2, 4), 2_000) if quick else (STREAMS, STREAMS_WINDOW)
    log(f"{streams[0]} to {streams[-1]} streams, windows of {window:,} rows …")
    sizes = [GrowthSize(number, window, BATCHES[0]) for number in streams]
    return measure(sizes, 2 if quick else 5, 2 if quick else 8, log)


def findings(windows: list[GrowthPoint], streams: list[GrowthPoint]) -> list[Finding]:
    """One line a size, and how the ends of each series compare."""
    made = []
    for case, points in (("growth by window", windows), ("growth by streams", streams)):
        for point in points:
            size = point.size
            claim = (
                f"{size.streams} streams, windows of {size.window_rows:,} rows, batches of "
                f"{size.batch_rows:,}: time a probe"
            )
            made.append(Finding(case, claim, point.ns_a_probe, "ns", details=point.details()))
    for batch in sorted({point.size.batch_rows for point in windows}):
        first, *_, last = [point for point in windows if point.size.batch_rows == batch]
        claim = (
            f"time a probe, windows of {last.size.window_rows:,} rows over "
            f"{first.size.window_rows:,}, batches of {batch:,}"
        )
        bare = last.bare_ns_a_probe / first.bare_ns_a_probe
        ratio = last.ns_a_probe / first.ns_a_probe
        details = {"looking_alone": round(bare, 2)}
        made.append(Finding("growth by window", claim, ratio, "×", "at most", 1.5, details))
    return made


def run_growth(quick: bool, log: Log, plots: Path | None = None) -> list[dict[str, Any]]:
    """Measure both series; rows as `--json` writes them, and drawings where a folder is given."""
    windows, streams = by_window(quick, log), by_streams(quick, log)
    if plots is not None:
        from querymesh_lab.bench.joins.growth_plots import write_growth

        for path in write_growth(plots, windows, streams):
            log(f"plot written to {path}")
    command = "querymesh bench join --growth" + (" --quick" if quick else "")
    return [finding.as_row(command) for finding in findings(windows, streams)]


def print_rows(rows: list[dict[str, Any]], console: Console | None = None) -> None:
    """The rows as a table for people."""
    head = (
        "streams", "window, rows", "batch", "ns/probe", "looking alone", "comparisons/probe",
        "rows/cpu s", "partitions", "memory, B/row", "files, B/row", "raw, B/row",
    )  # fmt: skip
    lines, ratios = [], []
    for row in rows:
        at = row["details"]
        if "streams" not in at:
            bare = f"looking alone {at['looking_alone']:.2f}"
            ratios.append(f"{row['claim']}: {row['value']:.2f} {row['unit']} ({bare})")
            continue
        lines.append((
            str(at["streams"]), f"{at['window_rows']:,}", f"{at['batch_rows']:,}",
            f"{row['value']:,.0f}", f"{at['bare_ns_a_probe']:.1f}",
            f"{at['comparisons_a_probe']:.2f}",
            f"{at['rows_a_cpu_second']:,}", f"{at['partitions_a_stream']:.1f}",
            f"{at['memory_bytes_a_row']:.1f}", f"{at['file_bytes_a_row']:.1f}",
            f"{at['raw_bytes_a_row']:.1f}",
        ))  # fmt: skip
    text = "\n".join([table(head, lines), *ratios])
    (console or Console()).print(Text(text), soft_wrap=True)
