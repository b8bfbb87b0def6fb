"""A join as a tree of Spark's own joins: in every shape, what DuckDB gives on the whole data."""

import datetime as dt
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import querymesh as qm
from join_feed import Feed, random_rows, rows_at, to_end
from querymesh.errors import QueryError, QueryMeshError, SchemaError, UnsupportedError
from querymesh.spark.inputs import bind_inputs
from querymesh.spark.joins.join_tree import join_tree
from querymesh.spark.joins.tree_shape import leaves_of
from querymesh.spark.schema import output_struct
from window_cases import MOST_ROWS, as_multiset, case_of


def random_shape(rng: random.Random, aliases: list[str]):
    """Any binary tree over the aliases, in any order."""
    parts = rng.sample(aliases, len(aliases))
    while len(parts) > 1:
        one, other = (parts.pop(rng.randrange(len(parts))) for _ in range(2))
        parts.append((one, other))
    return parts[0]


def tree_of(spark, query: qm.Query, inputs, shape, watermark="0 seconds"):
    given = bind_inputs(query, inputs)
    join, data = given.bound, given.data
    frames = {
        alias: given if hasattr(given, "isStreaming") else spark.createDataFrame(given)
        for alias, given in data.items()
    }
    return join_tree(join, frames, shape, watermark)


@given(seed=st.integers(0, 2**32), streams=st.sampled_from([2, 3, 3, 4]))
@settings(max_examples=8, suppress_health_check=list(HealthCheck), derandomize=True)
def test_any_shape_of_any_join_gives_what_duckdb_gives(spark, seed, streams):
    rng = random.Random(seed)
    case = case_of(rng, streams, MOST_ROWS[streams], rows=False, plain=True)
    assume("low_bit" not in case.ours and "is_even" not in case.ours and "near" not in case.ours)
    combinations = case.combinations(3000)
    assume(5 < combinations.num_rows < 3000)
    shape = random_shape(rng, [stream.alias for stream in case.streams])
    frames = {name: spark.createDataFrame(table) for name, table in case.inputs.items()}
    out = tree_of(spark, case.query, frames, shape)
    expected = as_multiset(combinations.drop_columns([r.alias for r in case.relations]))
    assert as_multiset(out.toArrow()) == expected, (case.ours, shape)
    given = bind_inputs(case.query, frames)
    join, data = given.bound, given.data
    assert out.schema == output_struct(join.views[join.aliases[0]], data)


FOUR = (
    "SELECT a.id AS a, b.id AS b, c.id AS c, d.id AS d, d.ts AS ts "
    "FROM A a [RANGE 4 SECONDS], B b [RANGE 2 SECONDS], C c [RANGE 3 SECONDS], D d [RANGE 2500 ms] "
    "WHERE a.k = b.k AND b.x = c.x AND c.y = d.y AND a.x <= d.x AND a.y + d.k <> c.k"
)
FOUR_ON_DUCKDB = """
SELECT a.id, b.id, c.id, d.id FROM A a, B b, C c, D d,
  LATERAL (SELECT greatest(epoch_us(a.ts), epoch_us(b.ts), epoch_us(c.ts), epoch_us(d.ts)) AS t)
WHERE a.k = b.k AND b.x = c.x AND c.y = d.y AND a.x <= d.x AND a.y + d.k <> c.k
  AND t - epoch_us(a.ts) <= 4000000 AND t - epoch_us(b.ts) <= 2000000
  AND t - epoch_us(c.ts) <= 3000000 AND t - epoch_us(d.ts) <= 2500000
"""


class TreeRun:
    """A tree run over all files of a feed, and the state it was left with."""

    def __init__(self, spark, feed: Feed, sql: str, shape, folder) -> None:
        self.rows: Counter = Counter()
        self.out = tree_of(spark, qm.query(sql, time="ts"), feed.streams(), shape)
        query = to_end(self.out.writeStream.foreachBatch(self._keep), folder / "checkpoint")
        self.progress = [p for p in query.recentProgress if p["stateOperators"]]

    def _keep(self, batch, number) -> None:
        self.rows.update(map(tuple, batch.drop("ts").collect()))

    @property
    def state_rows(self) -> list[int]:
        """Of each join, the most rows that it has kept."""
        kept = [[s["numRowsTotal"] for s in p["stateOperators"]] for p in self.progress]
        return [max(rows) for rows in zip(*kept, strict=True)]


@pytest.mark.parametrize("shape", [("d", (("b", "a"), "c")), (("a", "d"), ("c", "b"))], ids=str)
def test_a_tree_of_streams_gives_what_duckdb_gives_and_forgets(spark, tmp_path, shape):
    rng = np.random.default_rng(5)
    feed = Feed(spark, tmp_path / "in", "ABCD")
    for step in range(4):
        feed.add(**{n: random_rows(rng, 60, 6, step * 6, step * 60) for n in "ABCD"})
    ran = TreeRun(spark, feed, FOUR, shape, tmp_path)
    assert ran.rows == Counter(feed.registered().sql(FOUR_ON_DUCKDB).fetchall())
    assert ran.rows.total() > 100
    assert all("spark.watermarkDelayMs" not in field.metadata for field in ran.out.schema)
    lowest = ran.state_rows[-1]
    assert lowest < 2 * 60 * 3, "two streams of 240 rows, of which the first batches are forgotten"


PAIR = (
    "SELECT a.id AS a, b.id AS b FROM A a [RANGE 5 SECONDS], B b [RANGE 2 SECONDS] WHERE a.k = b.k"
)


def test_a_window_that_ends_between_two_milliseconds_is_exact(spark):
    sql = PAIR.replace("5 SECONDS", "1001 us").replace("2 SECONDS", "1 SECOND")
    inputs = {"A": rows_at(0), "B": rows_at(0, 0.001, 0.001001, 0.001002)}
    out = tree_of(spark, qm.query(sql, time="ts"), inputs, ("b", "a"))
    assert sorted(row.b for row in out.collect()) == [0, 1, 2]


def test_clock_readings_without_a_zone_are_joined_in_any_time_zone(spark):
    # Spring in Berlin: from 01:59:59 to 03:00:00 passes a second there, an hour by the readings.
    before, after = dt.datetime(2024, 3, 31, 1, 59, 59), dt.datetime(2024, 3, 31, 3, 0, 0)
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        rows = spark.createDataFrame(
            [(before, 0, 1), (after, 1, 1)], "ts timestamp_ntz, id bigint, k bigint"
        )
        out = tree_of(spark, qm.query(PAIR, time="ts"), {"A": rows, "B": rows}, ("a", "b"))
        assert sorted(map(tuple, out.collect())) == [(0, 0), (1, 1)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_rows_without_key_or_time_are_in_no_result(spark):
    a = pa.concat_tables([rows_at(0, None, first_id=0), rows_at(0, k=None, first_id=2)])
    b = pa.concat_tables([rows_at(0), rows_at(0, k=None, first_id=1)])
    out = tree_of(spark, qm.query(PAIR, time="ts"), {"A": a, "B": b}, ("a", "b"))
    assert list(map(tuple, out.collect())) == [(0, 0)]


ROWS = {name: rows_at(0) for name in "AB"}


@pytest.mark.parametrize(
    ("sql", "shape", "error", "said"),
    [
        (PAIR, ("a", "c"), QueryError, "'c' in the join tree .* is no stream .* Known: a, b"),
        (PAIR, ("a", ("a", "b")), QueryError, "'a' is 2 times"),
        (PAIR, "a", QueryError, "lacks b"),
        (PAIR, ("a", "b", "c"), QueryError, "is no part of a join tree"),
        (PAIR.replace("RANGE 2 SECONDS", "ROWS 3"), ("a", "b"), UnsupportedError, "ROWS 3.* of b"),
        (PAIR.replace("a.k", "odd(a.k)"), ("a", "b"), UnsupportedError, "odd in the join key"),
        (f"{PAIR} AND odd(b.x) = 1", ("a", "b"), UnsupportedError, "odd in the condition.*where"),
    ],
)
def test_what_a_tree_cannot_be_is_said(spark, sql, shape, error, said):
    odd = qm.function(lambda values: values, returns=pa.int64(), name="odd")
    query = qm.query(sql, time="ts", functions={"odd": odd})
    with pytest.raises(error, match=said):
        tree_of(spark, query, ROWS, shape)


def test_inputs_that_do_not_fit_are_named(spark, tmp_path):
    feed = Feed(spark, tmp_path / "in", "A")
    mixed = {"A": feed.streams()["A"], "B": spark.createDataFrame(ROWS["B"])}
    query = qm.query(PAIR, time="ts")
    with pytest.raises(SchemaError, match="b is a batch DataFrame"):
        tree_of(spark, query, mixed, ("a", "b"))
    given = bind_inputs(query, ROWS)
    join, data = given.bound, given.data
    with pytest.raises(SchemaError, match="no input for 'b'"):
        join_tree(join, {"a": spark.createDataFrame(data["a"])}, ("a", "b"), "0 seconds")
    with pytest.raises(QueryMeshError, match="watermark='soon' is no length of time"):
        tree_of(spark, query, ROWS, ("a", "b"), watermark="soon")
    static = qm.query(PAIR.replace(" [RANGE 2 SECONDS]", "").replace("B b", "B b, C c [RANGE 9 s]")
                      + " AND c.k = a.k", time="ts")  # fmt: skip
    with pytest.raises(QueryError, match=r"'b' in the join tree .* is a static table"):
        tree_of(spark, static, {**ROWS, "C": rows_at(0)}, (("a", "b"), "c"))
    assert tree_of(spark, static, {**ROWS, "C": rows_at(0)}, ("a", "c")).count() == 1


def test_leaves_come_from_left_to_right():
    assert list(leaves_of((("d", "a"), ("c", "b")))) == ["d", "a", "c", "b"]
