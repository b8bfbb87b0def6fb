import math

import pyarrow as pa
import pytest

from meaning import computed, value_of

LARGEST, SMALLEST = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("9223372036854775806 + 1", LARGEST),
        ("9223372036854775807 + 1", None),
        ("-9223372036854775807 - 1", SMALLEST),
        ("-9223372036854775808 - 1", None),
        ("4611686018427387904 * -2", SMALLEST),
        ("4611686018427387904 * 2", None),
        ("negative(-9223372036854775807)", LARGEST),
        ("negative(-9223372036854775808)", None),
        ("abs(-9223372036854775807)", LARGEST),
        ("abs(-9223372036854775808)", None),
        ("-9223372036854775808 DIV -1", None),
        ("-9223372036854775808 DIV 1", SMALLEST),
        ("-9223372036854775807 DIV -1", LARGEST),
        ("-7 DIV 2", -3),
        ("7 DIV 0", None),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("-7.5 % 2", -1.5),
        ("7 % 0", None),
        ("7.5 % 0", None),
        ("7 / 2", 3.5),
        ("7 / 0", None),
    ],
)
def test_what_does_not_fit_a_bigint_is_null(sql: str, value: object) -> None:
    assert value_of(sql) == value


def test_only_the_rows_that_overflow_are_null() -> None:
    k = pa.array([LARGEST, LARGEST - 1, SMALLEST, None, 5])
    assert computed("k + 1", k=k) == [None, LARGEST, SMALLEST + 1, None, 6]
    assert computed("k - 1", k=k) == [LARGEST - 1, LARGEST - 2, None, None, 4]
    assert computed("-k", k=k) == [-LARGEST, -LARGEST + 1, None, None, -5]


BIG = 2.0**63
BELOW = math.nextafter(BIG, 0)


@pytest.mark.parametrize(
    ("x", "whole"),
    [
        (BIG, LARGEST),  # Spark's check is made in DOUBLE, where the largest BIGINT is 2^63
        (math.nextafter(BIG, math.inf), None),
        (BELOW, int(BELOW)),
        (-BIG, SMALLEST),
        (math.nextafter(-BIG, -math.inf), None),
        (math.inf, None),
        (-math.inf, None),
        (math.nan, None),
        (-1.9, -1),
        (1.9, 1),
    ],
)
def test_a_double_becomes_a_bigint_where_it_fits(x: float, whole: int | None) -> None:
    assert computed("CAST(x AS BIGINT)", x=pa.array([x])) == [whole]


def test_floor_and_ceil_are_whole_and_integers_stay_as_they_are() -> None:
    x = pa.array([1.2, -1.2, BIG, 1e300, -1e300, math.nan, None])
    assert computed("floor(x)", x=x) == [1, -2, LARGEST, None, None, 0, None]
    assert computed("ceil(x)", x=x) == [2, -1, LARGEST, None, None, 0, None]
    k = pa.array([LARGEST, SMALLEST])
    for name in ("floor", "ceil", "round"):
        assert computed(f"{name}(k)", k=k) == [LARGEST, SMALLEST]


def test_halves_are_rounded_away_from_zero() -> None:
    x = pa.array([0.5, 1.5, 2.5, -0.5, -2.5, 2.4999, None])
    assert computed("round(x)", x=x) == [1.0, 2.0, 3.0, -1.0, -3.0, 2.0, None]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("ln(1)", 0.0),
        ("ln(0)", None),
        ("ln(-1)", None),
        ("exp(0)", 1.0),
        ("sqrt(9)", 3.0),
        ("sqrt(-1)", "nan"),
        ("sign(-3)", -1.0),
        ("sign(0)", 0.0),
        ("power(2, 10)", 1024.0),
        ("power(0, 0)", 1.0),
        ("isnan(NULL)", False),
    ],
)
def test_functions_of_one_number(sql: str, value: object) -> None:
    assert value_of(sql) == value


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        (1.0, math.nan, "nan"),
        (1.0, math.inf, "nan"),
        (-1.0, math.inf, "nan"),
        (-1.0, -math.inf, "nan"),
        (1.0, 5.0, 1.0),
        (-1.0, 3.0, -1.0),
        (2.0, math.inf, math.inf),
        (2.0, -math.inf, 0.0),
        (2.0, math.nan, "nan"),
        (math.nan, 0.0, 1.0),
    ],
)
def test_powers_of_one_are_undefined_where_java_says_so(a: float, b: float, value: object) -> None:
    assert computed("power(a, b)", a=pa.array([a]), b=pa.array([b])) == [value]
