"""What Arrow computes, DuckDB computes too: every function on awkward values, and random trees."""

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meaning import (
    all_typed,
    differences,
    duckdb_can,
    duckdb_with_rows,
    on_arrow,
    on_duckdb,
)
from querymesh.query.expr import Expr
from querymesh.query.functions import FUNCTIONS
from querymesh.query.types import Kind, kind_of
from random_expressions import any_expression, calls_by_function, casts
from soak import other_cases_each_time


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb_with_rows() as connection:
        yield connection


def disagreements(duck: duckdb.DuckDBPyConnection, exprs: list[Expr]) -> list[str]:
    checked = all_typed(exprs)
    trees = [t for t, dtype in checked if kind_of(dtype) is not Kind.NULL and duckdb_can(t)]
    wrong = []
    for tree, theirs in zip(trees, on_duckdb(duck, trees), strict=True):
        wrong += differences(tree, on_arrow(tree), theirs, "DuckDB")
    return wrong


@pytest.mark.parametrize("function", sorted(calls_by_function()))
def test_a_function_means_the_same_on_arrow_and_duckdb(
    duck: duckdb.DuckDBPyConnection, function: str
) -> None:
    wrong = disagreements(duck, calls_by_function()[function])
    assert not wrong, "\n".join(wrong)


def test_casts_mean_the_same_on_arrow_and_duckdb(duck: duckdb.DuckDBPyConnection) -> None:
    wrong = disagreements(duck, casts())
    assert not wrong, "\n".join(wrong)


def test_every_function_but_the_transcendental_is_compared() -> None:
    # Those on decimals are compared in `test_decimals.py`.
    others = {name for name in FUNCTIONS if not name.endswith(" decimal")}
    assert others - calls_by_function().keys() == {"exp", "ln", "power"}


@other_cases_each_time(4)
@given(st.lists(any_expression(), min_size=60, max_size=60))
def test_arrow_and_duckdb_agree_on_random_expressions(
    duck: duckdb.DuckDBPyConnection, exprs: list[Expr]
) -> None:
    wrong = disagreements(duck, exprs)
    assert not wrong, "\n".join(wrong)
