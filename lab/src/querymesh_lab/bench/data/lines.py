"""Log lines, and four regular expressions on them, for the SQL side of the same classes.

The expressions are written in what Java, RE2 and Rust's regex have in common, so that Spark,
DuckDB, DataFusion and Polars all run the very same text.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from querymesh_lab.bench.data.classed import ClassedRows, PassRates, describing_columns, draw

PATTERNS: tuple[tuple[str, str], ...] = (
    ("internal", "net=(?:10|172|192)[.]"),
    ("staff", "[a-z]+[.][a-z]+@(?:corp|lab)[.]example"),
    ("probing", "[a-z]+/(?:admin|setup|login)[.]php"),
    ("scanner", "(?:map|bot|fuzz)/[0-9]+[.][0-9]+"),
)
"""Name and expression, in the order of the columns of a design's rates."""

OPPOSITE: PassRates = (
    (0.90, 0.03, 0.95, 0.95),
    (0.90, 0.95, 0.03, 0.95),
    (0.90, 0.95, 0.95, 0.03),
)
"""As `classed.OPPOSITE`, but the cheap expression decides little: a regular expression costs some
microseconds a row, and at half the rows there would be nothing left to see beside Spark's own work.
"""

RELATION = "Lines"


def condition(pattern: str) -> str:
    """One expression as a SQL condition."""
    return f"line RLIKE '{pattern}'"


def sql() -> str:
    """The query: all expressions must be found."""
    return f"SELECT * FROM {RELATION} WHERE " + " AND ".join(condition(p) for _, p in PATTERNS)


def lines(rows: int, rates: PassRates, seed: int = 0) -> ClassedRows:
    """Lines whose verdicts follow the pass rates by class."""
    rng = np.random.default_rng(seed)
    classes, passes = draw(rates, rows, rng)
    columns = describing_columns(classes, rng)
    numbers = rng.integers(10, 99, (rows, 4)).tolist()
    columns["line"] = pa.array(
        [_line(*verdicts, *four) for verdicts, four in zip(passes.tolist(), numbers, strict=True)]
    )
    return ClassedRows(pa.table(columns), classes, passes)


def _line(
    internal: bool, staff: bool, probing: bool, scanner: bool, a: int, b: int, c: int, d: int
) -> str:
    """What decides stands at the end of the line, as in most logs: yes costs as much as no."""
    return (
        f"20{a}-11-16T08:{b}:{c}.{d}Z edge-{a} lb={b} rid={a:x}f3c{b:x}9e{c:x}07{d:x}b1{a:x}4d "
        f"upstream took {b}{c} ms and gave {d}{a} bytes cache={c}{d} tls=1.3 proto=h2 pop=fra{a} "
        f"queued {d} ms in lane{b} behind {a} others after retry {c} from shard{d}-replica{a} "
        f"with trace {b:x}{c:x}77{d:x}{a:x}02{b:x}{d:x} sampled at {a}.{b} percent by rule{c} "
        f"get shop/{'admin' if probing else 'index'}.php "
        f"crawl{'bot' if scanner else 'ers'}/{d}.{a} "
        f"anna.lee@{'corp' if staff else 'home'}.example "
        f"net={'10' if internal else '85'}.{a}.{b}.{c}"
    )
