import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from meaning import computed
from querymesh.query.evaluate import evaluate
from querymesh.query.expr import Column, Expr
from querymesh.query.parse.query import condition_of
from querymesh.query.predicate.decorators import function, predicate
from querymesh.query.predicate.predicate import Predicate

X = pa.array([1.0, None, math.nan, -0.0])
S = pa.array(["a%b", "a\nb", None, "É"])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("x = x", [True, None, True, True]),
        ("x > 5", [False, None, True, False]),
        ("x < 5", [True, None, False, True]),
        ("x = 0", [False, None, False, True]),
        ("x IN (0, NULL)", [None, None, None, True]),
        ("isnan(x)", [False, False, True, False]),
        ("1 / x", [1.0, None, "nan", None]),
        ("greatest(x, 0.5, NULL)", [1.0, 0.5, "nan", 0.5]),
        ("floor(x)", [1, None, 0, 0]),
        ("9223372036854775807 + CAST(x AS BIGINT)", [None, None, None, 2**63 - 1]),
        ("5 % 0 = 1", [None] * 4),
        ("2 > 1", [True] * 4),
        ("NULL", [None] * 4),
    ],
)
def test_numbers_follow_spark_and_never_fail(sql: str, expected: list[object]) -> None:
    assert computed(sql, x=X) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("s LIKE 'a%b'", [True, True, None, False]),
        ("s LIKE r'a\\%b'", [True, False, None, False]),
        ("s LIKE 'a_b'", [True, True, None, False]),
        ("s LIKE '_'", [False, False, None, True]),
        ("s ILIKE 'é'", [False, False, None, True]),
        ("lower(s)", ["a%b", "a\nb", None, "é"]),
        ("upper(s)", ["A%B", "A\nB", None, "É"]),
        ("length(s)", [3, 3, None, 1]),
        ("substring(s, -2, 1)", ["%", "\n", None, ""]),
        ("s || '!'", ["a%b!", "a\nb!", None, "É!"]),
    ],
)
def test_strings_follow_spark(sql: str, expected: list[object]) -> None:
    assert computed(sql, s=S) == expected


@pytest.mark.parametrize(
    "dtype",
    [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_every_layout_of_strings_is_read(dtype: pa.DataType) -> None:
    assert computed("lower(s) = 'é' OR s LIKE '%b' OR s IN ('x')", s=S.cast(dtype)) == [
        True, True, None, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "s = 'a'",
        "lower(s) LIKE 'a%'",
        "x + 1 > 2",
        "x IN (1, 2)",
        "d > '2024-01-01'",
        "CASE WHEN x > 1 THEN s END = 'a'",
        "hour(t) = 1",
        "replace(s, 'a', s) = s",
        "x % 2 = 0",
        "CAST(s AS BIGINT) = 1",
        "substring(s, x, 1) = 'a'",
        "round(y) = 1",
        "power(y, 2) > 1",
        "s RLIKE 'a'",
        "f(s)",
    ],
)
@pytest.mark.parametrize("n", [0, 3])
def test_empty_and_all_null_columns_are_no_exception(sql: str, n: int) -> None:
    columns = {
        "s": pa.nulls(n, pa.string()),
        "x": pa.nulls(n, pa.int64()),
        "y": pa.nulls(n, pa.float64()),
        "d": pa.nulls(n, pa.date32()),
        "t": pa.nulls(n, pa.timestamp("us", "UTC")),
    }
    known = {"f": predicate(lambda s: [None] * len(s), name="f")}
    assert computed(sql, known, **columns) == [None] * n


def test_columns_in_chunks_are_read_as_one() -> None:
    chunks = pa.chunked_array([["ab", None], [], ["c"]], pa.string())
    assert computed("s", s=chunks) == ["ab", None, "c"]
    assert computed("length(s) + 1", s=chunks) == [3, None, 2]
    assert computed("upper(s)", s=pa.chunked_array([], pa.string())) == []


def test_moments_compute_to_the_microsecond() -> None:
    moments = pa.array([1_500, None], pa.int64()).cast(pa.timestamp("ns"))
    assert computed("t = '1970-01-01 00:00:00.000001'", t=moments) == [True, None]
    assert computed("year(t)", t=moments.cast(pa.timestamp("ns", "UTC"))) == [1970, None]


def test_decimals_compute_as_decimals_and_beside_a_double_as_the_nearest_double() -> None:
    prices = pa.array(["0.10", "123456789.35", None]).cast(pa.decimal128(12, 2))
    assert computed("p * 1", p=prices) == [Decimal("0.10"), Decimal("123456789.35"), None]
    assert computed("p * 1D", p=prices) == [0.1, 123456789.35, None]
    assert computed("p = 0.1", p=prices) == [True, False, None]
    assert computed("p = 0.1D", p=prices) == [True, False, None]


def test_unsigned_numbers_beyond_bigint_are_null() -> None:
    assert computed("u + 0", u=pa.array([1, 2**63], pa.uint64())) == [1, None]


def test_a_day_without_midnight_begins_where_the_clock_arrives() -> None:
    zone = "America/Sao_Paulo"
    moments = pa.array([dt.datetime(2018, 11, 4, 3, tzinfo=dt.UTC)], pa.timestamp("us", zone))
    days = pa.array([dt.date(2018, 11, 4)])
    assert computed("t = d", t=moments, d=days) == [True]
    assert computed("t = '2018-11-04'", t=moments) == [True]


def test_user_functions_take_part_in_expressions() -> None:
    score = function(lambda x: [len(s or "") / 2 for s in x.to_pylist()], name="score")
    assert computed("score(s) > 1 AND s LIKE 'a%'", {"score": score}, s=S) == [
        True,
        True,
        False,
        False,
    ]


def test_the_caller_decides_what_a_raising_function_means() -> None:
    def fails(s: pa.Array) -> list[bool]:
        return [1 / (len(value) - 1) > 0 for value in s.to_pylist()]

    known = {"fails": predicate(fails)}
    dropped = []

    def dropping(called: Predicate, args: list[pa.Array], n: int) -> pa.Array:
        result, failed = called.apply_dropping(args, n)
        dropped.append(failed.tolist())
        return result

    expr: Expr = condition_of("fails(s)", known)
    result = evaluate(expr, lambda _: pa.array(["ab", "a"]), 2, known, dropping)
    assert result.to_pylist() == [True, None]
    assert dropped == [[False, True]]


def test_a_constant_is_passed_on_to_user_functions_as_a_column() -> None:
    seen = []

    def spy(a: pa.Array, b: pa.Array) -> list[bool]:
        seen.append((a.to_pylist(), b.to_pylist()))
        return [True] * len(a)

    computed("spy(x, 5)", {"spy": predicate(spy)}, x=pa.array([1, 2]))
    assert seen == [([1, 2], [5, 5])]


def test_columns_are_asked_for_by_relation() -> None:
    asked = []

    def column(found: Column) -> pa.Array:
        asked.append(found)
        return pa.array([1])

    evaluate(condition_of("s.a = n.b", {}), column, 1, {})
    assert asked == [Column("s", "a"), Column("n", "b")]
