"""Spark's own way to join several streams: a chain of binary stream-stream joins.

    A ---+
         |  A⋈B ---+
    B ---+         |  A⋈B⋈C ---+
    C -------------+           |  ...        each join keeps both of its inputs as state, and so
    D -------------------------+             all intermediate results but the last

Each binary join carries the time conditions of the pairs it brings together, so the chain gives the
result of the window query exactly. A joined stream may have one event time only: the anchor's, the
first stream's, is kept, and the others' times go on as plain numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from querymesh_lab.bench.data.join_data import Design
from querymesh_lab.bench.joins.join_case import CORES, JoinCase, Outcome
from querymesh_lab.bench.joins.on_spark.replay import StreamFrames, replay

_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
STORES: dict[str, str] = {
    "memory": f"{_PACKAGE}.HDFSBackedStateStoreProvider",
    "rocksdb": f"{_PACKAGE}.RocksDBStateStoreProvider",
}
"""Where Spark can keep the state of a stream: on the heap, or in RocksDB on disk."""


def orders(design: Design) -> list[tuple[str, ...]]:
    """The join orders worth trying: those where every join has an equality to go by.

    Streams of one case differ in nothing but the class they are absent from, so an order matters
    only by which stream is the anchor; in a star the centre must be among the first two.
    """
    connected = []
    for order in permutations(design.graph.streams):
        steps = range(1, len(order))
        if all(design.graph.shared(order[n], order[:n]) for n in steps):
            connected.append(order)
    first_of = {order[0]: order for order in reversed(connected)}
    return [first_of[stream] for stream in sorted(first_of)]


def spark_chain(
    session: SparkSession, case: JoinCase, store: str = "memory", order: Sequence[str] | None = None
) -> Outcome:
    """The contestant: a chain of joins in the order given, state in the store named."""
    chosen = tuple(order or case.design.graph.streams)
    settings = {
        "spark.sql.streaming.stateStore.providerClass": STORES[store],
        "spark.sql.shuffle.partitions": str(CORES),
    }
    return replay(session, case, partial(chain, case.design, chosen), settings)


def chain(design: Design, order: tuple[str, ...], streams: StreamFrames, _: Path) -> DataFrame:
    """The chain itself: a streaming DataFrame of the members' ids."""
    joined = _prepared(design, order[0], streams[order[0]])
    for number in range(1, len(order)):
        joined = _step(design, order[:number], order[number], joined, streams[order[number]])
    return joined.select(*design.graph.ids())


def _prepared(design: Design, stream: str, rows: DataFrame) -> DataFrame:
    """A stream with its watermark, and all columns under names of its own."""
    alias = stream.lower()
    delay = f"{round(design.disorder_s * 1000)} milliseconds"
    columns = ["id", "ts", *design.graph.attributes(stream)]
    return rows.withWatermark("ts", delay).select(
        *[F.col(c).alias(f"{alias}_{c}") for c in columns]
    )


def _step(
    design: Design, before: tuple[str, ...], stream: str, joined: DataFrame, rows: DataFrame
) -> DataFrame:
    """One binary join: the equalities, and the windows of all pairs that it brings together."""
    alias, anchor = stream.lower(), before[0].lower()
    right = _prepared(design, stream, rows)
    right = right.withColumn(f"{alias}_us", F.unix_micros(f"{alias}_ts"))
    equalities = [
        F.col(f"{other.lower()}_{name}") == F.col(f"{alias}_{name}")
        for name, other in design.graph.shared(stream, before)
    ]
    # Only conditions between event times tell Spark when it may forget: the anchor's do.
    length = F.expr(f"INTERVAL {design.window_s} SECONDS")
    anchored = F.col(f"{anchor}_ts"), F.col(f"{alias}_ts")
    windows = [
        anchored[0] <= anchored[1] + length,
        anchored[1] <= anchored[0] + length,
    ]
    most_us = design.window_s * 1_000_000
    for other in before[1:]:
        apart_us = F.col(f"{other.lower()}_us") - F.col(f"{alias}_us")
        windows.append(apart_us.between(-most_us, most_us))
    condition = F.lit(True)
    for part in equalities + windows:
        condition = condition & part
    return joined.join(right, condition, "inner").drop(f"{alias}_ts")
