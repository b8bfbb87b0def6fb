"""Policy "rate" on Spark: orders chosen by output rates, while the query runs and before."""

from collections import Counter

import numpy as np
import pyarrow as pa
from join_feed import EPOCH_US, SCHEMA, Feed, Ran

import querymesh as qm

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


def swapping(feed, batches=10):
    """A comes ten times as often as C, and from the middle on it is the other way round."""
    rng = np.random.default_rng(11)
    for number in range(batches):
        often, seldom = ("A", "C") if number < batches // 2 else ("C", "A")
        counts = {often: 200, "B": 60, seldom: 20}
        feed.add(
            **{n: rows_of(rng, count, 2 * number, 2, 1000 * number) for n, count in counts.items()}
        )


def test_a_running_join_goes_over_to_another_order_when_rates_swap(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "ABC")
    swapping(feed)
    ran = Ran(
        feed, CHAIN, tmp_path / "checkpoint",
        lambda number, live: live.wait_until_learned(60) if number else None,
        policy="rate", goal=qm.MostBy(60), training=qm.Training(sample_rows=100),
    )  # fmt: skip
    print(ran.live.planner.explain())
    print(ran.live.switches)
    assert ran.live.problems == []
    assert ran.rows == Counter(feed.registered().sql(CHAIN_IN_DUCKDB).fetchall())
    assert sum(ran.rows.values()) > 100
