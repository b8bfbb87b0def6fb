"""Log lines, and four regular expressions on them, for the SQL side of the same classes.

The expressions are written in what Java, RE2 and Rust's regex have in common, so that Spark,
DuckDB, DataFusion and Polars all run the very same text.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from querymesh.bench.classed import Classed, Rates, describing_columns, draw

PATTERNS: tuple[tuple[str, str], ...] = (
    ("internal", "net=(?:10|172|192)[.]"),
    ("staff", "[a-z]+[.][a-z]+@(?:corp|lab)[.]example"),
    ("probing", "/(?:[a-z]+/)*(?:admin|setup|login)[.]php"),
    ("scanner", "(?:map|bot|fuzz)/[0-9]+[.][0-9]+"),
)
"""Name and expression, in the order of the columns of a design's rates."""

RELATION = "Lines"


def condition(pattern: str) -> str:
    """One expression as a SQL condition."""
    return f"line RLIKE '{pattern}'"


def sql() -> str:
    """The query: all expressions must be found."""
    return f"SELECT * FROM {RELATION} WHERE " + " AND ".join(condition(p) for _, p in PATTERNS)


def lines(rows: int, rates: Rates, seed: int = 0) -> Classed:
    """Lines whose verdicts follow the pass rates by class."""
    rng = np.random.default_rng(seed)
    classes, passes = draw(rates, rows, rng)
    columns = describing_columns(classes, rng)
    numbers = rng.integers(10, 99, (rows, 4)).tolist()
    columns["line"] = pa.array(
        [_line(*verdicts, *four) for verdicts, four in zip(passes.tolist(), numbers, strict=True)]
    )
    return Classed(pa.table(columns), classes, passes)


def _line(
    internal: bool, staff: bool, probing: bool, scanner: bool, a: int, b: int, c: int, d: int
) -> str:
    """Either verdict looks alike up to the last letters: there is no cheap way to say no."""
    return (
        f"net={'10' if internal else '85'}.{a}.{b}.{c} "
        f"by anna.lindqvist@{'corp' if staff else 'home'}.example "
        f"for /shop/items/list/page{a}/{'admin' if probing else 'index'}.php?item={b}&sort={c} "
        f"/shop/items/list/view/{'admin' if probing else 'index'}.php "
        f"agent crawl{'bot' if scanner else 'ers'}/{d}.{a} took {b}{c} ms and gave {d}{a} bytes"
    )
