"""DuckDB, whose answers ours must equal."""

from functools import cache

import duckdb


@cache
def duckdb_connection() -> duckdb.DuckDBPyConnection:
    """One for all cases: to open one takes longer than most of their queries."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
    return connection
