"""A case of `bench join` on disk: the files all contestants replay, and the answer they must give.

    <folder>/A/000.parquet  001.parquet ...     one file a micro-batch and stream; a file source
    <folder>/B/000.parquet  001.parquet ...     that takes one file at a time replays them alike

The answer is DuckDB's, over all rows at once and from the definition of a window.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from querymesh_lab.bench.data.join_data import START_MS, Design, batches, streams
from querymesh_lab.bench.fingerprint import SUMS, Fingerprint, of_sums

CORES = 2
_PRIMES = (1_000_003, 15_485_863, 32_452_843, 49_979_687, 67_867_967)
_MODULUS = 2_147_483_647


@dataclass(frozen=True)
class Outcome:
    """What a contestant did with a case. What it cannot count is None.

    `seconds` is the contestant's own time where it cannot be taken from outside (Flink's job runs
    in another process); `cpu_seconds` is over all cores and processes, warming up of compilers
    included. `state_rows` and `state_bytes` are at their peak.
    """

    answer: Fingerprint
    seconds: float
    state_bytes: int | None = None
    state_rows: int | None = None
    cpu_seconds: float | None = None
    comparisons: int | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JoinCase:
    """One design, written. `expected` is the fingerprint of the exact result."""

    design: Design
    folder: Path
    expected: Fingerprint

    def files(self, stream: str) -> Path:
        """The folder of a stream's micro-batches."""
        return self.folder / stream


Contestant = Callable[[JoinCase], Outcome]


def write_case(design: Design, folder: Path) -> JoinCase:
    """Draw the streams, write their micro-batches and find the answer."""
    for name, table in streams(design).items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number, batch in enumerate(batches(design, table)):
            path = folder / name / f"{number:03d}.parquet"
            pq.write_table(batch, path)
            # Spark's file source takes the oldest file first: their ages must tell their order.
            stamp = START_MS / 1000 + number
            os.utime(path, (stamp, stamp))
    return JoinCase(design, folder, duckdb_answer(design, folder))


def window_sql(design: Design) -> str:
    """The window query in the SQL of QueryMesh."""
    graph = design.graph
    ids = ", ".join(f"{alias}.id AS {alias}_id" for alias in graph.aliases)
    relations = ", ".join(
        f"{stream} {alias} [RANGE {design.window_s} SECONDS]"
        for stream, alias in zip(graph.streams, graph.aliases, strict=True)
    )
    return f"SELECT {ids} FROM {relations} WHERE {' AND '.join(graph.conditions())}"


def combined_id(ids: Sequence[str]) -> str:
    """The members' ids as one number, in SQL that Spark, DuckDB and Flink all read."""
    terms = " + ".join(f"{name} * {prime}" for name, prime in zip(ids, _PRIMES, strict=False))
    return f"(({terms}) % {_MODULUS}) AS id"


def time_conditions(aliases: Sequence[str], last: str, window: str) -> list[str]:
    """That `last` is in every one's window and they in its: pair by pair the same as by the newest.

    With τ the newest of all, τ − ts ≤ w for each says that no member is older than any other by
    more than its own window.
    """
    return [
        f"{newer}.ts - {older}.ts <= {window}"
        for one in aliases
        if one != last
        for newer, older in permutations((one, last))
    ]


def duckdb_sql(design: Design, folder: Path) -> str:
    """The exact result: pair conditions in the joins keep them small, the definition has the word.

    Times are compared as numbers of microseconds, so that nothing is rounded.
    """
    graph = design.graph
    window = str(design.window_s * 1_000_000)
    text = ""
    for number, (stream, alias) in enumerate(zip(graph.streams, graph.aliases, strict=True)):
        source = (
            f"(SELECT * EXCLUDE ts, epoch_us(ts) AS ts "
            f"FROM read_parquet('{folder / stream}/*.parquet')) {alias}"
        )
        if number == 0:
            text = source
            continue
        before = graph.aliases[:number]
        ties = [
            f"{alias}.{name} = {other.lower()}.{name}"
            for name, other in graph.shared(stream, graph.streams[:number])
        ]
        on = ties + time_conditions(before, alias, window)
        text += f"\nJOIN {source} ON {' AND '.join(on)}"
    newest = "greatest(" + ", ".join(f"{alias}.ts" for alias in graph.aliases) + ")"
    meaning = " AND ".join(f"{newest} - {alias}.ts <= {window}" for alias in graph.aliases)
    ids = ", ".join(f"{alias}.id AS {alias}_id" for alias in graph.aliases)
    return f"SELECT {ids}\nFROM {text}\nWHERE {meaning}"


def duckdb_answer(design: Design, folder: Path) -> Fingerprint:
    """The fingerprint of the exact result."""
    return fingerprint_of(f"({duckdb_sql(design, folder)})", design)


def fingerprint_of(relation: str, design: Design) -> Fingerprint:
    """The fingerprint of what DuckDB reads: a query in brackets, or a table function on files."""
    import duckdb

    connection = duckdb.connect(config={"threads": CORES})
    folded = f"SELECT {combined_id(design.graph.ids())} FROM {relation}"
    return of_sums(connection.execute(f"SELECT {', '.join(SUMS)} FROM ({folded})").fetchone())
