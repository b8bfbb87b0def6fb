import datetime as dt
import math

import pyarrow as pa
import pytest

from querymesh.errors import UnsupportedError
from querymesh.query.bind.infer import typed
from querymesh.query.expr import Call, Column, Literal, UserCall
from querymesh.query.parse.query import condition_of
from querymesh.query.render import spark_literal, spark_sql, to_text


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (None, "NULL"),
        (True, "true"),
        (-5, "-5L"),
        (0.5, "0.5D"),
        (1e300, "1E+300D"),
        (math.inf, "CAST('Infinity' AS DOUBLE)"),
        ("it's \\ ${x}\n", "'it\\'s \\\\ \\u0024{x}\\n'"),
        (dt.date(2024, 1, 31), "DATE'2024-01-31'"),
        (dt.datetime(2024, 1, 31, 1), "TIMESTAMP_NTZ'2024-01-31 01:00:00'"),
        (
            dt.datetime(2024, 1, 31, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            "TIMESTAMP'2024-01-31 00:00:00 UTC'",
        ),
    ],
)
def test_literals_carry_their_type_to_spark(value: object, sql: str) -> None:
    assert spark_literal(value) == sql  # type: ignore[arg-type]


def test_columns_are_rendered_as_the_caller_wants() -> None:
    expr = Call("=", (Column("s", "odd`name"), Literal(1)))
    assert spark_sql(expr) == "(`s`.`odd``name` = 1L)"
    assert spark_sql(expr, lambda column: f"_{column.relation}") == "(_s = 1L)"


def test_a_column_is_cast_only_where_it_must_be() -> None:
    types = {"i": pa.int32(), "k": pa.int64(), "s": pa.string(), "d": pa.date32()}

    def text(sql: str) -> str:
        return spark_sql(typed(condition_of(sql, {}), lambda column: types[column.name], {})[0])

    assert text("k + 1 > i") == "(try_add(`k`, 1L) > `i`)"
    assert text("i + 1") == "try_add(CAST(`i` AS BIGINT), 1L)"
    assert text("k / 2") == "try_divide(CAST(`k` AS DOUBLE), 2.0D)"
    assert text("lower(s)") == "lower(`s`)"
    assert text("d = '2024-01-31'") == "(`d` = DATE'2024-01-31')"


def test_python_functions_are_not_for_spark_sql() -> None:
    with pytest.raises(UnsupportedError, match="bullish is a Python function"):
        spark_sql(Call("not", (UserCall("bullish", ()),)))


def test_the_relation_is_shown_on_request() -> None:
    expr = Call(">", (Column("s", "price"), Literal(5)))
    assert to_text(expr) == "price > 5"
    assert to_text(expr, qualified=True) == "s.price > 5"


@pytest.mark.parametrize(
    "sql",
    [
        "a - (b - c)",
        "a - b - c",
        "NOT (a AND b)",
        "(a OR b) AND c",
        "(a = b) = c",
        "1 - -1",
        "-(a + b) * 2",
        "(a AND b) IS NULL",
        "(NOT a) = b",
        "a = (b IN (1))",
        "concat(a, b) LIKE 'x\\n%'",
    ],
)
def test_the_text_means_what_it_was_made_from(sql: str) -> None:
    expr = condition_of(sql, {})
    assert condition_of(to_text(expr), {}) == expr
