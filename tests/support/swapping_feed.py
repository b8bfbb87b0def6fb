"""A chain of three streams whose rates swap while it runs, and DuckDB's form of the query."""

import numpy as np
import pyarrow as pa

from join_feed import EPOCH_US, SCHEMA

CHAIN = (
    "SELECT a.id AS a, b.id AS b, c.id AS c FROM A a [RANGE 4 SECONDS], B b [RANGE 4 SECONDS], "
    "C c [RANGE 4 SECONDS] WHERE a.k = b.k AND b.x = c.x AND a.y < 4"
)
CHAIN_IN_DUCKDB = (
    "SELECT a.id, b.id, c.id FROM A a, B b, C c, LATERAL (SELECT greatest(epoch_us(a.ts), "
    "epoch_us(b.ts), epoch_us(c.ts)) AS newest) WHERE a.k = b.k AND b.x = c.x AND a.y < 4 AND "
    "newest - epoch_us(a.ts) <= 4000000 AND newest - epoch_us(b.ts) <= 4000000 AND "
    "newest - epoch_us(c.ts) <= 4000000"
)


def rows_of(rng, count, start_s, seconds, first_id, values=40):
    """Rows evenly over some time; keys of few values match often."""
    times = np.sort(rng.integers(round(start_s * 1e6), round((start_s + seconds) * 1e6), count))
    return pa.table(
        {
            "ts": pa.array(EPOCH_US + times, SCHEMA.field("ts").type),
            "id": np.arange(first_id, first_id + count),
            "k": rng.integers(0, values, count),
            "x": rng.integers(0, values, count),
            "y": rng.integers(0, 6, count),
        }
    )


def swapping(feed, batches=10, swap=None):
    """A comes ten times as often as C; from `swap` on, the middle, it is the other way round."""
    rng = np.random.default_rng(11)
    swap = batches // 2 if swap is None else swap
    for number in range(batches):
        often, seldom = ("A", "C") if number < swap else ("C", "A")
        counts = {often: 200, "B": 60, seldom: 20}
        feed.add(
            **{n: rows_of(rng, count, 2 * number, 2, 1000 * number) for n, count in counts.items()}
        )
    return feed
