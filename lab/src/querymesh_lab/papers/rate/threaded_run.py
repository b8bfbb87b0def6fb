"""A plan run for real, as RBO § 5.1 ran it: one thread for every operator, results timed.

Each join of the plan is a Spark query of its own, a stream-stream join that `join_tree` builds::

    A ──┐ queue          results
        ├───────► A ⋈ C ─────────┐ queue
    C ──┘                        ├───────► (A ⋈ C) ⋈ B ───► counted, with the time
    B ───────────────────────────┘

A single Spark query would be one tree, but within a micro-batch its joins come one after the other,
so that costs add up; the paper's operators work beside each other, each with a queue of its own.

The paper's per-row costs are made real by waiting, as on a processor for each operator: a row goes
into its join when an operator that handles one row after the other, in the order of arrival, would
be done with it. What Spark itself needs comes on top, as a delay. Rows come by a Poisson process,
as in the paper, and match by keys drawn from 1/selectivity values.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from querymesh.arrays import Floats
from querymesh.cost.plan_tree import (
    Aggregate,
    Join,
    PlanTree,
    Project,
    Select,
    Source,
    inputs_of,
)
from querymesh.optimize.rate.curves import Curve
from querymesh.optimize.rate.stream_query import RateQuery
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.query.parse.query import query as parsed
from querymesh.spark.joins.join_tree import join_tree
from querymesh_lab.papers.rate.poisson_rows import SIDE, TIME, DrawnPlan, PoissonRows

_POLL_S = 0.02
_MOST_ROWS = 200_000
"""In one micro-batch: results of joins go through the driver."""

_SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.adaptive.enabled": "false",
}


@dataclass
class MeasuredRun:
    """When there were how many results: seconds from the start, and totals."""

    times_s: list[float] = field(default_factory=lambda: [0.0])
    made: list[int] = field(default_factory=lambda: [0])
    ended: bool = False
    batches: int = 0

    def add(self, time_s: float, rows: int) -> None:
        """Note that so many more results came, all at once."""
        self.times_s.append(time_s)
        self.made.append(self.made[-1] + rows)

    def curve(self) -> Curve:
        """Results over time, in a straight line between two batches."""
        return Curve(np.array(self.times_s), np.array(self.made, float), self.ended)


@dataclass(frozen=True)
class StopRule:
    """When a run is over, if its streams do not end before."""

    seconds: float
    results: float = float("inf")


def run_plan(
    session: SparkSession, query: RateQuery, tree: PlanTree, until: StopRule, seed: int = 0
) -> MeasuredRun:
    """Run a plan until the rule says stop, and note when results come out."""
    own = session.newSession()
    for key, value in _SETTINGS.items():
        own.conf.set(key, value)
    plan = DrawnPlan(query, tree, until.seconds, seed)
    with TemporaryDirectory() as folder:
        return _Running(own, plan, until, Path(folder)).watched()


class _Running:
    """One run: its operators, from the last one down, and their clock."""

    def __init__(
        self, session: SparkSession, plan: DrawnPlan, until: StopRule, folder: Path
    ) -> None:
        self.session, self.plan, self.until, self.folder = session, plan, until, folder
        self.measured = MeasuredRun()
        self.stopped = threading.Event()
        self.failed: list[BaseException] = []
        self.started_s = 0.0
        self.operators: list[_Operator] = []
        self._operator(plan.tree, None)

    def _operator(self, tree: PlanTree, parent: _Operator | None) -> _Inlet:
        """The input that a subtree is to the operator above it."""
        if isinstance(tree, Source):
            return _Inlet(self.plan.rows_of(tree), ended=True)
        operator = _Operator(self, tree, parent, len(self.operators))
        self.operators.append(operator)
        operator.inlets = [self._operator(each, operator) for each in inputs_of(tree)]
        return operator.outlet

    def now_s(self) -> float:
        return perf_counter() - self.started_s

    def watched(self) -> MeasuredRun:
        try:
            for operator in self.operators:
                operator.open()
            self.started_s = perf_counter()
            threads = [threading.Thread(target=self._guarded, args=(o,)) for o in self.operators]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            for operator in self.operators:
                operator.close()
        if self.failed:
            raise self.failed[0]
        self.measured.ended = self.operators[0].outlet.ended
        self.measured.batches = sum(operator.batches for operator in self.operators)
        return self.measured

    def _guarded(self, operator: _Operator) -> None:
        try:
            operator.work()
        except BaseException as problem:  # raised again where the run was asked for
            self.failed.append(problem)
            self.stopped.set()

    def is_over(self) -> bool:
        if self.now_s() > self.until.seconds or self.measured.made[-1] >= self.until.results:
            self.stopped.set()
        return self.stopped.is_set()


class _Inlet:
    """What has come to an operator on one side and waits: rows in the order of their arrival."""

    def __init__(self, rows: PoissonRows, ended: bool = False) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self.ended = ended
        """Nothing will be put in any more."""

    def put(self, rows: PoissonRows) -> None:
        with self._lock:
            self._rows = PoissonRows.concat(self._rows, rows)

    def arrivals_s(self, now_s: float) -> Floats:
        """When each of the rows came that have come by now."""
        with self._lock:
            due = int(np.searchsorted(self._rows.arrivals_s, now_s, side="right"))
            return self._rows.arrivals_s[: min(due, _MOST_ROWS)]

    def take(self, count: int) -> pa.Table:
        with self._lock:
            taken, self._rows = self._rows.cut(count)
        return taken.table

    @property
    def is_empty(self) -> bool:
        with self._lock:
            return self.ended and self._rows.table.num_rows == 0


class _Operator:
    """A join or selection as a Spark query, fed by a file for each micro-batch."""

    def __init__(
        self, running: _Running, tree: PlanTree, parent: _Operator | None, number: int
    ) -> None:
        assert not isinstance(tree, Source)
        self.running, self.tree, self.parent = running, tree, parent
        self.inlets: list[_Inlet] = []
        self.outlet = _Inlet(running.plan.no_rows(tree))
        self.folder = running.folder / f"operator-{number}"
        self.batches = 0
        self._cost_s = tree.costs.row_s[0] if isinstance(tree, Join) else tree.cost_s
        self._busy_until_s = 0.0
        self._found: list[pa.Table] = []
        self._kept = threading.Event()
        self._count = 0
        self._query: StreamingQuery | None = None

    def open(self) -> None:
        """Start the query, and have it run a batch of nothing: the first one is slow."""
        (self.folder / "in").mkdir(parents=True)
        empty = pa.Table.from_batches([], self.running.plan.input_schema(self.tree))
        session = self.running.session
        schema = session.createDataFrame(empty).schema
        read = session.readStream.schema(schema).parquet(str(self.folder / "in"))
        self._query = (
            _processed(self.running.plan, self.tree, read)
            .writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(processingTime="0 seconds")
            .start()
        )
        self._run(empty)
        self.batches = 0

    def close(self) -> None:
        if self._query is not None:
            self._query.stop()

    def work(self) -> None:
        """Handle what comes until nothing more will come."""
        while not self.running.is_over():
            all_came = all(inlet.ended for inlet in self.inlets)
            batch = self._handled(self.running.now_s())
            if batch.num_rows:
                self._run(batch)
                self._release()
            elif all_came and all(inlet.is_empty for inlet in self.inlets):
                self.outlet.ended = True
                return
            else:
                sleep(_POLL_S)

    def _handled(self, now_s: float) -> pa.Table:
        """The rows that the operator would be done with by now, if a row takes what it costs."""
        waiting = [inlet.arrivals_s(now_s) for inlet in self.inlets]
        arrivals_s = np.concatenate(waiting)
        side = np.repeat(np.arange(len(waiting)), [len(each) for each in waiting])
        order = np.argsort(arrivals_s, kind="stable")
        done_s = done_at_s(arrivals_s[order], self._cost_s, self._busy_until_s)
        count = int(np.searchsorted(done_s, now_s, side="right"))
        if count:
            self._busy_until_s = float(done_s[count - 1])
        taken = np.bincount(side[order][:count], minlength=len(waiting))
        tables = [
            self.running.plan.as_input(inlet.take(int(rows)), at, self.tree)
            for at, (inlet, rows) in enumerate(zip(self.inlets, taken, strict=True))
        ]
        return pa.concat_tables(tables)

    def _run(self, batch: pa.Table) -> None:
        assert self._query is not None
        part = self.folder / "part"
        pq.write_table(batch, part)
        self._kept.clear()
        # Spark takes a file of the same name for the same file.
        part.rename(self.folder / "in" / f"{uuid4().hex}.parquet")
        # processAllAvailable() comes back too early if Spark looked for files just before.
        while not self._kept.wait(1.0):
            if not self._query.isActive:
                raise self._query.exception() or RuntimeError(f"{self.folder.name} has stopped")
        self.batches += 1

    def _keep(self, batch: DataFrame, _: int) -> None:
        if self.parent is None:
            self._count += batch.count()
        else:
            self._found.append(batch.toArrow())
        self._kept.set()

    def _release(self) -> None:
        now_s = self.running.now_s()
        if self.parent is None:
            self.running.measured.add(now_s, self._count)
            self._count = 0
            return
        for table in self._found:
            self.outlet.put(PoissonRows(np.full(table.num_rows, now_s), table))
        self._found.clear()


def done_at_s(arrivals_s: Floats, cost_s: float, busy_until_s: float) -> Floats:
    """When each row is done, one after the other: not before the last one, nor before it came.

    >>> done_at_s(np.array([0.0, 0.0, 5.0]), cost_s=2.0, busy_until_s=1.0)
    array([3., 5., 7.])
    """
    number = np.arange(len(arrivals_s))
    begins_s = np.maximum(arrivals_s, busy_until_s) - number * cost_s
    done_s: Floats = np.maximum.accumulate(begins_s) + (number + 1) * cost_s
    return done_s


def _processed(plan: DrawnPlan, tree: PlanTree, read: DataFrame) -> DataFrame:
    """The rows that an operator makes of its input."""
    match tree:
        case Join():
            join = two_way(plan, tree)
            sides = {"l": read.filter(f"{SIDE} = 0"), "r": read.filter(f"{SIDE} = 1")}
            return join_tree(join, sides, ("l", "r"), "365 days")
        case Select(name=name):
            return read.filter(f"`{name}` < {tree.passes}").select(*plan.schema(tree).names)
        case Project():
            return read.select(*plan.schema(tree).names)
        case Source() | Aggregate():
            raise AssertionError("no operator of RBO")


def two_way(plan: DrawnPlan, tree: Join) -> JoinQuery:
    """The join of one node as a query: what its sides are equal in, and what is read above it."""
    left, right = plan.columns(tree.left), plan.columns(tree.right)
    names = {name: f"{'l' if name in left else 'r'}.`{name}`" for name in plan.columns(tree)}
    asked = [f"l.{TIME}", *(f"{where} AS `{name}`" for name, where in names.items())]
    equal = [f"l.`{name}` = r.`{name}`" for name in left if name in right]
    sql = (
        f"SELECT {', '.join(asked)} FROM L l [RANGE 365 DAYS], R r [RANGE 365 DAYS] "
        f"WHERE {' AND '.join(equal)}"
    )
    schemas = dict.fromkeys("LR", plan.input_schema(tree))
    return bind_join(parsed(sql, time=TIME), schemas)
