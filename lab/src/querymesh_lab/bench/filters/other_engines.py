"""The same filter on DuckDB, DataFusion and Polars: two threads each, data in memory as Arrow.

They are no targets. They answer whether what a mesh saves is worth having beside engines whose
regular expressions are not Java's. Each runs the conditions in the order given, as far as it keeps
to it: DuckDB reorders filters while it runs, Polars and DataFusion take them as written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import pyarrow as pa

from querymesh.stats.profile import Route
from querymesh_lab.bench.fingerprint import SUMS, Fingerprint, of_sums

THREADS = 2
Action = Callable[[], Fingerprint]


def _duckdb(table: pa.Table, column: str, patterns: Sequence[str]) -> Action:
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS})
    connection.register("lines", table)
    tests = " AND ".join(f"regexp_matches({column}, '{pattern}')" for pattern in patterns)
    connection.execute("CREATE TABLE stored AS SELECT * FROM lines")  # its own format: its best
    text = f"SELECT {', '.join(SUMS)} FROM stored WHERE {tests}"

    def action() -> Fingerprint:
        return of_sums(connection.execute(text).fetchone())

    return action


def _datafusion(table: pa.Table, column: str, patterns: Sequence[str]) -> Action:
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(THREADS))
    half = -(-table.num_rows // THREADS)
    parts = [table.slice(start, half).to_batches(max_chunksize=8192) for start in (0, half)]
    context.register_record_batches("lines", parts)
    tests = " AND ".join(f"{column} ~ '{pattern}'" for pattern in patterns)
    text = f"SELECT {', '.join(SUMS)} FROM lines WHERE {tests}"

    def action() -> Fingerprint:
        result = pa.Table.from_batches(context.sql(text).collect())
        return of_sums([column[0].as_py() for column in result.columns])

    return action


def _polars(table: pa.Table, column: str, patterns: Sequence[str]) -> Action:
    os.environ.setdefault("POLARS_MAX_THREADS", str(THREADS))  # read once, at its import
    import polars as pl

    frame = pl.DataFrame(table).lazy()
    ids = pl.col("id")
    for pattern in patterns:
        frame = frame.filter(pl.col(column).str.contains(pattern))
    asked = frame.select(pl.len(), ids.sum().alias("s"), (ids * 7919 % 104729).sum().alias("h"))

    def action() -> Fingerprint:
        return of_sums(asked.collect().row(0))

    return action


ENGINES: dict[str, Callable[[pa.Table, str, Sequence[str]], Action]] = {
    "duckdb": _duckdb,
    "datafusion": _datafusion,
    "polars": _polars,
}


def installed() -> list[str]:
    """The names of those engines that are installed here."""
    return [name for name in ENGINES if find_spec(name) is not None]


def regex_filter(
    engine: str, table: pa.Table, column: str, patterns: Sequence[str], route: Route
) -> Action:
    """The contender: all expressions found in `column`, written in the order of the route."""
    return ENGINES[engine](table, column, [patterns[index - 1] for index in route])
