"""Decimals are exact: Python's `decimal` says what comes out, DuckDB where it means the same."""

import decimal
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meaning import computed, value_of
from querymesh.errors import UnsupportedError
from querymesh.query.decimal_types import (
    literal_type,
    product_type,
    quotient_type,
    remainder_type,
    sum_type,
    wider,
)
from querymesh.query.functions.decimals import rescaled, to_double

EXACT = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)
BIG = 2**53


def parts(text: str) -> tuple[int, int]:
    precision, scale = text.split(",")
    return int(precision), int(scale)


@pytest.mark.parametrize(
    ("rule", "a", "b", "result"),
    [  # as `SELECT typeof(a + b)` says in Spark 4.3
        (sum_type, "10,2", "10,2", "11,2"),
        (sum_type, "10,2", "10,0", "13,2"),
        (sum_type, "38,18", "38,0", "38,6"),
        (product_type, "10,2", "1,0", "12,2"),
        (product_type, "38,18", "38,0", "38,6"),
        (quotient_type, "10,2", "10,2", "23,13"),
        (quotient_type, "20,0", "2,1", "27,6"),
        (quotient_type, "38,18", "38,0", "38,18"),
        (remainder_type, "10,2", "10,3", "10,3"),
        (remainder_type, "10,2", "1,0", "3,2"),
        (remainder_type, "38,18", "38,0", "38,18"),
    ],
)
def test_results_have_the_digits_that_spark_gives_them(rule, a, b, result) -> None:
    assert rule(pa.decimal128(*parts(a)), pa.decimal128(*parts(b))) == pa.decimal128(*parts(result))


def test_what_stands_together_keeps_the_digits_before_the_point() -> None:
    assert wider([pa.decimal128(10, 2), pa.decimal128(10, 3)]) == pa.decimal128(11, 3)
    assert wider([pa.decimal128(38, 18), pa.decimal128(38, 0)]) == pa.decimal128(38, 0)
    three, half = pa.array([Decimal(3)], pa.decimal128(38, 0)), pa.array([Decimal("2.5")])
    assert computed("a = b", a=three, b=half.cast(pa.decimal128(38, 18))) == [True], "as in Spark"


@pytest.mark.parametrize(
    ("text", "digits"),
    [("0.05", "2,2"), ("1.0", "2,1"), ("000.5", "1,1"), ("5.", "1,0"), ("0.0", "1,1"),
     ("0.000", "3,3"), ("9223372036854775808", "19,0"), ("-0.05", "2,2")],
)  # fmt: skip
def test_a_literal_has_the_digits_that_are_written(text: str, digits: str) -> None:
    assert literal_type(Decimal(text)) == pa.decimal128(*parts(digits))


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """Decimals of any precision and scale, with NULLs and the longest there are."""
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    most = 10**precision - 1
    numbers = st.sampled_from([0, 1, -1, most, -most, most // 2]) | st.integers(-most, most)
    values = draw(st.lists(st.none() | numbers, min_size=4, max_size=4))
    decimals = [None if n is None else EXACT.scaleb(Decimal(n), -scale) for n in values]
    return pa.array(decimals, pa.decimal128(precision, scale))


def fitted(value: Decimal, dtype: pa.DataType) -> Decimal | None:
    found = value.quantize(Decimal((0, (1,), -dtype.scale)), context=EXACT)
    return found if found.copy_abs() < Decimal(10) ** (dtype.precision - dtype.scale) else None


def test_a_long_row_of_nines_is_rounded_up() -> None:
    nothing = pa.array([Decimal("0E-30")], pa.decimal128(38, 30))
    nines = pa.array([Decimal("9999999999999999999999999999999.9999999")], pa.decimal128(38, 7))
    assert computed("a + b", a=nothing, b=nines) == [Decimal(10) ** 31]
    assert computed("a - b", a=nothing, b=nines) == [-(Decimal(10) ** 31)]


@pytest.mark.parametrize(
    ("sign", "rule", "exactly"),
    [
        ("+", sum_type, EXACT.add),
        ("-", sum_type, EXACT.subtract),
        ("*", product_type, EXACT.multiply),
        ("/", quotient_type, None),
        ("%", remainder_type, EXACT.remainder),
    ],
)
def test_arithmetic_is_exact_and_rounded_half_up_where_digits_are_given_up(
    sign, rule, exactly
) -> None:
    @given(columns(), columns())
    def check(a, b):
        result = rule(a.type, b.type)
        found = computed(f"a {sign} b", a=a, b=b)
        for x, y, z in zip(a.to_pylist(), b.to_pylist(), found, strict=True):
            if x is None or y is None or (sign in "/%" and not y):
                assert z is None
            elif exactly is not None:
                assert z == fitted(exactly(x, y), result), (x, y)
            else:
                first = EXACT.divide(x, y).quantize(Decimal("1e-39"), context=EXACT)
                assert z == fitted(first, result), (x, y)

    check()


@given(columns(), columns())
def test_comparisons_are_exact_where_38_digits_hold_both_sides(a, b) -> None:
    whole = max(t.precision - t.scale for t in (a.type, b.type))
    if whole + max(a.type.scale, b.type.scale) > 38:
        return
    pairs = list(zip(a.to_pylist(), b.to_pylist(), strict=True))
    known = [x is not None and y is not None for x, y in pairs]
    for sign, test in (("=", Decimal.__eq__), ("<", Decimal.__lt__), (">=", Decimal.__ge__)):
        wanted = [test(x, y) if k else None for (x, y), k in zip(pairs, known, strict=True)]
        assert computed(f"a {sign} b", a=a, b=b) == wanted
    same = [x == y for x, y in pairs]
    assert computed("a <=> b", a=a, b=b) == same
    wanted = [x == y if k else None for (x, y), k in zip(pairs, known, strict=True)]
    assert computed("a IN (b, b)", a=a, b=b) == wanted
    assert computed("a BETWEEN b AND b", a=a, b=b) == wanted


@given(columns(), st.integers(1, 38), st.integers(0, 38))
def test_another_precision_rounds_half_up_and_is_null_where_digits_do_not_fit(a, p, s) -> None:
    wanted = pa.decimal128(p, min(s, p))
    found = rescaled(a, wanted)
    assert found.type == wanted
    assert found.to_pylist() == [None if x is None else fitted(x, wanted) for x in a.to_pylist()]


@given(columns())
def test_the_nearest_double_is_the_nearest(a) -> None:
    wanted = [None if x is None else float(x) for x in a.to_pylist()]
    assert to_double(a).to_pylist() == wanted
    assert computed("CAST(a AS DOUBLE)", a=a.slice(1)) == wanted[1:]


def test_bigint_beside_a_literal_with_a_point_is_exact() -> None:
    k = pa.array([BIG, BIG + 1, None])
    assert computed(f"k > {BIG}.5", k=k) == [False, True, None]
    assert computed(f"k IN ({BIG + 1}.0, 0.5)", k=k) == [False, True, None]
    assert computed(f"k BETWEEN {BIG}.5 AND 9223372036854775808", k=k) == [False, True, None]
    assert computed(f"k > {BIG}.5D", k=k) == [False, False, None], "DOUBLE, as it says"


def test_between_compares_two_by_two_as_spark_does() -> None:
    k = pa.array([BIG, BIG + 1])
    assert computed(f"k BETWEEN {BIG + 1} AND 1e300", k=k) == [False, True]
    wide = pa.array([Decimal("2.5")], pa.decimal128(38, 18))
    long = pa.array([Decimal(3)], pa.decimal128(38, 0))
    assert computed("w BETWEEN 2.4 AND l", w=wide, l=long) == [True]


def test_signs_and_whole_numbers_of_decimals() -> None:
    m = pa.array([Decimal("2.50"), Decimal("-2.50"), Decimal("-99999999.99"), None])
    m = m.cast(pa.decimal128(10, 2))
    assert computed("-m", m=m) == [Decimal("-2.50"), Decimal("2.50"), Decimal("99999999.99"), None]
    assert computed("abs(m)", m=m) == [Decimal("2.50")] * 2 + [Decimal("99999999.99"), None]
    assert computed("floor(m)", m=m) == [2, -3, -100000000, None]
    assert computed("ceil(m)", m=m) == [3, -2, -99999999, None]
    assert computed("round(m)", m=m) == [3, -3, -100000000, None]
    assert computed("sign(m)", m=m) == [1.0, -1.0, -1.0, None]
    with pytest.raises(UnsupportedError, match=r"DECIMAL\(38,0\) to 34 digits"):
        computed("-o", o=pa.array([Decimal(1)], pa.decimal128(38, 0)))


def test_choices_among_decimals_have_one_type() -> None:
    m = pa.array([Decimal("2.50"), None], pa.decimal128(10, 2))
    i = pa.array([1, 1], pa.int32())
    assert computed("coalesce(m, i, 0.125)", m=m, i=i) == [Decimal("2.500"), Decimal("1.000")]
    assert computed("greatest(m, i, 2)", m=m, i=i) == [Decimal("2.50"), Decimal("2.00")]
    assert computed("CASE WHEN m > i THEN m ELSE 0 END", m=m, i=i) == [Decimal("2.50"), Decimal(0)]
    assert computed("nullif(i, 1.0)", i=i) == [None, None]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("CAST('1.005' AS DECIMAL(5, 2))", Decimal("1.01")),
        ("CAST(' -1e2 ' AS DECIMAL(5, 2))", Decimal("-100.00")),
        ("CAST('1000' AS DECIMAL(5, 2))", None),
        ("CAST('1e999999999' AS DECIMAL(5, 2))", None),
        ("CAST('1e-999999999' AS DECIMAL(5, 2))", Decimal("0.00")),
        ("CAST('0x10' AS DECIMAL)", None),
        ("CAST('' AS DECIMAL)", None),
        ("CAST(12345 AS DECIMAL(3))", None),
        ("CAST(true AS DECIMAL(3, 1))", Decimal("1.0")),
        ("CAST(-2.99 AS BIGINT)", -2),
        ("CAST(9223372036854775807.9 AS BIGINT)", 2**63 - 1),
        ("CAST(9223372036854775808.0 AS BIGINT)", None),
        ("CAST(300.5 AS TINYINT)", None),
        ("CAST(127.9 AS TINYINT)", 127),
        ("CAST(40000 AS SMALLINT)", None),
        ("CAST(0.10 AS STRING)", "0.10"),
        ("CAST(0.00 AS BOOLEAN)", False),
        ("CAST(0.1 AS FLOAT) = 0.1", False),
        ("CAST(0.1 AS FLOAT) = 0.1F", True),
        ("0.1F + 0.2F", 0.30000001192092896),
        ("CAST(16777217.0 AS FLOAT)", 16777216.0),
        ("CAST(CAST(7 AS SMALLINT) AS FLOAT)", 7.0),
        ("0.1 + 0.2 = 0.3", True),
        ("1 / 3.0", Decimal("0.333333")),
        ("1.0 / 0", None),
        ("5.5 % 0.0", None),
    ],
)
def test_casts_and_constants_are_those_of_spark(sql: str, value: object) -> None:
    assert value_of(sql) == value


@given(columns(), columns())
def test_duckdb_adds_and_compares_decimals_alike(a, b) -> None:
    if max(a.type.precision, b.type.precision) > 18:
        return  # there DuckDB's results have other digits, or it raises
    rows = pa.table({"a": a, "b": b})
    found = duckdb.from_arrow(rows).select("a + b, a - b, a < b, a = b").fetchall()
    ours = [computed(sql, a=a, b=b) for sql in ("a + b", "a - b", "a < b", "a = b")]
    assert list(zip(*ours, strict=True)) == found
