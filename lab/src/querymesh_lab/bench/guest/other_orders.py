"""What choosing an order is worth to DataFusion and DuckDB: worst order over the one they chose.

Each reads the same Parquet files with two threads. *Chosen* is the query as written, an AND that
the engine may evaluate as it likes: DuckDB reorders while it runs, DataFusion 55 does not. The
worst order is looked for twice: among all ways to write the AND, and among orders forced by nested
CASE. CASE has a price of its own (nothing of it is pushed into the scan), so a forced order counts
for no more than forced orders differ among themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from time import perf_counter
from typing import Any

from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.guest.condition import Condition, Order, Sql
from querymesh_lab.bench.guest.orders import order_text
from querymesh_lab.bench.measure import interleave

THREADS = 2
Ask = Callable[[str], int]
Write = Callable[[Sequence[str]], str]


def _duckdb(folder: Path) -> Ask:
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS})
    source = f"read_parquet('{folder.as_posix()}/*.parquet')"

    def ask(condition: str) -> int:
        row = connection.execute(f"SELECT count(*) FROM {source} WHERE {condition}").fetchone()
        return int(row[0]) if row else 0

    return ask


def _datafusion(folder: Path) -> Ask:
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(THREADS))
    context.register_parquet("t", str(folder))

    def ask(condition: str) -> int:
        batches = context.sql(f"SELECT count(*) FROM t WHERE {condition}").collect()
        return int(batches[0].column(0)[0].as_py())

    return ask


ENGINES: dict[str, tuple[Callable[[Path], Ask], str]] = {
    "datafusion": (_datafusion, "{column} ~ '{pattern}'"),
    "duckdb": (_duckdb, "regexp_matches({column}, '{pattern}')"),
}
"""How to open each, and how it spells a regular expression."""


def in_dialect(condition: Condition, regex: str) -> str:
    """A condition in the SQL of an engine, which has its own way to write regular expressions."""
    if not isinstance(condition, Sql):
        raise TypeError(f"only SQL runs on other engines, not {condition.name}")
    if condition.regex is None:
        return condition.text
    return regex.format(column=condition.regex[0], pattern=condition.regex[1])


def forced(texts: Sequence[str]) -> str:
    """A condition that is evaluated in this order and no other.

    >>> forced(["a", "b"])
    'CASE WHEN a THEN CASE WHEN b THEN TRUE ELSE FALSE END ELSE FALSE END'
    """
    whole = "TRUE"
    for text in reversed(texts):
        whole = f"CASE WHEN {text} THEN {whole} ELSE FALSE END"
    return whole


def orders_of_others(
    folder: Path, conditions: Sequence[Condition], bench: Bench
) -> dict[str, dict[str, Any]]:
    """For each engine that is installed: its ratio of worst to chosen order, and both times."""
    found = {}
    for name, (start, regex) in ENGINES.items():
        if find_spec(name) is None:
            bench.log(f"  skipped: {name} is not installed")
            continue
        texts = [in_dialect(condition, regex) for condition in conditions]
        found[name] = _measured(start(folder), texts, bench)
    return found


def _measured(ask: Ask, texts: list[str], bench: Bench) -> dict[str, Any]:
    written, by_case = _ranked(ask, texts, " AND ".join), _ranked(ask, texts, forced)

    def in_order(write: Write, order: Order) -> Callable[[], int]:
        return lambda: ask(write([texts[k] for k in order]))

    actions = {
        "chosen": lambda: ask(" AND ".join(texts)),
        "worst written": in_order(" AND ".join, written[-1]),
        "best forced": in_order(forced, by_case[0]),
        "worst forced": in_order(forced, by_case[-1]),
    }
    timing = interleave(actions, bench.rounds(9, 1))
    among_forced = timing.ratio("worst forced", "best forced")
    by_force = min(timing.ratio("worst forced", "chosen"), among_forced)
    return {
        "ratio": round(max(timing.ratio("worst written", "chosen"), by_force), 4),
        "a_a": round(timing.a_a, 4),
        "worst_written": order_text(written[-1]),
        "best_forced": order_text(by_case[0]),
        "worst_forced": order_text(by_case[-1]),
        "median_seconds": {k: round(v, 5) for k, v in timing.median_seconds().items()},
    }


def _ranked(ask: Ask, texts: list[str], write: Write) -> list[Order]:
    """All orders from the fastest to the slowest, by the faster of two runs each."""

    def least_seconds(order: Order) -> float:
        took = []
        for _ in range(2):
            started = perf_counter()
            ask(write([texts[k] for k in order]))
            took.append(perf_counter() - started)
        return min(took)

    return sorted(permutations(range(len(texts))), key=least_seconds)
