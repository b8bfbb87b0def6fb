"""QM Figures 11a and 11b: the results produced over time, in a real Structured Streaming run.

The source always has more tuples than the query can take, as the paper's full queues had, so what
has come out by a time is what the rival could do. The paper's 60 minutes become 30 seconds in all
for each rival, in turns with the others, each turn a stream of its own; the clock of a turn starts
when its first batch is done, since before that Spark is planning.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from time import monotonic

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from querymesh.errors import QueryMeshError
from querymesh.fabric.routers.routing import Routing
from querymesh.mesh.mesh import Mesh
from querymesh.policies.cbr import Cbr
from querymesh.policies.mesh import Mesh as MeshPolicy
from querymesh.runtime.run import Run
from querymesh.spark.context import parallelism
from querymesh.spark.remembered import inspect
from querymesh.spark.run import run
from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.qm.rivals import QM, SP, LookUpSubject, arrow_batches, train_rivals
from querymesh_lab.papers.qm.windows.stream_rivals import EDDIES

AGAIN = "QM again"
POLL_SECONDS = 0.2
MOST_SECONDS = 240.0
"""A turn that is not over by then never will be."""

ROWS_PER_BATCH = 200_000
QUICK_ROWS_PER_BATCH = 50_000
"""Large, because a micro-batch has a fixed price, whoever works in it."""

PAPER_SECONDS = 3600.0

Curve = list[tuple[float, int]]
"""Pairs of (seconds, results so far)."""


@dataclass
class OverTime:
    """One query's curves by rival, the turns put end to end."""

    seconds: float
    curves: dict[str, Curve] = field(default_factory=dict)
    rates: dict[str, list[float]] = field(default_factory=dict)
    fabric_rates: dict[str, list[float]] = field(default_factory=dict)
    """Results a second of the fabric's own time, as in Figure 10."""

    @property
    def scale(self) -> float:
        """How much faster than the paper's hour the clock runs."""
        return PAPER_SECONDS / self.seconds


def watch(bench: Bench, subject: LookUpSubject, meshes: Mapping[str, Mesh], what: str) -> OverTime:
    """Each rival in turns: QM, SP, MR, MR in batches, QM again; then from the next on."""
    turns = bench.rounds(3, 1)
    seconds = 2.0 if bench.quick else 10.0
    seen = OverTime(turns * seconds)
    entries: dict[str, Mesh | Routing] = {
        QM: meshes[QM], SP: meshes[SP], **EDDIES, AGAIN: meshes[QM]
    }  # fmt: skip
    names = list(entries)
    pool = bench.session.createDataFrame(subject.table).cache()
    pool.count()
    with arrow_batches(bench.session):
        for turn in range(turns):
            for name in names[turn:] + names[:turn]:
                source = _endless(bench, subject, pool)
                meter = _stream(subject, entries[name], source, seconds)
                curve = meter.curve
                passed, results = curve[-1]
                _append(seen.curves.setdefault(name, [(0.0, 0)]), curve)
                seen.rates.setdefault(name, []).append(results / passed)
                seen.fabric_rates.setdefault(name, []).append(results / meter.fabric_seconds)
                bench.log(f"  {what}, {name}: {results:,} results in {passed:.1f} s")
    pool.unpersist()
    return seen


def _append(whole: Curve, part: Curve) -> None:
    seconds, results = whole[-1]
    whole.extend((seconds + at, results + count) for at, count in part)


def _endless(bench: Bench, subject: LookUpSubject, pool: DataFrame) -> DataFrame:
    """The tuples of the pool over and over, in a fixed order, as fast as they are taken."""
    session = bench.session
    numbers = (
        session.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", bench.rows(ROWS_PER_BATCH, QUICK_ROWS_PER_BATCH))
        .option("numPartitions", parallelism(session))
        .load()
    )
    chosen = (F.col("value") * 7919 % subject.table.num_rows).alias("id")
    tuples = numbers.select(chosen).join(F.broadcast(pool), "id")
    return tuples.select(*subject.table.column_names)


def _stream(
    subject: LookUpSubject, entry: Mesh | Routing, source: DataFrame, seconds: float
) -> _Meter:
    """One turn of a rival: on a mesh, or as the Eddy with content-based routing."""
    inputs = {subject.source: source, **subject.partners}
    if isinstance(entry, Routing):
        found = run(subject.query, inputs, policy=Cbr(routing=entry))
    else:
        still = MeshPolicy(adapt=False)  # SP that learns is SP no more
        found = run(entry, inputs, engine="fabric", policy=still)
    meter = _Meter(inspect(found), seconds)
    with tempfile.TemporaryDirectory(prefix="querymesh-reproduce-") as checkpoint:
        running = (
            found.writeStream.foreachBatch(meter.batch)
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime="0 seconds")
            .start()
        )
        try:
            patience = monotonic() + MOST_SECONDS
            while not meter.over.wait(POLL_SECONDS):
                problem = running.exception()
                if problem is not None or monotonic() > patience:
                    raise QueryMeshError(f"the stream stopped: {problem or 'it made no batch'}")
        finally:
            running.stop()
    return meter


class _Meter:
    """The sink: computes each batch, notes when it was done, and lets the rest pass by at the end.

    So the stream can be stopped while no task runs: one would be killed, and say so at length.
    """

    def __init__(self, live: Run, seconds: float) -> None:
        self.curve: Curve = []
        self.over = Event()
        self.fabric_seconds = 0.0
        self._live = live
        self._seconds = seconds
        self._started = 0.0
        self._before = 0
        self._fabric_before = 0.0

    def batch(self, rows: DataFrame, _: int) -> None:
        """Take in the counts of one micro-batch."""
        if self.over.is_set():
            return
        rows.write.format("noop").mode("overwrite").save()
        done = self._live.counts
        now, results = monotonic(), done.rows_out
        if not self._started:
            self._started, self._before = now, results
            self._fabric_before = done.total_seconds
            return
        self.fabric_seconds = done.total_seconds - self._fabric_before
        self.curve.append((now - self._started, results - self._before))
        if self.curve[-1][0] >= self._seconds:
            self.over.set()


def results(figure: str, data: str, seen: OverTime) -> list[Result]:
    """The figure's claim, inside the fabric and for the whole of Spark; the paper draws the curves
    and prints no number."""
    scaled = f"{seen.seconds:g} s stand for the paper's 60 minutes (1 : {seen.scale:g})"
    rows = []
    for rival in (SP, *EDDIES):
        claim = f"{data}: results by the end, QM over {rival}"
        for where, rates, note in (
            ("", seen.fabric_rates, "inside the fabric"),
            (", whole Spark", seen.rates, "with Spark's own work, in whole micro-batches"),
        ):
            details = {
                "time_scale": seen.scale,
                "seconds": seen.seconds,
                "results_per_second": rates,
            }
            ours, control = ratio(rates, QM, rival), ratio(rates, AGAIN, QM)
            asked = Claim("qm", figure, f"{claim}{where}", None)
            rows.append(Result(asked, ours, control, f"{note}; {scaled}", details))
    return rows


def ratio(rates: Mapping[str, list[float]], of: str, over: str) -> float:
    """The median over the turns of one rival's results a second over another's."""
    pairs = zip(rates[of], rates[over], strict=True)
    return statistics.median(_quotient(a, b) for a, b in pairs)


def _quotient(a: float, b: float) -> float:
    """One by another, endless where only the other is none."""
    if b:
        return a / b
    return math.inf if a else math.nan


def ready(subject: LookUpSubject, rows: int) -> dict[str, Mesh]:
    """The rivals, trained before the stream starts, as the paper's optimizer is at compile time."""
    return train_rivals(subject, subject.profile(rows))
