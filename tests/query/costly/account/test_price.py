"""What calls cost, and what a job may spend."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from querymesh.errors import OptionError, PredicateError
from querymesh.query.costly.account.price import (
    PARTS,
    Budget,
    Price,
    as_money,
    budget_of,
    price_of,
)

TEXTS = pa.array(["a" * 4, "b" * 5, None, ""])  # 1, 2, 0 and 0 tokens


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({}, "a price says what is paid for"),
        ({"per_call": -1}, "price: per_call is a number of at least 0"),
        ({"per_row": float("inf")}, "price: per_row is a number of at least 0"),
        ({"per_token": "much"}, "price: per_token must be a number"),
        ({"per_row": 1.0, "tokens": len}, "per_token does not say what one costs"),
        ({"per_token": 1.0, "tokens": 4}, "tokens is a function"),
    ],
)
def test_a_wrong_price_is_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        Price(**options)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"amount": -1}, "budget is a number of at least 0"),
        ({"amount": float("nan")}, "budget is a number of at least 0"),
        ({"amount": 1, "then": "stpo"}, "did you mean 'stop'"),
        ({"amount": 1, "seconds_a_unit": -1}, "seconds_a_unit is a number of at least 0"),
    ],
)
def test_a_wrong_budget_is_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        Budget(**options)


def test_a_bare_number_is_the_price_of_a_row_and_a_budget_that_stops() -> None:
    assert price_of("f", 0.5) == price_of("f", np.float64(0.5)) == Price(per_row=0.5)
    assert price_of("f", None) is None
    assert budget_of(5) == Budget(5.0, then="stop")
    assert budget_of(None) is None
    with pytest.raises(OptionError, match="predicate f: price is a number"):
        price_of("f", "0.5")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"write budget=5\.0"):
        budget_of(True)


def test_money_is_exact() -> None:
    """A tenth ten times is one, which it is not with floats; and a token's price is not lost."""
    assert sum(Price(per_row=0.1).of([], 1) for _ in range(10)) == Budget(1.0).parts
    assert Price(per_token=0.00000015, tokens=lambda v: v).of([pa.array([1_000_000])], 1) == (
        15 * PARTS // 100
    )


def test_a_price_is_of_calls_rows_and_tokens_together() -> None:
    price = Price(per_call=1, per_row=0.01, per_token=0.001)
    assert price.of([TEXTS], 4) == PARTS + 4 * PARTS // 100 + 3 * PARTS // 1000
    assert price.of([TEXTS], 4, calls=4) - price.of([TEXTS], 4) == 3 * PARTS
    assert price.a_row([TEXTS], 4, batch=3) == pytest.approx((2 + 0.04 + 0.003) / 4)
    assert price.a_row([], 0) == 0.0


def test_tokens_are_counted_over_the_texts_of_a_row() -> None:
    price = Price(per_token=1)
    both = [pa.array(["abc"]), pa.array([7]), pa.array(["defgh"]).dictionary_encode()]
    assert price.of(both, 1) == 2 * PARTS  # eight characters
    assert price.of([pa.array(["héé" * 4], pa.large_string())], 1) == 3 * PARTS


def test_where_there_is_no_text_it_must_be_said_what_a_token_is() -> None:
    with pytest.raises(PredicateError, match="tokens="):
        Price(per_token=1).of([pa.array([3])], 1)


@pytest.mark.parametrize("tokens", [lambda v: -1, lambda v: 1.5, lambda v: None, lambda v: True])
def test_a_count_that_is_none_is_told(tokens: Any) -> None:
    with pytest.raises(PredicateError, match="not how many tokens it has"):
        Price(per_token=1, tokens=tokens).of([TEXTS], 4)


def test_an_error_of_the_count_is_no_error_of_the_function() -> None:
    with pytest.raises(PredicateError, match="tokens= raised TypeError"):
        Price(per_token=1, tokens=len).of([TEXTS], 4)  # of None


def test_money_is_written_as_people_do() -> None:
    assert as_money(1234 * PARTS + PARTS // 2) == "1,234.50"
    assert as_money(1) == "0.000000000001"
