"""What conditions cost in Catalyst, timed there: Java's regular expressions are not Arrow's.

No job runs. Spark compiles a condition to a function over rows, as it does for a task, and the
sample's rows are in the driver's JVM: one call applies the function to all of them, and the thread
that does it has a clock of its own, so that other work on the machine weighs little.

    rows.foreach(compiled condition)    minus    rows.foreach(compiled TRUE)

Conditions take turns, on more rows each time, until no time gets shorter; the shortest counts. The
first turns belong to Java's compiler: in a session that has just begun, a budget may end before it
is done. Times are then too long, never too short. Otherwise it tells apart what differs by some
0.05 µs a row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, perf_counter_ns
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from querymesh.arrays import Bools, Floats
from querymesh.spark.context import hidden_frame, java, query_execution

LEAST_COST_US = 1e-3
BUDGET_S = 0.4

FIRST_ROWS, GROWTH = 8, 4
"""The rows of a condition's first turn, and how many times as many the next turn has."""

FEWEST_TURNS = 4
QUIET_TURNS = 5
"""Timing ends when each condition took so many turns on all its rows and was not faster in any."""

FASTER = 0.9
"""A turn that takes less than this share of the shortest before it was faster."""

OUTCOME_ROWS = 1_000
"""So many rows of each outcome are timed."""

FEW_OUTCOMES = 30
"""Fewer rows of one outcome than this are measured together with the other outcome's."""


def timed_us(
    session: SparkSession,
    sample: pa.Table,
    conditions: Sequence[Column | str],
    budget_s: float = BUDGET_S,
    quiet_turns: int = QUIET_TURNS,
) -> Floats | None:
    """Microseconds a row of each condition on a sample; not a number for one that cannot be timed.

    That is one that raises on a row of the sample, or that Catalyst cannot evaluate by itself. None
    where nothing can be timed: no rows, or a condition reads a column that the sample has not.
    """
    stretches = [Stretch(number, 0, sample.num_rows) for number in range(len(conditions))]
    return timed_stretches_us(session, sample, conditions, stretches, budget_s, quiet_turns)


def timed_by_outcome_us(
    session: SparkSession,
    sample: pa.Table,
    conditions: Sequence[Column | str],
    passes: Bools,
    budget_s: float = BUDGET_S,
) -> tuple[Floats, Floats] | None:
    """As `timed_us`, on rows that a condition drops and on rows that it lets through.

    `passes` has a row for each of the sample's and a column for each condition.
    """
    picked: list[np.ndarray[Any, Any]] = []
    stretches: list[Stretch] = []
    for number in range(len(conditions)):
        passed = passes[:, number]
        few = min(passed.sum(), (~passed).sum()) < FEW_OUTCOMES
        for outcome in (~passed, passed):
            rows = np.flatnonzero(np.ones_like(passed) if few else outcome)[:OUTCOME_ROWS]
            start = sum(map(len, picked))
            picked.append(rows)
            stretches.append(Stretch(number, start, start + len(rows)))
    if not picked or not sample.num_rows:
        return None
    laid_out = sample.take(pa.array(np.concatenate(picked)))
    found = timed_stretches_us(session, laid_out, conditions, stretches, budget_s)
    return None if found is None else (found[0::2], found[1::2])


@dataclass(frozen=True)
class Stretch:
    """A condition, and the rows from `start` to `stop` on which it is timed."""

    condition: int
    start: int
    stop: int


def timed_stretches_us(
    session: SparkSession,
    sample: pa.Table,
    conditions: Sequence[Column | str],
    stretches: Sequence[Stretch],
    budget_s: float,
    quiet_turns: int = QUIET_TURNS,
) -> Floats | None:
    """Microseconds a row of each stretch, less what a row costs with no condition."""
    started = perf_counter()
    if not sample.num_rows or not conditions:
        return None
    with _no_error_log():
        compiled = _compiled(session, sample, conditions)
        if compiled is None:
            return None
        # What is compiled for the first time takes long, and would be timed for nothing.
        left_s = max(budget_s / 2, budget_s - (perf_counter() - started))
        return _timed(session, compiled, stretches, left_s, quiet_turns)


def _timed(
    session: SparkSession,
    compiled: Compiled,
    stretches: Sequence[Stretch],
    budget_s: float,
    quiet_turns: int,
) -> Floats:
    started = perf_counter()
    rows, functions = compiled
    clock = thread_clock(session)
    nothing = Stretch(len(functions) - 1, 0, int(rows.size()))
    runs = [_Run(rows, functions[each.condition], each, clock) for each in (nothing, *stretches)]
    longest_ns = 1e9 * budget_s / (FEWEST_TURNS * len(runs))
    turn = 0
    while not all(run.quiet_turns >= quiet_turns for run in runs):
        if turn >= FEWEST_TURNS and perf_counter() - started > budget_s:
            break
        for run in runs:
            run.take_turn(longest_ns)
        turn += 1
    us = np.array([run.least_ns for run in runs]) / 1e3
    return np.asarray(np.maximum(us[1:] - us[0], LEAST_COST_US))


Compiled = tuple[Any, list[Any]]
"""Rows in the JVM, and functions of them."""


class _Run:
    """A compiled condition on a stretch of rows, and the least time that a row took."""

    def __init__(
        self, rows: Any, function: Any, stretch: Stretch, clock: Callable[[], int]
    ) -> None:
        self._all = rows.slice(stretch.start, stretch.stop)
        self._available = stretch.stop - stretch.start
        self._function = function
        self._clock = clock
        self._length = min(FIRST_ROWS, self._available)
        self._rows = self._all.slice(0, self._length)
        self.least_ns = np.nan if function is None else np.inf
        self.quiet_turns = 0

    def take_turn(self, longest_ns: float) -> None:
        """Run through the rows once; next time through more of them, if it was not long.

        A condition that raises has no time from then on.
        """
        if np.isnan(self.least_ns):
            self.quiet_turns += 1
            return
        try:
            before = self._clock()
            self._rows.foreach(self._function)
            taken = self._clock() - before
        except (PySparkException, Py4JJavaError):
            self.least_ns = np.nan
            return
        a_row = taken / self._length
        self.quiet_turns = 0 if a_row < FASTER * self.least_ns else self.quiet_turns + 1
        self.least_ns = min(self.least_ns, a_row)
        if self._length < self._available and GROWTH * taken < longest_ns:
            self._length = min(GROWTH * self._length, self._available)
            self._rows = self._all.slice(0, self._length)
            self.quiet_turns = 0


def _compiled(
    session: SparkSession, sample: pa.Table, conditions: Sequence[Column | str]
) -> Compiled | None:
    """The sample's rows in the JVM, and each condition as a function of them; after these TRUE."""
    local = query_execution(session.createDataFrame(sample)).analyzed()
    if local.getClass().getSimpleName() != "LocalRelation":
        return None
    # Catalyst would evaluate conditions on rows it knows while it plans: it is not shown them.
    frame = hidden_frame(session, local.schema())
    columns = [F.expr(each) if isinstance(each, str) else each for each in conditions]
    named = [column.alias(f"c{number}") for number, column in enumerate(columns)]
    try:
        plan = query_execution(frame.select(*named)).optimizedPlan()
    except AnalysisException:
        return None
    if plan.getClass().getSimpleName() != "Project" or plan.child().children().size():
        return None
    expressions = java(session).org.apache.spark.sql.catalyst.expressions
    listed, inputs = plan.projectList(), plan.child().output()
    written = [listed.apply(number).children().apply(0) for number in range(listed.size())]
    written.append(expressions.Literal.TrueLiteral())
    return local.data(), [_function(session, expressions, each, inputs) for each in written]


def _function(session: SparkSession, expressions: Any, condition: Any, inputs: Any) -> Any:
    """A condition as Spark compiles it; None where only a plan of its own can evaluate it."""
    jvm = java(session)
    one = jvm.java.util.ArrayList()
    one.add(condition)
    try:
        return expressions.UnsafeProjection.create(
            jvm.scala.jdk.javaapi.CollectionConverters.asScala(one).toSeq(), inputs
        )
    except (PySparkException, Py4JJavaError):
        return None


@contextmanager
def _no_error_log() -> Iterator[None]:
    """PySpark logs every error of a query; one that is expected here is not for the user to see."""
    loggers = [
        PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")
    ]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def thread_clock(session: SparkSession) -> Callable[[], int]:
    """Nanoseconds of the JVM's thread that serves this one; of the wall if several threads do."""
    threads = java(session).java.lang.management.ManagementFactory.getThreadMXBean()
    pinned = os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"
    if not pinned or not threads.isCurrentThreadCpuTimeSupported():
        return perf_counter_ns
    return lambda: int(threads.getCurrentThreadCpuTime())
