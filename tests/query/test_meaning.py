"""One expression, one meaning: Arrow's, Catalyst's and DuckDB's answers are the same.

Without Catalyst they are compared in `functions/test_against_duckdb.py`.
"""

import math
from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from meaning import (
    TABLE,
    all_typed,
    differences,
    duckdb_can,
    duckdb_with_rows,
    on_arrow,
    on_duckdb,
)
from querymesh.query.bind.infer import typed
from querymesh.query.evaluate import evaluate
from querymesh.query.expr import Call, Column, Expr, Literal
from querymesh.query.render import spark_sql, to_text
from querymesh.query.types import Kind, kind_of
from random_expressions import any_expression, table
from soak import other_cases_each_time

NAN = math.nan

# An example is a whole batch of expressions; the message names the one that differs.
few_large_examples = other_cases_each_time(4)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """From a file, because Spark evaluates expressions on local rows without generated code."""
    path = tmp_path_factory.mktemp("meaning") / "rows.parquet"
    pq.write_table(TABLE, path)
    return spark.read.parquet(str(path)).coalesce(1)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb_with_rows() as connection:
        yield connection


def on_spark(frame: DataFrame, exprs: Sequence[Expr]) -> list[pa.ChunkedArray]:
    texts = [f"{spark_sql(expr)} AS c{i}" for i, expr in enumerate(exprs)]
    answer = frame.selectExpr("id", *texts).toArrow().sort_by("id")
    return [answer[f"c{i}"] for i in range(len(exprs))]


@few_large_examples
@given(st.lists(any_expression(), min_size=60, max_size=60))
def test_arrow_catalyst_and_duckdb_agree_on_random_expressions(
    frame: DataFrame, duck: duckdb.DuckDBPyConnection, exprs: list[Expr]
) -> None:
    checked = all_typed(exprs)
    # A bare NULL has no type of its own.
    checked = [(tree, dtype) for tree, dtype in checked if kind_of(dtype) is not Kind.NULL]
    wrong = []
    answers = on_spark(frame, [tree for tree, _ in checked])
    for (tree, dtype), catalyst in zip(checked, answers, strict=True):
        mine = on_arrow(tree)
        wrong += differences(tree, mine, catalyst.to_pylist(), "Catalyst")
        if not isinstance(tree, Column) and kind_of(dtype) is not Kind.TIMESTAMP:
            assert catalyst.type == dtype, f"{to_text(tree)} is {catalyst.type}, not {dtype}"
        if duckdb_can(tree):
            (theirs,) = on_duckdb(duck, [tree])
            wrong += differences(tree, mine, theirs, "DuckDB")
    assert not wrong, "\n".join(wrong)


def test_transcendental_functions_agree_to_the_last_bits(frame: DataFrame) -> None:
    x, y = Column(None, "x"), Column(None, "y")
    exprs = [Call("exp", (x,)), Call("ln", (x,)), Call("power", (x, y)), Call("sqrt", (x,))]
    for expr, answer in zip(exprs, on_spark(frame, exprs), strict=True):
        for a, b in zip(on_arrow(expr), answer.to_pylist(), strict=True):
            close = a == b or (
                a is not None and b is not None and math.isclose(a, b, rel_tol=1e-14)
            )
            assert close or (math.isnan(a) and math.isnan(b)), (to_text(expr), a, b)


def test_long_lists_of_doubles_know_both_zeros_and_nan(frame: DataFrame) -> None:
    items = [Literal(value) for value in (*map(float, range(20)), NAN)]
    expr = Call("in", (Column(None, "x"), *items))
    (answer,) = on_spark(frame, [expr])
    assert on_arrow(expr) == answer.to_pylist()
    by_value = dict(zip(map(str, TABLE["x"].to_pylist()), on_arrow(expr), strict=True))
    assert by_value["-0.0"] is True
    assert by_value["nan"] is True
    assert by_value["inf"] is False
    assert by_value["None"] is None


def test_strings_that_spark_would_rewrite_survive(frame: DataFrame) -> None:
    texts = ["${spark.app.name}", "it's", "a\\b", "\\", "\n\t\r", '"', "\\n", "`", "%\\_", "\0"]
    answers = on_spark(frame, [Call("concat", (Literal(t), Literal(""))) for t in texts])
    assert [answer[0].as_py() for answer in answers] == texts


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_times_are_read_in_the_sessions_zone(spark: SparkSession, zone: str, tmp_path) -> None:
    rows = table(zone)
    names = ["year", "month", "day", "hour", "minute", "second"]
    exprs = [Call(name, (Column(None, "t"),)) for name in names]
    exprs += [
        Call(op, (Column(None, "t"), Literal(text)))
        for op in ("<", "=", ">=")
        for text in ("2000-01-01", "2000-01-01 07:30:15", "1970-01-01 00:00:00+00:00")
    ]
    exprs += [Call("<", (Column(None, "t"), Column(None, "d")))]
    trees = [typed(e, lambda c: rows.schema.field(c.name).type, {})[0] for e in exprs]
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path)
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        answers = on_spark(spark.read.parquet(str(path)).coalesce(1), trees)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    arrays = {name: rows[name].combine_chunks() for name in rows.column_names}
    for tree, answer in zip(trees, answers, strict=True):
        mine = evaluate(tree, lambda column: arrays[column.name], rows.num_rows, {})
        assert mine.to_pylist() == answer.to_pylist(), to_text(tree)
