"""Our own reading says of a condition what Catalyst's says: whether it is cheap."""

import pytest

from querymesh.query.parse.query import SOURCE
from querymesh.spark.conditions.comparisons import is_comparison
from querymesh.spark.conditions.facts import is_cheap
from querymesh.spark.conditions.read import read_conditions
from querymesh.spark.context import fields_analysed
from querymesh.spark.filters.native import CatalystColumns

CHEAP = (
    "i = 3", "i <> 3", "l >= i", "l IN (1, 2, 30000000000)", "i NOT IN (1, 2)",
    "x BETWEEN 0.5 AND 7", "d > 1.25", "d <= 3", "l < 2.5D", "s IS NULL", "s IS NOT NULL",
    "s LIKE 'ab%'", "s = 'x' OR (i > 2 AND NOT ok)", "ok", "NOT ok", "t < DATE'2026-01-01'",
    "m >= TIMESTAMP'2026-01-01 00:00:00'", "s <=> 'x'", "startswith(s, 'ab')", "isnan(x)",
)  # fmt: skip
DEAR = (
    "s RLIKE 'a+'", "s LIKE '%b%'", "s LIKE 'a_b%'", "length(s) > 3", "i + 1 > 3", "lower(s) = 'a'",
    "cast(s AS INT) > 3", "l / 2 > 1", "x * 2 < 3", "1 = 1",
    "CASE WHEN i > 1 THEN ok ELSE s = 'x' END",
)  # fmt: skip


@pytest.fixture(scope="module")
def frame(spark):
    return spark.sql(
        "SELECT 1 i, 2L l, 3.5D x, CAST(1.25 AS DECIMAL(10, 2)) d, 'abc' s, true ok, "
        "DATE'2025-05-05' t, TIMESTAMP'2025-05-05 01:00:00' m"
    )


def readings(frame, text):
    """The conjuncts of a text as we read them, and as Catalyst does."""
    read = read_conditions(frame, [text])
    bound = read.query.bind({SOURCE: read.schema})
    exprs = [operator.expr for operator in bound.operators]
    assert not read.columns, "we read it ourselves"
    return exprs, fields_analysed(frame, CatalystColumns().struct_of(exprs))


@pytest.mark.parametrize("text", CHEAP)
def test_a_comparison_is_known_without_catalyst(frame, text):
    exprs, trees = readings(frame, text)
    assert all(map(is_comparison, exprs))
    assert all(map(is_cheap, trees))


@pytest.mark.parametrize("text", DEAR)
def test_what_costs_more_is_none(frame, text):
    exprs, trees = readings(frame, text)
    assert not any(map(is_comparison, exprs))
    assert not any(map(is_cheap, trees))
