"""The comparing half of the demo: mesh, best single order and plain Spark on the same ticks.

Plain Spark gets what an expert would give it: vectorised Arrow UDFs, broadcast joins, the best
single order. Written as usual, Spark gathers the UDFs into one node that evaluates each of them on
every row; declared non-deterministic, they stay where they were put. Both are shown.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType

from querymesh.demo import market
from querymesh.demo.predicates import ROW_TESTS, RowTest
from querymesh.mesh.mesh import Mesh
from querymesh.report.comparison import Comparison, Contender
from querymesh.runtime.run import Run
from querymesh.spark.context import counter
from querymesh.spark.remembered import inspect
from querymesh.spark.run import run

FILES = 4


@dataclass
class Entry:
    """A contender at the start: its DataFrame, and how to ask it for its evaluations so far."""

    name: str
    how: str
    frame: DataFrame
    evaluations: Callable[[], int]


def compare(spark: SparkSession, mesh: Mesh, rows: int, rounds: int, seed: int) -> Comparison:
    """Run all contenders in turn, `rounds` times, after one round that only warms up and counts."""
    with tempfile.TemporaryDirectory(prefix="querymesh-demo-") as folder:
        inputs = _inputs(spark, folder, rows, seed)
        entries = [
            *_fabric_entries(mesh, inputs),
            *_spark_entries(mesh, inputs),
        ]
        first = []
        for entry in entries:
            result = _execute(entry.frame)[1]
            first.append((result, entry.evaluations()))
        times: list[list[float]] = [[] for _ in entries]
        control: list[float] = []
        for _ in range(rounds):
            for entry, taken in zip(entries, times, strict=True):
                taken.append(_execute(entry.frame)[0])
            control.append(_execute(entries[0].frame)[0])
    contenders = tuple(
        Contender(entry.name, entry.how, tuple(taken), result[0], result[1], evaluations)
        for entry, taken, (result, evaluations) in zip(entries, times, first, strict=True)
    )
    return Comparison(rows, contenders, tuple(control), "Python predicates")


def _inputs(spark: SparkSession, folder: str, rows: int, seed: int) -> dict[str, DataFrame]:
    """Ticks the stream has not seen, in files, so that every contender reads the same way."""
    fresh = market.ticks(min(rows, market.POOL), seed + 1)
    for part in range(FILES):
        numbers = pa.array(range(part, rows, FILES), pa.int64()).to_numpy() % fresh.num_rows
        pq.write_table(fresh.take(pa.array(numbers)), f"{folder}/ticks-{part}.parquet")
    return {
        "Stock": spark.read.parquet(folder),
        "News": spark.createDataFrame(market.news(seed)),
        "StreetResearch": spark.createDataFrame(market.research(seed)),
    }


def _execute(frame: DataFrame) -> tuple[float, tuple[int, str]]:
    """The time to compute every column of every result row, with their number and a hash of them.

    The hash is a sum over rows, so it does not depend on their order and counts every duplicate.
    """
    hashed = F.pmod(F.xxhash64(*frame.columns), F.lit(1_000_000_007))
    started = perf_counter()
    row = frame.agg(F.count(F.lit(1)), F.sum(hashed)).first()
    seconds = perf_counter() - started
    count, total = (0, None) if row is None else (row[0], row[1])
    return seconds, (int(count), f"{total or 0:x}")


def _fabric_entries(mesh: Mesh, inputs: Mapping[str, DataFrame]) -> list[Entry]:
    entries = []
    for policy, name, how in (
        ("mesh", "mesh", f"{len(mesh.routes)} routes in the fabric, learned from the stream"),
        ("single", "best single order", "the same fabric and operators, one route"),
    ):
        frame = run(mesh, dict(inputs), policy=policy)
        live = inspect(frame)
        entries.append(Entry(name, how, frame, partial(_predicate_evaluations, live)))
    return entries


def _predicate_evaluations(live: Run) -> int:
    """Evaluations of the Python predicates alone: what all contenders can be asked for."""
    done = live.counts.by_operator()
    return sum(
        done[index].evaluations
        for index, operator in enumerate(live.view.mesh.operators, 1)
        if index in done and operator.name in ROW_TESTS
    )


def _spark_entries(mesh: Mesh, inputs: Mapping[str, DataFrame]) -> list[Entry]:
    order = [mesh.operators[index - 1].name for index in mesh.single]
    entries = []
    for pinned, name, how in (
        (False, "plain Spark", "Arrow UDFs and broadcast joins, in the best single order"),
        (True, "plain Spark, order forced", "the same, UDFs declared non-deterministic"),
    ):
        calls = counter(inputs["Stock"].sparkSession)
        frame = _plain(order, inputs, calls, pinned)
        entries.append(Entry(name, how, frame, partial(_counted, calls)))
    return entries


def _counted(counter: Any) -> int:
    return int(counter.value)


def _plain(
    order: list[str], inputs: Mapping[str, DataFrame], counter: Any, pinned: bool
) -> DataFrame:
    """The query in Spark's own words, its steps in this order."""
    frame = inputs["Stock"].filter("price >= 5")  # which Spark has in its scan in any case
    for operator in order:
        if operator in ROW_TESTS:
            test, column = ROW_TESTS[operator]
            frame = frame.filter(_udf(test, counter, pinned)(F.col(column)))
        elif operator == "news":
            frame = frame.join(F.broadcast(inputs["News"]), ["sector", "region"])
        elif operator == "research":
            frame = frame.join(F.broadcast(inputs["StreetResearch"]), ["company_name"])
    return frame.select("company_name", "symbol", "price", "headline", "analyst")


def _udf(test: RowTest, counter: Any, pinned: bool) -> Any:
    def answer(values: pa.Array) -> pa.Array:
        counter.add(len(values))
        return pa.array([test(value) for value in values.to_pylist()], pa.bool_())

    by_hints: Any = arrow_udf  # whose types ask for a kind of function that hints tell
    made = by_hints(answer, BooleanType())
    return made.asNondeterministic() if pinned else made
